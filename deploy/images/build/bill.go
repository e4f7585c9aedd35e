package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"time"
)

// The bill of materials is a document of SPDX 2.3 (https://spdx.github.io/spdx-spec/v2.3/):
// the program, the modules that are linked into it, and Go's standard library,
// as the program itself lists them.
type spdxDocument struct {
	Version           string             `json:"spdxVersion"`
	DataLicense       string             `json:"dataLicense"`
	ID                string             `json:"SPDXID"`
	Name              string             `json:"name"`
	DocumentNamespace string             `json:"documentNamespace"`
	CreationInfo      spdxCreation       `json:"creationInfo"`
	Packages          []spdxPackage      `json:"packages"`
	Relationships     []spdxRelationship `json:"relationships"`
}

type spdxCreation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type spdxPackage struct {
	ID               string          `json:"SPDXID"`
	Name             string          `json:"name"`
	VersionInfo      string          `json:"versionInfo"`
	DownloadLocation string          `json:"downloadLocation"`
	FilesAnalyzed    bool            `json:"filesAnalyzed"`
	LicenseConcluded string          `json:"licenseConcluded"`
	LicenseDeclared  string          `json:"licenseDeclared"`
	CopyrightText    string          `json:"copyrightText"`
	Purpose          string          `json:"primaryPackagePurpose"`
	SourceInfo       string          `json:"sourceInfo,omitempty"`
	Checksums        []spdxChecksum  `json:"checksums,omitempty"`
	ExternalRefs     []spdxReference `json:"externalRefs"`
}

type spdxChecksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type spdxReference struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type spdxRelationship struct {
	Element string `json:"spdxElementId"`
	Type    string `json:"relationshipType"`
	Related string `json:"relatedSpdxElement"`
}

const noAssertion = "NOASSERTION"

// bill lists what the program was built from.
func (o *options) bill(p program, info *buildinfo.BuildInfo, digest [32]byte) ([]byte, error) {
	version := o.softwareVersion(p, info)
	main := newPackage(info.Main.Path, version, "APPLICATION")
	main.ID, main.LicenseDeclared = "SPDXRef-program", p.licence
	main.Checksums = []spdxChecksum{{Algorithm: "SHA256", Value: hex.EncodeToString(digest[:])}}
	doc := spdxDocument{
		Version: "SPDX-2.3", DataLicense: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: p.name + " " + version,
		DocumentNamespace: fmt.Sprintf("%s/sbom/%s-%x", ourSource, p.name, digest),
		CreationInfo:      spdxCreation{Created: o.created.Format(time.RFC3339), Creators: []string{"Tool: fantasia-images"}},
		Packages:          []spdxPackage{main},
		Relationships:     []spdxRelationship{{"SPDXRef-DOCUMENT", "DESCRIBES", main.ID}},
	}
	add := func(q spdxPackage) {
		doc.Packages = append(doc.Packages, q)
		doc.Relationships = append(doc.Relationships, spdxRelationship{main.ID, "DEPENDS_ON", q.ID})
	}
	add(newPackage("stdlib", strings.TrimPrefix(info.GoVersion, "go"), "LIBRARY"))
	for _, m := range info.Deps {
		add(modulePackage(m))
	}
	out, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the bill of materials: %w", err)
	}
	return append(out, '\n'), nil
}

// writeBill writes the bill of materials of a program that was built elsewhere, for
// whatever system, to a file. The file of the program has the name of its image.
func (o *options) writeBill(path, to string) error {
	chosen, err := choose([]string{filepath.Base(path)})
	if err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read what %s was built from: %w", path, err)
	}
	binary, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the program: %w", err)
	}
	bill, err := o.bill(chosen[0], info, sha256.Sum256(binary))
	if err != nil {
		return err
	}
	return replace(to, bill)
}

func modulePackage(m *debug.Module) spdxPackage {
	if m.Replace != nil {
		m = m.Replace
	}
	q := newPackage(m.Path, m.Version, "LIBRARY")
	q.DownloadLocation = fmt.Sprintf("https://proxy.golang.org/%s/@v/%s.zip", escape(m.Path), m.Version)
	if m.Sum != "" {
		// It is a digest of the files' digests, so none of the archive.
		q.SourceInfo = "go.sum " + m.Sum
	}
	return q
}

var notInID = regexp.MustCompile(`[^A-Za-z0-9.]+`)

func newPackage(path, version, purpose string) spdxPackage {
	return spdxPackage{
		ID: "SPDXRef-" + notInID.ReplaceAllString(path+"-"+version, "-"), Name: path, VersionInfo: version,
		DownloadLocation: noAssertion, LicenseConcluded: noAssertion, LicenseDeclared: noAssertion, CopyrightText: noAssertion, Purpose: purpose,
		ExternalRefs: []spdxReference{{Category: "PACKAGE-MANAGER", Type: "purl", Locator: "pkg:golang/" + path + "@" +
			strings.ReplaceAll(version, "+", "%2B")}},
	}
}

// escape writes an upper-case letter as the module proxy's protocol does.
func escape(path string) string {
	var b strings.Builder
	for _, c := range path {
		if c >= 'A' && c <= 'Z' {
			b.WriteByte('!')
			c += 'a' - 'A'
		}
		b.WriteRune(c)
	}
	return b.String()
}
