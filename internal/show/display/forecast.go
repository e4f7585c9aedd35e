package display

import (
	"context"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/show/diagnosis"
	"github.com/fantasia-hpo/fantasia/study"
)

const (
	// forecastEvery is the least time between two forecasts, and forecastTimeout the longest that one takes.
	forecastEvery   = 10 * time.Second
	forecastTimeout = time.Minute
)

// Forecast says how long a study still takes, by a model of how long its trials take. Models are fitted in the background. The
// zero value knows nothing.
type Forecast struct {
	busy sync.WaitGroup
	mu   sync.Mutex
	// asked is when the last forecast was asked for, and end when the study ends by it, zero if that is not known.
	asked, end time.Time
	fitting    bool
}

// Reader reads a study and its trials.
type Reader func(ctx context.Context) (*study.Study, view.Trials, error)

// Add adds to what is displayed when the study ends, as far as that is known. If the last forecast is old, it begins another, which
// ends with ctx.
func (f *Forecast) Add(ctx context.Context, n *Now, read Reader) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n.Ends = f.end
	if c := n.course(); f.fitting || n.State.Terminal() || !c.Foreseeable() || n.At.Sub(f.asked) < forecastEvery {
		return
	}
	f.asked, f.fitting = n.At, true
	slots := n.Counts.Running + n.Counts.Queued
	f.busy.Go(func() {
		end := expected(ctx, read, slots)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.end, f.fitting = end, false
	})
}

// expected returns when the study ends; zero if that is not known.
func expected(ctx context.Context, read Reader, slots int) time.Time {
	ctx, cancel := context.WithTimeout(ctx, forecastTimeout)
	defer cancel()
	s, trials, err := read(ctx)
	if err != nil {
		return time.Time{}
	}
	return diagnosis.Ends(ctx, s, trials, slots, time.Now())
}

// Wait waits until no forecast is being made. The context of Add MUST have ended, or it may take a minute.
func (f *Forecast) Wait() { f.busy.Wait() }
