package helm

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// Derived returns the files that are derived from values.yaml, by their paths below the
// chart's directory.
func Derived(ctx context.Context, chart string) (map[string][]byte, error) {
	file, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err != nil {
		return nil, fmt.Errorf("read the values: %w", err)
	}
	root, err := ParseValues(file)
	if err != nil {
		return nil, err
	}
	definitions, err := KubernetesDefinitions(ctx)
	if err != nil {
		return nil, err
	}
	schema, err := ValuesSchema(root, definitions.loosen())
	if err != nil {
		return nil, err
	}
	readme, err := README(root)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{"values.schema.json": schema, "README.md": readme}, nil
}
