package dashboard

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
	"github.com/fantasia-hpo/fantasia/internal/show/figure"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

const (
	// publishEvery is the least time between two snapshots. Open pages ask for a study
	// again after each, so it bounds what they cost.
	publishEvery = 500 * time.Millisecond
	// retryEvery is the pause after a watch that failed.
	retryEvery = time.Second
)

// follower keeps the trials of a study in memory, as compact rows, and publishes a snapshot
// of them after changes. However many pages are open, a study has one follower.
type follower struct {
	id      string
	space   int // the version of the space that the rows are read by
	spec    *study.Spec
	backend server.Reader
	axes    figure.Axes
	// inside is nil where points outside of an edited space do not matter.
	inside func(study.Point) bool
	log    *slog.Logger
	now    func() time.Time

	cancel context.CancelFunc
	curves *curves
	cache  *cache

	mu      sync.Mutex
	rows    []*figure.Trial // by number, from 1 on; nil where the trial has not been read
	read    int             // how many are not nil
	want    int             // how many trials there were at first
	dirty   bool
	latest  *snapshot
	changed chan struct{} // closed and replaced with each snapshot
	streams int
	used    time.Time
	// done means that the watch has ended, because the study has.
	done bool
	// missing means that the study was deleted.
	missing bool
}

// snapshot is the trials of a study at one time. It is never changed.
type snapshot struct {
	// revision counts a study's snapshots.
	revision int
	rows     []*figure.Trial
	// complete is false while the trials are read for the first time. want is then how
	// many there are.
	complete bool
	want     int
}

// newFollower returns the follower of a study as it is now.
func newFollower(b server.Reader, s *server.Study, log *slog.Logger, now func() time.Time) *follower {
	f := &follower{
		id: s.Spec.ID, space: s.Spec.SpaceVersion(), spec: &s.Spec.Definition.Spec, backend: b, axes: figure.AxesOf(&s.Spec.Definition),
		log: log, now: now,
		want: s.Status.Trials, changed: make(chan struct{}), used: now(), latest: &snapshot{want: s.Status.Trials},
		curves: &curves{backend: b, study: s.Spec.ID, now: now, byTrial: map[int]kept{}}, cache: &cache{parts: map[string]*part{}},
	}
	if len(s.Spec.Definition.Spec.Several) > 0 && f.space > 1 {
		f.inside = figure.Inside(&s.Spec.Definition)
	}
	f.latest.complete = f.want == 0
	return f
}

// run follows the study until ctx ends or the study has ended and all is read.
func (f *follower) run(ctx context.Context) {
	publish := make(chan struct{}, 1)
	var publishing sync.WaitGroup
	publishing.Go(func() { f.publish(ctx, publish) })
	defer publishing.Wait()
	defer close(publish)
	for {
		err := f.watch(ctx, publish)
		if err == nil || ctx.Err() != nil || errors.Is(err, study.ErrNotFound) {
			f.mu.Lock()
			f.done, f.missing = true, errors.Is(err, study.ErrNotFound)
			f.dirty = true
			f.mu.Unlock()
			return
		}
		f.log.WarnContext(ctx, "the dashboard cannot follow a study, and tries again", telemetry.LogStudy, f.id, telemetry.LogError, err)
		backoff.Sleep(ctx, retryEvery)
	}
}

// watch reads the trials and their changes.
func (f *follower) watch(ctx context.Context, publish chan<- struct{}) error {
	for t, err := range f.backend.WatchTrials(ctx, f.id, true) {
		if err != nil {
			return err
		}
		row := figure.Of(f.spec, f.axes, &t)
		row.Outside = f.inside != nil && !f.inside(t.Point)
		if f.put(row) {
			f.snap() // at once: pages wait for it
			continue
		}
		select {
		case publish <- struct{}{}:
		default:
		}
	}
	return nil
}

// put keeps a row, and reports whether it was the last one to be read at first.
func (f *follower) put(r *figure.Trial) (last bool) {
	if r.Number < 1 {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.rows) < r.Number {
		f.rows = append(f.rows, nil)
	}
	if f.rows[r.Number-1] == nil {
		f.read++
		last = f.read == f.want
	}
	f.rows[r.Number-1] = r
	f.dirty = true
	return last
}

// publish makes a snapshot after changes, but not too often, and a last one at the end.
func (f *follower) publish(ctx context.Context, wanted <-chan struct{}) {
	for range wanted {
		f.snap()
		backoff.Sleep(ctx, publishEvery)
	}
	f.snap()
}

func (f *follower) snap() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.dirty {
		return
	}
	f.dirty = false
	s := &snapshot{revision: f.latest.revision + 1, rows: make([]*figure.Trial, 0, f.read), complete: f.read >= f.want || f.done, want: f.want}
	for _, r := range f.rows {
		if r != nil {
			s.rows = append(s.rows, r)
		}
	}
	f.latest = s
	close(f.changed)
	f.changed = make(chan struct{})
}

// now returns the latest snapshot, and a channel that is closed when there is another.
func (f *follower) current() (*snapshot, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.used = f.now()
	return f.latest, f.changed
}

// settled returns the latest snapshot, and waits for a complete one, but not for long.
func (f *follower) settled(ctx context.Context, patience time.Duration) *snapshot {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		s, changed := f.current()
		if s.complete {
			return s
		}
		select {
		case <-changed:
		case <-deadline.C:
			return s
		case <-ctx.Done():
			return s
		}
	}
}

// count adds to the number of open pages.
func (f *follower) count(pages int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.streams += pages
	f.used = f.now()
}

// outdated reports whether the follower has ended but its study has not, for example
// because it got a larger budget, or whether its rows are of an earlier space.
func (f *follower) outdated(s *server.Study) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.space != s.Spec.SpaceVersion() || !reflect.DeepEqual(f.spec.Limits, s.Spec.Definition.Spec.Limits) ||
		f.done && (f.missing || !s.Status.State.Terminal() || s.Status.Trials > f.read)
}

// idle returns since when nobody has used the follower, and how many rows it has; false
// if a page is open.
func (f *follower) idle() (since time.Time, rows int, idle bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.used, max(f.read, f.want), f.streams == 0
}
