package dashboard

import (
	"context"
	"slices"
	"sync"
)

// seats bounds how many streams each reader has open, and how many all readers have, so that no
// reader uses up those of the others. They are safe for concurrent use.
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

// take opens a stream of a reader, who ends it with leave. The context ends with ctx, or when
// a newer stream needs the seat: the reader's oldest gives way to the reader's next, and where
// all seats are taken, the oldest of a reader who still has more than this one afterwards, or
// as many. It returns false if there is nobody who can give way.
func (s *seats) take(ctx context.Context, reader string) (_ context.Context, leave func(), ok bool) {
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
