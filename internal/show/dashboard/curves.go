package dashboard

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/show/figure"
	"github.com/fantasia-hpo/fantasia/study"
)

const (
	// maxDrawnCurves bounds the curves of a picture.
	maxDrawnCurves = 40
	// maxCurves bounds the curves that are kept of a study.
	maxCurves = 256
	// curveAge is how old the curve of a running trial may be, and settledAfter how long
	// after a trial's end its curve may still grow.
	curveAge     = time.Second
	settledAfter = 10 * time.Second
)

// curves are curves of a study that were read lately. It is safe for concurrent use.
type curves struct {
	backend server.Reader
	study   string
	now     func() time.Time

	mu      sync.Mutex
	byTrial map[int]kept
}

// kept is a curve and when it was read.
type kept struct {
	reported []view.Curve
	at       time.Time
	final    bool
}

// of returns the curve of a trial.
func (c *curves) of(ctx context.Context, r *figure.Trial) ([]view.Curve, error) {
	c.mu.Lock()
	k, ok := c.byTrial[r.Number]
	c.mu.Unlock()
	now := c.now()
	if ok && (k.final || now.Sub(k.at) < curveAge) {
		return k.reported, nil
	}
	m, err := c.backend.Measurements(ctx, c.study, r.Number)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.byTrial) >= maxCurves {
		for trial, old := range c.byTrial { // any that can be read again
			if len(c.byTrial) < maxCurves*3/4 {
				break
			}
			if trial != r.Number || !old.final {
				delete(c.byTrial, trial)
			}
		}
	}
	c.byTrial[r.Number] = kept{reported: view.OfSeries(m.Series), at: now, final: r.State.Terminal() && now.Sub(r.Ended.Time()) > settledAfter}
	return c.byTrial[r.Number].reported, nil
}

// chosen returns the rows whose curves are shown: running ones first, then the best, then
// the latest, at most limit.
func chosen(rows []*figure.Trial, d study.Direction, limit int) []*figure.Trial {
	var running, done []*figure.Trial
	for _, r := range rows {
		switch {
		case r.State == study.TrialRunning || r.State == study.TrialClaimed:
			running = append(running, r)
		case r.State.Terminal() && r.Started != 0:
			done = append(done, r)
		}
	}
	list := running
	if len(list) > limit/2 {
		list = list[len(list)-limit/2:]
	}
	best := figure.Top(done, d, (limit-len(list))/2)
	list = append(slices.Clip(list), best...)
	for i := len(done) - 1; i >= 0 && len(list) < limit; i-- {
		if !slices.Contains(best, done[i]) {
			list = append(list, done[i])
		}
	}
	return list
}
