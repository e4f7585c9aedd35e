package chaos

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
)

// watchEvery is the time between two looks at the ledger, and so how exact the times of
// commits are.
const watchEvery = 30 * time.Millisecond

// progress notes when the ledger has grown: trials were created or have ended. Safe for
// concurrent use.
type progress struct {
	mu      sync.Mutex
	commits map[string][]commit // by family
	change  chan struct{}
}

// commit is that a study has grown between two looks.
type commit struct{ after, by time.Time }

func newProgress() *progress {
	return &progress{commits: map[string][]commit{}, change: make(chan struct{})}
}

// watch looks at the studies that run until ctx ends. studies are their names.
func (p *progress) watch(ctx context.Context, f *fleet, studies func() []string) {
	seen, looked := map[string]int64{}, map[string]time.Time{}
	for through := 0; pause(ctx, watchEvery) == nil; {
		one, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		for _, name := range studies() {
			now := time.Now()
			s, err := f.ledgers[through].Study(one, name)
			if err != nil {
				through = (through + 1) % len(f.ledgers)
				break
			}
			if before, known := looked[name]; known && s.Status.Position > seen[name] {
				p.grown(s, before)
			}
			seen[name], looked[name] = s.Status.Position, now
		}
		cancel()
	}
}

func (p *progress) grown(s ledger.Summary, before time.Time) {
	family, _, _ := strings.Cut(s.Study.Definition.Metadata.Name, "-")
	p.mu.Lock()
	defer p.mu.Unlock()
	p.commits[family] = append(p.commits[family], commit{before, time.Now()})
	close(p.change)
	p.change = make(chan struct{})
}

// any waits until something has been committed after a time, and returns how long after it.
func (p *progress) any(ctx context.Context, since time.Time) (time.Duration, error) {
	return p.after(ctx, since, false)
}

// every is any for all studies: each must have gone on.
func (p *progress) every(ctx context.Context, since time.Time) (time.Duration, error) {
	return p.after(ctx, since, true)
}

func (p *progress) after(ctx context.Context, since time.Time, every bool) (time.Duration, error) {
	for {
		p.mu.Lock()
		change := p.change
		var took []time.Duration
		for _, fam := range families {
			commits := p.commits[fam.name]
			i, _ := slices.BinarySearchFunc(commits, since, func(c commit, t time.Time) int { return c.after.Compare(t) })
			if i < len(commits) {
				took = append(took, commits[i].by.Sub(since))
			}
		}
		p.mu.Unlock()
		switch {
		case every && len(took) == len(families):
			return slices.Max(took), nil
		case !every && len(took) > 0:
			return slices.Min(took), nil
		}
		select {
		case <-change:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}
