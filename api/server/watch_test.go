package server_test

import (
	"context"
	"errors"
	"iter"
	"testing"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/test/servertest"
	"github.com/fantasia-hpo/fantasia/study"
)

// TestWatchStudy follows a study to its end.
func TestWatchStudy(t *testing.T) {
	for _, protocol := range []string{"connect", "json", "grpc", "grpc-web"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			backend := servertest.New(t)
			create(t, backend, "digits")
			c := dial(t, serve(t, backend, server.Options{}), protocol)
			stream, err := c.WatchStudy(within(t), connect.NewRequest(&fantasiav1.WatchStudyRequest{Name: "studies/digits"}))
			if err != nil {
				t.Fatal(err)
			}
			// The study as it is comes first, before anything changes.
			if !stream.Receive() || stream.Msg().GetStudy().GetTrials().GetCompleted() != 0 {
				t.Fatalf("first %v, %v", stream.Msg(), stream.Err())
			}
			backend.Change("digits", func(s *server.Study) { s.Status.Counts.Completed = 1 })
			if !stream.Receive() || stream.Msg().GetStudy().GetTrials().GetCompleted() != 1 {
				t.Fatalf("after a change %v, %v", stream.Msg(), stream.Err())
			}
			backend.Change("digits", func(s *server.Study) { s.Status.State = study.Completed })
			if !stream.Receive() || stream.Msg().GetStudy().GetState() != fantasiav1.StudyState_STUDY_STATE_COMPLETED {
				t.Fatalf("at the end %v, %v", stream.Msg(), stream.Err())
			}
			if stream.Receive() || stream.Err() != nil {
				t.Errorf("after the end %v, %v", stream.Msg(), stream.Err())
			}
			if err := stream.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// watched is a backend that says what its watches of trials have shown: 0 once one waits for changes, and
// then the number of each trial; and when one has ended.
type watched struct {
	*servertest.Backend
	shown chan int
	ended chan struct{}
}

func newWatched(t *testing.T) watched {
	return watched{servertest.New(t), make(chan int, 100), make(chan struct{}, 2)}
}

// WatchTrials implements server.Backend.
func (w watched) WatchTrials(ctx context.Context, name string, existing bool) iter.Seq2[record.Trial, error] {
	return func(yield func(record.Trial, error) bool) {
		defer func() { w.ended <- struct{}{} }()
		waits := coordinator.WhenWaiting(ctx, func() {
			coordinator.Waiting(ctx)
			w.shown <- 0
		})
		for t, err := range w.Backend.WatchTrials(waits, name, existing) {
			if !yield(t, err) {
				return
			}
			w.shown <- t.Number
		}
	}
}

// until waits until a watch has shown something.
func (w watched) until(what int) {
	for <-w.shown != what { //nolint:revive // what was shown before
	}
}

// TestWatchTrials follows trials, with and without those that exist, by state.
func TestWatchTrials(t *testing.T) {
	type seen struct {
		Number int32
		State  string
	}
	for name, test := range map[string]struct {
		request *fantasiav1.WatchTrialsRequest
		want    []seen
	}{
		"all": {
			&fantasiav1.WatchTrialsRequest{IncludeExisting: true},
			[]seen{{1, "COMPLETED"}, {2, "RUNNING"}, {3, "QUEUED"}, {2, "COMPLETED"}, {3, "CANCELLED"}},
		},
		"changes": {
			&fantasiav1.WatchTrialsRequest{},
			[]seen{{3, "QUEUED"}, {2, "COMPLETED"}, {3, "CANCELLED"}},
		},
		"completed": {
			&fantasiav1.WatchTrialsRequest{IncludeExisting: true, States: []fantasiav1.TrialState{fantasiav1.TrialState_TRIAL_STATE_COMPLETED}},
			[]seen{{1, "COMPLETED"}, {2, "COMPLETED"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			backend := newWatched(t)
			create(t, backend.Backend, "digits")
			put := func(number int, state study.TrialState) {
				trial := evaluated(number, 1)
				trial.State = state
				backend.Put("digits", trial)
			}
			put(1, study.TrialCompleted)
			put(2, study.TrialRunning)
			c := dial(t, serve(t, backend, server.Options{}), "connect")
			test.request.Parent = "studies/digits"
			got := make(chan []seen, 1)
			ctx := within(t)
			go func() {
				var list []seen
				stream, err := c.WatchTrials(ctx, connect.NewRequest(test.request))
				for err == nil && stream.Receive() {
					trial := stream.Msg().GetTrial()
					list = append(list, seen{trial.GetNumber(), trial.GetState().String()[len("TRIAL_STATE_"):]})
				}
				if err == nil {
					err = errors.Join(stream.Err(), stream.Close())
				}
				if err != nil {
					t.Error(err)
				}
				got <- list
			}()
			// Each change waits until the watch has shown the one before.
			first := 0
			if test.request.GetIncludeExisting() {
				first = 2
			}
			backend.until(first)
			put(3, study.TrialQueued)
			backend.until(3)
			put(2, study.TrialCompleted)
			backend.until(2)
			put(3, study.TrialCancelled)
			backend.until(3)
			backend.Change("digits", func(s *server.Study) { s.Status.State = study.Stopped })
			if diff := cmp.Diff(test.want, <-got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestWatchEnds checks that a watch ends with its caller, and with the server.
func TestWatchEnds(t *testing.T) {
	for _, protocol := range []string{"connect", "grpc", "grpc-web"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			backend := newWatched(t)
			create(t, backend.Backend, "digits")
			address, stop := start(t, listen(t), backend, server.Options{})
			c := dial(t, address, protocol)
			request := &fantasiav1.WatchTrialsRequest{Parent: "studies/digits"}

			ctx, cancel := context.WithCancel(within(t))
			canceled := make(chan error, 1)
			go func() {
				stream, err := c.WatchTrials(ctx, connect.NewRequest(request))
				canceled <- drain(stream, err)
			}()
			backend.until(0)
			cancel()
			<-backend.ended
			if err := <-canceled; connect.CodeOf(err) != connect.CodeCanceled {
				t.Errorf("after the caller's end: %v", err)
			}

			drained := make(chan error, 1)
			go func() {
				stream, err := c.WatchTrials(within(t), connect.NewRequest(request))
				drained <- drain(stream, err)
			}()
			backend.until(0)
			stop()
			<-backend.ended
			if err := <-drained; connect.CodeOf(err) != connect.CodeUnavailable {
				t.Errorf("after the server's end: %v", err)
			}
		})
	}
}
