package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

var notInTag = regexp.MustCompile(`[^A-Za-z0-9_.-]`)

// image assembles the layers and the configuration.
func (o *options) image(p program, f files) (v1.Image, error) {
	config := &v1.ConfigFile{
		Architecture: o.arch, OS: "linux", Created: v1.Time{Time: o.created}, RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{
			User: fmt.Sprintf("%[1]d:%[1]d", user), WorkingDir: "/",
			Env:        []string{"PATH=/usr/local/bin", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"},
			Entrypoint: []string{"/usr/local/bin/" + p.binary},
			Labels:     o.labels(p, f.version),
		},
	}
	img, err := mutate.ConfigFile(empty.Image, config)
	if err != nil {
		return nil, fmt.Errorf("set the configuration: %w", err)
	}
	for _, part := range []struct {
		files    []file
		modified time.Time
		why      string
	}{
		// The system's files have no time of ours, so that every version shares them.
		{f.system, time.Unix(0, 0), "users, temporary files, certificates"},
		{f.own, o.created, p.title + " " + f.version},
	} {
		content, err := layer(part.files, part.modified)
		if err != nil {
			return nil, err
		}
		l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil })
		if err != nil {
			return nil, fmt.Errorf("make a layer: %w", err)
		}
		img, err = mutate.Append(img,
			mutate.Addendum{Layer: l, History: v1.History{Created: v1.Time{Time: o.created}, CreatedBy: "deploy/images/build", Comment: part.why}})
		if err != nil {
			return nil, fmt.Errorf("append a layer: %w", err)
		}
	}
	return img, nil
}

// labels are the annotations that the OCI image specification defines.
func (o *options) labels(p program, version string) map[string]string {
	const prefix = "org.opencontainers.image."
	labels := map[string]string{
		prefix + "title":       p.title,
		prefix + "description": p.description,
		prefix + "version":     version,
		prefix + "licenses":    p.licence,
		prefix + "source":      p.source,
		prefix + "url":         ourSource,
		prefix + "vendor":      "Fantasia",
		prefix + "created":     o.created.Format(time.RFC3339),
	}
	// The revision is that of the source label's repository.
	if o.revision != "" && p.source == ourSource {
		labels[prefix+"revision"] = o.revision
	}
	return labels
}

// archive writes the image and its bill of materials, each whole or not at all.
func (o *options) archive(p program, f files) error {
	img, err := o.image(p, f)
	if err != nil {
		return err
	}
	named := map[name.Tag]v1.Image{}
	for _, version := range []string{o.version, o.also} {
		if version != "" {
			tag, err := name.NewTag(o.repository + "/" + p.name + ":" + notInTag.ReplaceAllString(version, "-"))
			if err != nil {
				return fmt.Errorf("name the image: %w", err)
			}
			named[tag] = img
		}
	}
	var out bytes.Buffer
	if err := tarball.MultiWrite(named, &out); err != nil {
		return fmt.Errorf("write the archive: %w", err)
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return fmt.Errorf("make the directory of the archives: %w", err)
	}
	if err := replace(filepath.Join(o.out, p.name+".tar"), out.Bytes()); err != nil {
		return err
	}
	if err := replace(filepath.Join(o.out, p.name+".spdx.json"), f.bill); err != nil {
		return err
	}
	id, err := img.ConfigName()
	if err != nil {
		return fmt.Errorf("digest the image: %w", err)
	}
	for tag := range named {
		fmt.Printf("%s %s %s\n", tag, strings.TrimPrefix(id.String(), "sha256:")[:12], filepath.Join(o.out, p.name+".tar"))
	}
	return nil
}

func replace(path string, content []byte) error {
	if err := os.WriteFile(path+".new", content, 0o644); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
