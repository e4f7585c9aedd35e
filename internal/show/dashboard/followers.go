package dashboard

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
)

const (
	// maxFollowed and maxRows bound what the dashboard keeps of studies: a study of
	// 50,000 trials takes about 20 MB.
	maxFollowed = 16
	maxRows     = 400_000
	// idleAfter is how long a study is kept after its last page was closed.
	idleAfter = time.Minute
)

// followers are the studies that people look at.
type followers struct {
	ctx     context.Context
	backend server.Reader
	log     *slog.Logger
	now     func() time.Time
	running sync.WaitGroup

	mu   sync.Mutex
	byID map[string]*follower
}

// newFollowers returns an empty set, whose followers end with ctx.
func newFollowers(ctx context.Context, b server.Reader, log *slog.Logger, now func() time.Time) *followers {
	fs := &followers{ctx: ctx, backend: b, log: log, now: now, byID: map[string]*follower{}}
	fs.running.Go(fs.sweep)
	return fs
}

// wait waits until every follower has ended; ctx must have.
func (fs *followers) wait() { fs.running.Wait() }

// errBusy says that too many studies are being looked at.
var errBusy = &statusError{
	http.StatusServiceUnavailable,
	fmt.Sprintf("People have pages of too many studies open: this coordinator shows at most %d studies, or %d trials, at a time. Try again "+
		"when some are closed.", maxFollowed, maxRows),
}

// of returns the follower of a study, and starts it if there is none.
func (fs *followers) of(s *server.Study) (*follower, error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f := fs.byID[s.Spec.ID]; f != nil {
		if !f.outdated(s) {
			return f, nil
		}
		fs.drop(f)
	}
	if err := fs.evict(s.Status.Trials); err != nil {
		return nil, err
	}
	f := newFollower(fs.backend, s, fs.log, fs.now)
	ctx, cancel := context.WithCancel(fs.ctx)
	f.cancel = cancel
	fs.byID[f.id] = f
	fs.running.Go(func() { f.run(ctx) })
	return f, nil
}

// evict drops the studies that were not used for longest until another one can be followed.
func (fs *followers) evict(trials int) error {
	for {
		rows, oldest := trials, (*follower)(nil)
		var since time.Time
		for _, f := range fs.byID {
			used, n, idle := f.idle()
			rows += n
			if idle && (oldest == nil || used.Before(since)) {
				oldest, since = f, used
			}
		}
		switch {
		case len(fs.byID) < maxFollowed && (rows <= maxRows || len(fs.byID) == 0):
			return nil
		case oldest == nil:
			return errBusy
		}
		fs.drop(oldest)
	}
}

// drop ends a follower; the caller holds the lock.
func (fs *followers) drop(f *follower) {
	f.cancel()
	delete(fs.byID, f.id)
}

// sweep drops the followers that nobody uses.
func (fs *followers) sweep() {
	for range backoff.Ticks(fs.ctx, idleAfter/4) {
		fs.mu.Lock()
		for _, f := range fs.byID {
			if since, _, idle := f.idle(); idle && fs.now().Sub(since) > idleAfter {
				fs.drop(f)
			}
		}
		fs.mu.Unlock()
	}
}

// seats bounds how many streams may be open, for each reader and for all together. So one reader cannot
// take all of them. Safe for concurrent use.
type seats struct {
	total, share int

	mu    sync.Mutex
	taken []*seat // the oldest first
}

// seat is an open stream.
type seat struct {
	reader  string
	giveWay context.CancelFunc
}

// admit opens a stream of a reader, who ends it with leave. The context ends with ctx, or when
// a newer stream needs the seat: the reader's oldest gives way to the reader's next, and where
// all seats are taken, the oldest of a reader who still has more than this one afterwards, or
// as many. It returns false if there is nobody who can give way.
func (s *seats) admit(ctx context.Context, reader string) (_ context.Context, leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := map[string]int{}
	for _, t := range s.taken {
		counts[t.reader]++
	}
	whose, full := reader, counts[reader] >= s.share
	if !full && len(s.taken) >= s.total {
		full = true
		for _, t := range s.taken {
			if counts[t.reader] > max(counts[whose], counts[reader]+1) {
				whose = t.reader
			}
		}
	}
	if full {
		i := slices.IndexFunc(s.taken, func(t *seat) bool { return t.reader == whose })
		if i < 0 {
			return nil, nil, false
		}
		s.taken[i].giveWay()
		s.taken = slices.Delete(s.taken, i, i+1)
	}
	ctx, cancel := context.WithCancel(ctx)
	mine := &seat{reader, cancel}
	s.taken = append(s.taken, mine)
	return ctx, func() {
		cancel()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.taken = slices.DeleteFunc(s.taken, func(t *seat) bool { return t == mine })
	}, true
}
