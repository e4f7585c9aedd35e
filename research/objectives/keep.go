package main

import (
	"math"

	"github.com/fantasia-hpo/fantasia/research/lines"
)

// run names a game that was played with a seed.
type run struct {
	Function  string `json:"function"`
	Algorithm string `json:"algorithm"`
	Seed      uint64 `json:"seed"`
	Trials    int    `json:"trials"`
	Reference bool   `json:"reference,omitempty"` // was told
	Huge      bool   `json:"huge,omitempty"`      // values far beyond the front were
	// Noise is the share of the front's extent.
	Noise float64 `json:"noise,omitempty"`
}

// kept is a line of the file of runs.
type kept struct {
	run
	// Missing are decimal logarithms, one for each count of evaluations; null is infinite.
	Missing []*float64 `json:"missing"`
}

// keep holds the runs of a file, so that hours of games can be interrupted.
type keep struct {
	path string // "" keeps nothing
	runs map[run][]float64
}

// openKeep reads the runs of a file, which need not exist.
func openKeep(path string) (*keep, error) {
	k := &keep{path: path, runs: map[run][]float64{}}
	if path == "" {
		return k, nil
	}
	all, err := lines.Read[kept](path)
	for _, one := range all {
		missing := make([]float64, len(one.Missing))
		for i, v := range one.Missing {
			if missing[i] = math.Inf(1); v != nil {
				missing[i] = *v
			}
		}
		k.runs[one.run] = missing
	}
	return k, err
}

// add keeps a run.
func (k *keep) add(r run, missing []float64) error {
	if k.path == "" {
		return nil
	}
	one := kept{run: r}
	for i := range missing {
		finite := &missing[i]
		if math.IsInf(missing[i], 0) {
			finite = nil
		}
		one.Missing = append(one.Missing, finite)
	}
	return lines.Append(k.path, one)
}
