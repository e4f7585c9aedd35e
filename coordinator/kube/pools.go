package kube

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v4"
)

// Any stands for every namespace without an entry of its own, or every pool.
const Any = "*"

// Pools says which pools the studies of a namespace may use. A namespace without
// an entry has that of Any; where there is none either, it may use none.
type Pools map[string][]string

// ReadPools reads the file at path: a map in YAML from namespaces to lists of
// pools.
func ReadPools(path string) (Pools, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the pools of namespaces: %w", err)
	}
	var p Pools
	if err := yaml.NewDecoder(bytes.NewReader(text)).Decode(&p); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: want a map from namespaces to lists of pools, such as team-a: [default, gpu]: %w", path, err)
	}
	return p, nil
}

// Check says why a namespace may not use a pool; nil where it may.
func (p Pools) Check(namespace, pool string) error {
	allowed, ok := p[namespace]
	if !ok {
		allowed = p[Any]
	}
	switch {
	case slices.Contains(allowed, pool) || slices.Contains(allowed, Any):
		return nil
	case len(allowed) == 0:
		return fmt.Errorf("spec.pool: %q is not for namespace %s, which may use no pool: ask whoever operates Fantasia", pool, namespace)
	default:
		return fmt.Errorf("spec.pool: %q is not for namespace %s: it may use %s", pool, namespace, strings.Join(allowed, ", "))
	}
}
