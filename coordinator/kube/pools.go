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

// Any stands for every namespace without an entry, or for every pool.
const Any = "*"

// Pools lists the pools that the studies of each namespace may use. A namespace without
// an entry has that of Any; without that, it may use none.
type Pools map[string][]string

// ReadPools reads a YAML file: a map from namespaces to lists of pools.
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

// Check returns why a namespace may not use a pool, or nil.
func (p Pools) Check(namespace, pool string) error {
	allowed, ok := p[namespace]
	if !ok {
		allowed = p[Any]
	}
	switch {
	case slices.Contains(allowed, pool) || slices.Contains(allowed, Any):
		return nil
	case len(allowed) == 0:
		return fmt.Errorf("spec.pool: namespace %[2]s may not use pool %[1]q or any other: ask the operator of Fantasia", pool, namespace)
	default:
		return fmt.Errorf("spec.pool: namespace %[2]s may not use pool %[1]q; it may use %[3]s", pool, namespace, strings.Join(allowed, ", "))
	}
}
