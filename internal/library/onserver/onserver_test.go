package onserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fantasia-hpo/fantasia"
)

// scripted is a server in virtual time that gives out one trial after the other. It is for what a
// real one does only after a while; internal/test/library tests with a real one.
type scripted struct {
	mu sync.Mutex
	// away says that nobody answers.
	away bool
	// action answers heartbeats and reports.
	action string
	given  int      // trials so far
	calls  []string // that were answered, with what is worth a comparison
}

const scriptedLease = 30 * time.Second

// set changes how the server behaves.
func (s *scripted) set(change func(*scripted)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// answered returns the calls of methods that were answered, in their order.
func (s *scripted) answered(methods ...string) (list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		var method string
		_, _ = fmt.Sscan(c, &method)
		if slices.Contains(methods, method) {
			list = append(list, c)
		}
	}
	return list
}

// Call implements fantasia.Server.
func (s *scripted) Call(ctx context.Context, method string, request []byte) ([]byte, error) {
	for {
		if answer, ok := s.answer(method, request); ok {
			return []byte(answer), nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: nobody is there", fantasia.ErrUnavailable)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// CloseIdleConnections implements fantasia.Server.
func (s *scripted) CloseIdleConnections() {}

// answer returns the answer to a call; false if nobody is there.
func (s *scripted) answer(method string, request []byte) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return "", false
	}
	var asked struct {
		Step    any   `json:"step"`
		Earlier []any `json:"earlier"`
		Values  []any `json:"values"`
	}
	if err := json.Unmarshal(request, &asked); err != nil {
		panic(err)
	}
	switch method {
	case "CreateStudy":
		return `{"study": {"id": "s"}}`, true
	case "SuggestTrials":
		s.given++
		return fmt.Sprintf(
			`{"trials": [{"number": %d, "state": "TRIAL_STATE_RUNNING", "parameters": {"x": 0.5}, "attempts": [{"number": 1}]}], "lease": "%.0fs"}`,
			s.given, scriptedLease.Seconds()), true
	case "HeartbeatTrials":
		s.calls = append(s.calls, method)
		return fmt.Sprintf(`{"instructions": [{"trial": 1, "action": "TRIAL_ACTION_%s", "reason": "so it is"}]}`, s.action), true
	case "AddMeasurement":
		s.calls = append(s.calls, fmt.Sprintf("AddMeasurement %d earlier, step %v", len(asked.Earlier), asked.Step))
		return fmt.Sprintf(`{"action": "TRIAL_ACTION_%s", "reason": "so it is"}`, s.action), true
	case "CompleteTrial":
		s.calls = append(s.calls, fmt.Sprintf("CompleteTrial %v", asked.Values))
		return `{"trial": {"number": 1, "state": "TRIAL_STATE_COMPLETED"}}`, true
	default:
		s.calls = append(s.calls, method)
		return "{}", true
	}
}

// openScripted opens a study on a scripted server; the test closes it.
func openScripted(t *testing.T, patience time.Duration) (*scripted, *fantasia.Study) {
	t.Helper()
	s := &scripted{action: "CONTINUE"}
	space := fantasia.NewSpace()
	space.Float("x", 0, 1)
	u, err := fantasia.Minimize(space, fantasia.Options{Name: "a", Server: s, Patience: patience, Parallel: 1})
	if err != nil {
		t.Fatal(err)
	}
	return s, u
}

// The lease of a trial is renewed three times within it, until the trial ends, also after the server
// was away.
func TestLeaseIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, u := openScripted(t, time.Hour)
		defer u.Close()
		trial, err := u.Ask(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(scriptedLease + time.Second)
		if n := len(s.answered("HeartbeatTrials")); n != 3 {
			t.Errorf("%d heartbeats in a lease, want 3", n)
		}
		s.set(func(s *scripted) { s.away = true })
		time.Sleep(20 * time.Minute)
		if trial.ShouldStop() {
			t.Error("the evaluation ends because the server is away")
		}
		s.set(func(s *scripted) { s.away = false })
		time.Sleep(scriptedLease)
		if n := len(s.answered("HeartbeatTrials")); n < 6 {
			t.Errorf("%d heartbeats after the server is back, want 6 or more", n)
		}
		if err := u.Tell(trial, 1, nil); err != nil {
			t.Fatal(err)
		}
		before := len(s.answered("HeartbeatTrials"))
		time.Sleep(time.Hour)
		if n := len(s.answered("HeartbeatTrials")); n != before {
			t.Errorf("%d heartbeats for a trial that has ended", n-before)
		}
	})
}

// A trial that the server stops ends with ErrStopped. One that is lost ends the objective's
// context, and makes room for another; a value that is found nevertheless counts.
func TestServerStopsTrials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, u := openScripted(t, time.Hour)
		defer u.Close()
		trial, err := u.Ask(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.set(func(s *scripted) { s.action = "PRUNE" })
		if err := trial.Report(1, 1); !errors.Is(err, fantasia.ErrStopped) || !trial.ShouldStop() {
			t.Errorf("Report of a trial that is stopped: %v", err)
		}
		s.set(func(s *scripted) { s.action = "ABANDON" })
		time.Sleep(scriptedLease)
		if err := trial.Report(2, 1); !errors.Is(err, fantasia.ErrEnded) {
			t.Errorf("Report of a trial that is lost: %v", err)
		}
		s.set(func(s *scripted) { s.action = "CONTINUE" })
		second, err := u.Ask(t.Context())
		if err != nil || second.Number() != 2 {
			t.Fatalf("the next trial is %+v, %v", second, err)
		}
		if err := u.Tell(trial, 5, nil); err != nil {
			t.Errorf("Tell of the trial that was lost: %v", err)
		}
		if err := u.Tell(second, 6, nil); err != nil {
			t.Error(err)
		}
		if got := s.answered("CompleteTrial"); !slices.Equal(got, []string{"CompleteTrial [5]", "CompleteTrial [6]"}) {
			t.Errorf("told %q", got)
		}
		if err := u.Tell(trial, 5, nil); !errors.Is(err, fantasia.ErrEnded) {
			t.Errorf("Tell again: %v", err)
		}
	})
}

// Reports and results wait for a server that is away, and arrive in their order. A result that
// could not be told in time can be told again.
func TestResultsWaitForTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, u := openScripted(t, 10*time.Minute)
		defer u.Close()
		trial, err := u.Ask(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.set(func(s *scripted) { s.away = true })
		began := time.Now()
		for step := 1; step <= 700; step++ {
			if err := trial.Report(step, 1); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took > 11*time.Second {
			t.Errorf("700 reports to a server that is away took %v", took)
		}
		if err := u.Tell(trial, 3, nil); !errors.Is(err, fantasia.ErrUnavailable) {
			t.Errorf("Tell without a server: %v", err)
		}
		if took := time.Since(began); took < 10*time.Minute || took > 15*time.Minute {
			t.Errorf("Tell has waited for %v, want 10 minutes", took)
		}
		go func() {
			time.Sleep(5 * time.Minute)
			s.set(func(s *scripted) { s.away = false })
		}()
		if err := u.Tell(trial, 3, nil); err != nil {
			t.Errorf("Tell again: %v", err)
		}
		want := []string{"AddMeasurement 499 earlier, step 500", "AddMeasurement 199 earlier, step 700", "CompleteTrial [3]"}
		if got := s.answered("AddMeasurement", "CompleteTrial"); !slices.Equal(got, want) {
			t.Errorf("calls %q, want %q", got, want)
		}
	})
}

// Ctrl-C does not wait for a server that is away, and Close does not either.
func TestInterruptedWithoutServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, u := openScripted(t, time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		err := u.Run(ctx, func(ctx context.Context, _ *fantasia.Trial) (float64, error) {
			s.set(func(s *scripted) { s.away = true })
			cancel()
			<-ctx.Done()
			return 0, ctx.Err()
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
		s.set(func(s *scripted) { s.away = false })
		if _, err := u.Ask(t.Context()); err != nil {
			t.Error(err)
		}
		s.set(func(s *scripted) { s.away = true })
		if err := errors.Join(u.Close(), u.Close()); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("ending took %v", took)
		}
	})
}

// Who waits for a trial learns that the study is closed.
func TestAskOfAStudyThatIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, u := openScripted(t, time.Hour)
		if _, err := u.Ask(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := make(chan error)
		go func() {
			_, err := u.Ask(t.Context())
			got <- err
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := u.Ask(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a second trial at once: %v", err)
		}
		if err := u.Close(); err != nil {
			t.Error(err)
		}
		if err := <-got; !errors.Is(err, fantasia.ErrClosed) {
			t.Errorf("Ask of a study that is closed: %v", err)
		}
	})
}
