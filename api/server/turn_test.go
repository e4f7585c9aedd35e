package server_test

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/internal/test/servertest"
)

// slowly is a backend that works on requests until it is told to go on.
type slowly struct {
	*servertest.Backend
	waiting, entered, goOn, end chan struct{}
	now, most                   atomic.Int64
}

func (s *slowly) work() {
	n := s.now.Add(1)
	defer s.now.Add(-1)
	for most := s.most.Load(); n > most && !s.most.CompareAndSwap(most, n); most = s.most.Load() {
	}
	s.entered <- struct{}{}
	<-s.goOn
}

func (s *slowly) Study(ctx context.Context, name string) (server.Study, error) {
	if name == "slow" {
		s.work()
	}
	return s.Backend.Study(ctx, name)
}

// WatchStudy works before its first message, and ends after it.
func (s *slowly) WatchStudy(ctx context.Context, name string) iter.Seq2[server.Study, error] {
	return func(yield func(server.Study, error) bool) {
		s.work()
		yield(s.Backend.Study(ctx, name))
		<-s.end
	}
}

// Suggest waits for trials, which needs no turn.
func (s *slowly) Suggest(ctx context.Context, _, _ string, _ int, _ time.Duration) (coordinator.Suggestions, error) {
	coordinator.Waiting(ctx)
	s.waiting <- struct{}{}
	<-s.end
	return coordinator.Suggestions{}, nil
}

// Of a caller's streams, only so many begin at the same time; each that has sent a message lets
// another one begin, although it goes on.
func TestStreamsBeginInTurns(t *testing.T) {
	const streams = 12
	for name, test := range map[string]struct {
		beginning time.Duration
		most      int64
	}{
		"until the first message": {time.Hour, 3},
		"longer than a beginning": {time.Nanosecond, streams},
	} {
		t.Run(name, func(t *testing.T) {
			all, _ := tokens(t, "one "+digest("one")+" write")
			backend := &slowly{Backend: servertest.New(t), entered: make(chan struct{}), goOn: make(chan struct{}), end: make(chan struct{})}
			create(t, backend.Backend, "watched")
			address := serve(t, backend,
				server.Options{Tokens: all, Limits: server.Limits{AtOnce: 3, Patience: time.Hour, Beginning: test.beginning}})
			one, ctx := bear(t, address, "grpc", "one"), within(t)
			var running sync.WaitGroup
			for range streams {
				running.Go(func() {
					stream, err := one.WatchStudy(ctx, connect.NewRequest(&fantasiav1.WatchStudyRequest{Name: "studies/watched"}))
					if err != nil || !stream.Receive() {
						t.Errorf("a stream begins with %v", err)
						return
					}
					for stream.Receive() {
					}
					_ = stream.Close()
				})
			}
			for range test.most {
				<-backend.entered
			}
			for range streams - test.most {
				backend.goOn <- struct{}{}
				<-backend.entered
			}
			close(backend.goOn)
			close(backend.end)
			running.Wait()
			if most := backend.most.Load(); most != test.most {
				t.Errorf("%d streams began at the same time, want %d", most, test.most)
			}
		})
	}
}

// Of a caller's requests, only so many are worked on at the same time. Those of others do not wait for
// them, and neither do calls that wait for trials.
func TestTurns(t *testing.T) {
	const calls = 12
	for name, test := range map[string]struct {
		patience time.Duration
		most     int64
	}{
		"patient":         {time.Hour, 3},
		"out of patience": {time.Nanosecond, calls},
	} {
		t.Run(name, func(t *testing.T) {
			all, _ := tokens(t, "one "+digest("one")+" write", "two "+digest("two")+" write")
			backend := &slowly{Backend: servertest.New(t), waiting: make(chan struct{}), entered: make(chan struct{}), goOn: make(chan struct{}),
				end: make(chan struct{})}
			create(t, backend.Backend, "slow")
			create(t, backend.Backend, "quick")
			address := serve(t, backend, server.Options{Tokens: all, Limits: server.Limits{AtOnce: 3, Patience: test.patience}})
			one, two := bear(t, address, "grpc", "one"), bear(t, address, "grpc", "two")
			ctx := within(t)
			var running sync.WaitGroup
			for range calls { // these hold no turns
				running.Go(func() {
					_, err := one.SuggestTrials(ctx, connect.NewRequest(&fantasiav1.SuggestTrialsRequest{Parent: "studies/quick", ClientId: "c"}))
					check(t, err, 0, "a call that waits")
				})
			}
			for range calls {
				<-backend.waiting
			}
			get := func(c client, study string) {
				_, err := c.GetStudy(ctx, connect.NewRequest(&fantasiav1.GetStudyRequest{Name: "studies/" + study}))
				check(t, err, 0, "get %s", study)
			}
			for range calls {
				running.Go(func() { get(one, "slow") })
			}
			for range test.most {
				<-backend.entered
			}
			get(two, "quick")
			for range calls - test.most { // each that ends lets another one in
				backend.goOn <- struct{}{}
				<-backend.entered
			}
			close(backend.goOn)
			close(backend.end)
			running.Wait()
			if most := backend.most.Load(); most != test.most {
				t.Errorf("%d requests were worked on at the same time, want %d", most, test.most)
			}
		})
	}
}
