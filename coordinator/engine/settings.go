package engine

import (
	"time"

	"github.com/fantasia-hpo/fantasia/optimizer"
)

// Settings tune the engine; the zero value of each field means its default.
type Settings struct {
	// Republish is how long a published, unclaimed attempt waits before it is
	// published again. Default 60 s.
	Republish time.Duration
	// Blind says that the optimiser's suggestions do not depend on results, as those
	// of an optimizer.Blind: they are always fresh, and no slot waits for others.
	Blind bool
	// Fallback suggests up to n points where the optimiser is too slow or
	// fails. It is called within a step, so it must be quick, and deterministic
	// in its arguments. Nil means that slots wait for the optimiser.
	Fallback func(p *optimizer.Problem, n int) ([]optimizer.Suggestion, error)
}

// The default of Settings, and what is no one's to tune.
const (
	defaultRepublish = 60 * time.Second

	// patienceShare is the share of the mean evaluation time that a free slot waits
	// for a fresh suggestion before it takes a ready, staler one or a fallback, where
	// that is longer than the study's algorithm.wait; patienceMax bounds the share.
	patienceShare = 0.05
	patienceMax   = 2 * time.Second
	// fallbackMin is the least time that a free slot waits before it takes a fallback,
	// whatever the study says, so that an optimiser which answers at once is never
	// passed over, however short the evaluations.
	fallbackMin = 5 * time.Millisecond
	// lookAheadBelow is the mean evaluation time below which trials are queued ahead
	// of free slots: for longer evaluations the wait for a commit is nothing and a
	// suggestion made later is a better one.
	lookAheadBelow = time.Second

	// maxAsk bounds one request: 64 points are enough to be asked for again.
	maxAsk = 64
	// minPrefetch and maxPrefetch bound the suggestions that are kept ready
	// where the optimiser is slow for its program.
	minPrefetch = 8
	maxPrefetch = 32
	// askPause is the least time between a failure of the optimiser and the
	// next request to it; fallbacks fill the time.
	askPause = time.Second
	// avoidAfter is how many failures in a row keep a worker from a study.
	avoidAfter = 3
	// firstFailures is how many failed trials at the start end a study.
	firstFailures = 3
)

// withDefaults replaces zero fields by their defaults.
func (s Settings) withDefaults() Settings {
	if s.Republish <= 0 {
		s.Republish = defaultRepublish
	}
	return s
}
