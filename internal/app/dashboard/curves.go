package dashboard

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/study"
)

const (
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
	series []curve.Series
	at     time.Time
	final  bool
}

func newCurves(b server.Reader, study string, now func() time.Time) *curves {
	return &curves{backend: b, study: study, now: now, byTrial: map[int]kept{}}
}

// of returns the curve of a trial.
func (c *curves) of(ctx context.Context, r *row) ([]curve.Series, error) {
	c.mu.Lock()
	k, ok := c.byTrial[r.number]
	c.mu.Unlock()
	now := c.now()
	if ok && (k.final || now.Sub(k.at) < curveAge) {
		return k.series, nil
	}
	m, err := c.backend.Measurements(ctx, c.study, r.number)
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
			if trial != r.number || !old.final {
				delete(c.byTrial, trial)
			}
		}
	}
	c.byTrial[r.number] = kept{series: m.Series, at: now, final: r.state.Terminal() && now.Sub(r.ended.time()) > settledAfter}
	return m.Series, nil
}

// chosen returns the rows whose curves are shown: running ones first, then the best, then
// the latest, at most limit.
func chosen(rows []*row, d study.Direction, limit int) []*row {
	var running, done []*row
	for _, r := range rows {
		switch {
		case r.state == study.TrialRunning || r.state == study.TrialClaimed:
			running = append(running, r)
		case r.state.Terminal() && r.started != 0:
			done = append(done, r)
		}
	}
	list := running
	if len(list) > limit/2 {
		list = list[len(list)-limit/2:]
	}
	best := topOf(done, d, (limit-len(list))/2)
	list = append(slices.Clip(list), best...)
	for i := len(done) - 1; i >= 0 && len(list) < limit; i-- {
		if !slices.Contains(best, done[i]) {
			list = append(list, done[i])
		}
	}
	return list
}
