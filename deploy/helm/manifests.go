package helm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// helmProgram is the package of helm, which tools/kube/go.mod pins.
const helmProgram = "helm.sh/helm/v4/cmd/helm"

var (
	kindLine     = regexp.MustCompile(`(?m)^kind: (\w+)$`)
	sourceLine   = regexp.MustCompile(`(?m)^# Source: .*\n`)
	drawnLine    = regexp.MustCompile(`(?m)^  (?:user|name): "([^"]+)"\n  (?:password|token): "([^"]+)"$`)
	trailing     = regexp.MustCompile(`(?m)[ \t]+$`)
	blankLines   = regexp.MustCompile(`\n{2,}`)
	manifestHead = "# Generated from the chart, with the values in values.yaml, by `make manifests`.\n"
)

// Manifests renders the chart in a repository's root as plain manifests for the
// namespace fantasia: the files of deploy/k8s by their names. The passwords and tokens,
// which the chart draws, stay @NAME@ in secrets.template.yaml, and their hashes
// @sha256-NAME@.
func Manifests(ctx context.Context, root string) (map[string][]byte, error) {
	k8s := filepath.Join("deploy", "k8s")
	cmd := exec.CommandContext(ctx, "go", "run", "-trimpath", "-modfile=tools/kube/go.mod", helmProgram, "template", "fantasia",
		filepath.Join("deploy", "helm", "fantasia"),
		"--namespace=fantasia", "--include-crds", "--no-hooks", "--skip-tests", "--values="+filepath.Join(k8s, "values.yaml"))
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("helm template: %w\n%s", err, stderr.String())
	}
	return splitManifests(stdout.String()), nil
}

// splitManifests sorts rendered documents into files.
func splitManifests(text string) map[string][]byte {
	text = strings.ReplaceAll(text, "app.kubernetes.io/managed-by: Helm", "app.kubernetes.io/managed-by: kustomize")
	for _, m := range drawnLine.FindAllStringSubmatch(text, -1) {
		text = strings.ReplaceAll(text, m[2], "@"+m[1]+"@")
		text = strings.ReplaceAll(text, fmt.Sprintf("%x", sha256.Sum256([]byte(m[2]))), "@sha256-"+m[1]+"@")
	}
	files := map[string]*strings.Builder{}
	for document := range strings.SplitSeq("\n"+text, "\n---") {
		document = blankLines.ReplaceAllString(trailing.ReplaceAllString(sourceLine.ReplaceAllString(document, ""), ""), "\n")
		document = strings.TrimSpace(document)
		kind := kindLine.FindStringSubmatch(document)
		if kind == nil {
			continue
		}
		name := "fantasia.yaml"
		switch kind[1] {
		case "CustomResourceDefinition":
			name = "crd.yaml"
		case "Secret":
			name = "secrets.template.yaml"
		}
		if files[name] == nil {
			files[name] = &strings.Builder{}
			files[name].WriteString(manifestHead)
		}
		files[name].WriteString("---\n" + document + "\n")
	}
	out := map[string][]byte{}
	for name, b := range files {
		out[name] = []byte(b.String())
	}
	return out
}
