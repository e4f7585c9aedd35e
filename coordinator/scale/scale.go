// Package scale lets the leader set the number of pods of a pool of workers: as many as
// the running studies can use, within the pool's limits. It adds pods at once and
// removes them after fewer have sufficed for a while.
package scale

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/fantasia-hpo/fantasia/study"
	yaml "go.yaml.in/yaml/v4"
)

// DefaultDownAfter is the default time for which fewer pods must suffice.
const DefaultDownAfter = 5 * time.Minute

// The kinds that can be scaled.
const (
	Deployment  = "Deployment"
	StatefulSet = "StatefulSet"
)

// Target is the resource that runs a pool's workers.
type Target struct {
	Namespace string `yaml:"namespace"`
	// Kind is Deployment or StatefulSet.
	Kind string `yaml:"kind"`
	Name string `yaml:"name"`
	// Min and Max limit the number of pods.
	Min int `yaml:"min"`
	Max int `yaml:"max"`
	// Slots is the number of trials that a pod runs at once.
	Slots int `yaml:"slots"`
	// DownAfter is the time for which fewer pods must suffice before some are removed.
	DownAfter study.Duration `yaml:"downAfter"`
}

// Targets are the targets by pool.
type Targets map[string]Target

// Read reads a YAML file: a map from pools to targets.
func Read(path string) (Targets, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the file of targets: %w", err)
	}
	targets := Targets{}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&targets); err != nil {
		return nil, fmt.Errorf("%s: want a map from pools to namespace, kind, name, min, max, slots and downAfter: %w", path, err)
	}
	var errs []error
	for pool, t := range targets {
		if t.DownAfter == 0 {
			t.DownAfter = study.Duration(DefaultDownAfter)
			targets[pool] = t
		}
		if err := t.check(); err != nil {
			errs = append(errs, fmt.Errorf("%s: pool %s: %w", path, pool, err))
		}
	}
	return targets, errors.Join(errs...)
}

// check returns what is wrong with a target.
func (t *Target) check() error {
	var errs []error
	require := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	require(t.Namespace != "", "namespace is missing")
	require(t.Name != "", "name is missing")
	require(t.Kind == Deployment || t.Kind == StatefulSet, "kind is %q: want %s or %s", t.Kind, Deployment, StatefulSet)
	require(t.Min >= 0 && t.Max >= max(t.Min, 1), "min is %d and max %d: want 0 ≤ min ≤ max, and max at least 1", t.Min, t.Max)
	require(t.Slots >= 1, "slots is %d: want at least 1", t.Slots)
	require(t.DownAfter > 0, "downAfter is %s: want a positive duration", t.DownAfter)
	return errors.Join(errs...)
}

// Needed returns the number of pods that have the useful slots, within the limits.
func (t *Target) Needed(useful int) int {
	return min(max((useful+t.Slots-1)/t.Slots, t.Min), t.Max)
}
