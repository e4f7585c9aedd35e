// Command generate writes what is derived from the chart: the schema of its
// values, its README, and the plain manifests of deploy/k8s. It is run in the
// repository's root.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fantasia-hpo/fantasia/deploy/helm"
	"github.com/fantasia-hpo/fantasia/internal/base/lifecycle"
)

func main() { lifecycle.Main("generate", generate) }

func generate(ctx context.Context) error {
	chart := filepath.Join("deploy", "helm", "fantasia")
	files, err := helm.Derived(ctx, chart)
	if err != nil {
		return err
	}
	if err := write(chart, files); err != nil {
		return err
	}
	manifests, err := helm.Manifests(ctx, ".")
	if err != nil {
		return err
	}
	return write(filepath.Join("deploy", "k8s"), manifests)
}

func write(dir string, files map[string][]byte) error {
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return fmt.Errorf("write what was made: %w", err)
		}
	}
	return nil
}
