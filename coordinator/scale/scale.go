// Package scale lets whoever leads set how many pods a pool of workers has: as
// many as the running studies can use, between the pool's bounds. More at once,
// fewer once they have sufficed for a while.
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

// DefaultDownAfter is how long fewer pods must suffice, unless a target says
// otherwise.
const DefaultDownAfter = 5 * time.Minute

// The kinds of what can be scaled.
const (
	Deployment  = "Deployment"
	StatefulSet = "StatefulSet"
)

// Target is what runs a pool's workers.
type Target struct {
	Namespace string `yaml:"namespace"`
	// Kind is Deployment or StatefulSet.
	Kind string `yaml:"kind"`
	Name string `yaml:"name"`
	// Min and Max bound the number of pods.
	Min int `yaml:"min"`
	Max int `yaml:"max"`
	// Slots is how many trials a pod runs at once.
	Slots int `yaml:"slots"`
	// DownAfter is how long fewer pods must suffice before some are taken away.
	DownAfter study.Duration `yaml:"downAfter"`
}

// Targets are the targets of pools.
type Targets map[string]Target

// Read reads the file at path: a map in YAML from pools to targets.
func Read(path string) (Targets, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read what is to be scaled: %w", err)
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

// check reports what is wrong with a target.
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

// Needed is how many pods have the slots that are useful, within the bounds.
func (t *Target) Needed(useful int) int {
	return min(max((useful+t.Slots-1)/t.Slots, t.Min), t.Max)
}

// Window remembers how many pods were needed in the time before, at least as
// long as DownAfter. The zero value has seen nothing. One goroutine uses it.
type Window struct {
	// began is when the first need was seen.
	began time.Time
	// needs fall from each to the next: an older one that is no larger does
	// not matter.
	needs []need
}

type need struct {
	at   time.Time
	pods int
}

// Decide takes in how many pods are needed now, and returns how many there shall
// be where there are current ones: more where more are needed; fewer where,
// during all of DownAfter, fewer were needed.
func (w *Window) Decide(now time.Time, needed, current int, downAfter time.Duration) int {
	if w.began.IsZero() {
		w.began = now
	}
	for len(w.needs) > 0 && w.needs[len(w.needs)-1].pods <= needed {
		w.needs = w.needs[:len(w.needs)-1]
	}
	w.needs = append(w.needs, need{now, needed})
	for now.Sub(w.needs[0].at) > downAfter {
		w.needs = w.needs[1:]
	}
	switch most := w.needs[0].pods; {
	case needed > current:
		return needed
	case now.Sub(w.began) < downAfter:
		return current // a leader before this one may have seen a need
	default:
		return min(current, most)
	}
}
