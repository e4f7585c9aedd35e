package engine

import (
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/pruner"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
)

// Settings tune the engine; the zero value of each field means its default.
type Settings struct {
	// Republish is how long a published, unclaimed attempt waits before it is
	// published again. Default 60 s.
	Republish time.Duration
	// Blind says that the optimiser is an optimizer.Blind: its suggestions do not
	// depend on results. So they are always fresh, and no slot waits for newer ones.
	Blind bool
	// Fallback says that the caller answers Output.Fallback with points of an
	// optimizer.Blind. The engine asks for them when the optimiser is too slow or fails.
	// Without it, slots wait for the optimiser.
	Fallback bool
	// Space compiles the study's search space. Default space.Of, which refuses constraints.
	Space func(*study.Study) (*space.Space, error)
	// Pruner returns the rule that stops a study's trials early. Default pruner.NewFor.
	Pruner func(study.EarlyStopping, study.Direction) (pruner.Pruner, error)
}

// The default of Settings, and constants that nobody needs to tune.
const (
	defaultRepublish = 60 * time.Second

	// patienceShare is the share of the mean evaluation time for which a free slot
	// waits for a fresh suggestion before it takes a stale one. It applies if it is
	// longer than the study's algorithm.wait; patienceMax bounds it.
	patienceShare = 0.05
	patienceMax   = 2 * time.Second
	// fallbackMin is the least time that a free slot waits before it takes a fallback.
	// It gives an optimiser that answers at once its chance even if evaluations are
	// very short.
	fallbackMin = 5 * time.Millisecond
	// lookAheadBelow is the mean evaluation time below which trials are queued ahead
	// of free slots. For longer evaluations the wait for a commit is negligible, and a
	// later suggestion is a better one.
	lookAheadBelow = time.Second

	// countRanEvery is how often the time that a study has run is stored at least, while
	// trials are evaluated or if it has a maxDuration: as much may be missing when a leader dies.
	countRanEvery = time.Minute

	// mostExpected bounds how many trials an optimiser is told to expect.
	mostExpected = 1e5

	// maxAsk bounds the suggestions of one request; the engine requests more later.
	maxAsk = 64
	// minPrefetch and maxPrefetch bound the suggestions that are kept ready if the
	// optimiser is slow compared to evaluations.
	minPrefetch = 8
	maxPrefetch = 32
	// askPause is the least time between a failure of the optimiser and the
	// next request to it; fallbacks fill the time.
	askPause = time.Second
	// avoidAfter is how many failures in a row exclude a worker from a study.
	avoidAfter = 3
	// maxAvoided bounds the workers in record.Status.Avoided, which is written with each
	// commit. Beyond it the study forgets those that it has avoided for longest.
	maxAvoided = 64
	// firstFailures is how many failed trials at the start end a study.
	firstFailures = 3
)

// withDefaults replaces zero fields with their defaults.
func (s Settings) withDefaults() Settings {
	if s.Republish <= 0 {
		s.Republish = defaultRepublish
	}
	if s.Space == nil {
		s.Space = space.Of
	}
	if s.Pruner == nil {
		s.Pruner = pruner.NewFor
	}
	return s
}
