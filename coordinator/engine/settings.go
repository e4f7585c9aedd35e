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
	// PatienceShare is the share of the mean evaluation time that a free slot
	// waits for a fresh suggestion before it takes a ready, staler one or a
	// fallback; PatienceMax bounds the wait. Defaults 0.05 and 2 s.
	PatienceShare float64
	PatienceMax   time.Duration
	// FallbackAfter is the least time that a free slot waits before it takes a
	// fallback, so that an optimiser which answers at once is never passed
	// over, however short the evaluations. Default 5 ms.
	FallbackAfter time.Duration
	// LookAheadBelow is the mean evaluation time below which trials are queued
	// ahead of free slots: for longer evaluations the wait for a commit is
	// nothing and a suggestion made later is a better one. Default 1 s.
	LookAheadBelow time.Duration
	// Fallback suggests up to n points where the optimiser is too slow or
	// fails. It is called within a step, so it must be quick, and deterministic
	// in its arguments. Nil means that slots wait for the optimiser.
	Fallback func(p *optimizer.Problem, n int) ([]optimizer.Suggestion, error)
}

// The defaults of Settings, and bounds that are no one's to tune.
const (
	defaultRepublish      = 60 * time.Second
	defaultPatienceShare  = 0.05
	defaultPatienceMax    = 2 * time.Second
	defaultFallbackAfter  = 5 * time.Millisecond
	defaultLookAheadBelow = time.Second

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
	set := func(d *time.Duration, value time.Duration) {
		if *d <= 0 {
			*d = value
		}
	}
	set(&s.Republish, defaultRepublish)
	set(&s.PatienceMax, defaultPatienceMax)
	set(&s.FallbackAfter, defaultFallbackAfter)
	set(&s.LookAheadBelow, defaultLookAheadBelow)
	if s.PatienceShare <= 0 {
		s.PatienceShare = defaultPatienceShare
	}
	return s
}

// guard names a safety check that tests switch off, one at a time, to show that
// the simulator notices.
type guard uint

const (
	guardNonce     guard = 1 << iota // only an attempt's own nonce may speak for it
	guardTerminal                    // a terminal trial never changes
	guardBudget                      // created trials stay within the budget
	guardClaim                       // the first claim wins
	guardParallel                    // open trials stay within the parallelism
	guardRetries                     // retries are bounded
	guardReceipt                     // late results are receipted too
	guardDuplicate                   // a result that was applied is not applied again
	guardOutbox                      // what nobody claims is published again
	guardRepeat                      // a finite space's points are tried once
	guardSpoiled                     // an attempt that nobody can claim is replaced
	guardEarly                       // so is one whose claim's place was taken before it was opened
	guardCurve                       // a trial's curve is of one attempt
	guardRecall                      // a curve that is not in memory is not begun anew
)

// on reports whether a guard is in force, as all are outside of tests.
func (e *Engine) on(g guard) bool { return e.off&g == 0 }
