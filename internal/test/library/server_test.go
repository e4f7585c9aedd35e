package library_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia"
	"github.com/fantasia-hpo/fantasia/remote"
)

// Programs that open the same study share its trials.
func TestProgramsShareAStudy(t *testing.T) {
	const trials = 12
	o := onServer().options(fantasia.Options{Trials: trials, Algorithm: random})
	var mu sync.Mutex
	evaluated := map[int]int{}
	var all, both sync.WaitGroup
	both.Add(2)
	for range 2 {
		all.Go(func() {
			space, x := line()
			o := o
			o.Server = &remote.Server{URL: serverURL}
			u, err := fantasia.Minimize(space, o)
			if err != nil {
				t.Error(err)
				both.Done()
				return
			}
			defer u.Close()
			met := sync.OnceFunc(func() { // each of them has a trial
				both.Done()
				both.Wait()
			})
			if err := u.Run(t.Context(), func(_ context.Context, trial *fantasia.Trial) (float64, error) {
				met()
				mu.Lock()
				evaluated[trial.Number()]++
				mu.Unlock()
				return x.Of(trial), nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for n := 1; n <= trials; n++ {
		if evaluated[n] != 1 {
			t.Errorf("trial %d was evaluated %d times", n, evaluated[n])
		}
	}
	if len(evaluated) != trials {
		t.Errorf("%d trials were evaluated, want %d", len(evaluated), trials)
	}
}

// front returns an address that stays when the server behind it gets another one, which set changes;
// "" loses every connection.
func front(t *testing.T) (address string, set func(behind string)) {
	t.Helper()
	var behind atomic.Pointer[url.URL]
	proxy := &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(behind.Load()) },
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     log.New(io.Discard, "", 0),
		Transport:    &http.Transport{DisableKeepAlives: true},
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if behind.Load().Host == "" {
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, func(to string) {
		target, err := url.Parse(to)
		if err != nil {
			t.Error(err)
			return
		}
		behind.Store(target)
	}
}

// While a server is being restarted, evaluations go on. What they report and find is kept.
func TestServerIsRestarted(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	s, err := serve(state, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address, set := front(t)
	set(s.url)
	space, x := line()
	u := open(t, space, fantasia.Options{Name: "restarted", Server: &remote.Server{URL: address}, Trials: 8, Parallel: 2, Algorithm: random})
	evaluated := map[int]int{}
	var mu sync.Mutex
	err = u.Run(t.Context(), func(_ context.Context, trial *fantasia.Trial) (float64, error) {
		mu.Lock()
		defer mu.Unlock()
		evaluated[trial.Number()]++
		if trial.Number() == 4 {
			set("")
			if err := s.stop(); err != nil {
				t.Error(err)
			}
			if err := trial.Report(1, x.Of(trial)); err != nil {
				t.Errorf("a report while the server is away: %v", err)
			}
			if s, err = serve(state, "127.0.0.1:0"); err != nil {
				return 0, err
			}
			set(s.url)
		}
		return x.Of(trial), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := count(t, u, fantasia.Completed); n != 8 || len(evaluated) != 8 {
		t.Errorf("%d trials completed, evaluations by trial %v, want 8", n, evaluated)
	}
	for n, times := range evaluated {
		if times != 1 {
			t.Errorf("trial %d was evaluated %d times", n, times)
		}
	}
	if curve, err := u.Curve(4); err != nil || len(curve) != 1 {
		t.Errorf("trial 4 has the curve %v, %v", curve, err)
	}
	if err := errors.Join(u.Close(), s.stop()); err != nil {
		t.Error(err)
	}
}

// A trial that a program did not finish goes to the next one at once when the study is closed.
func TestCloseHandsTrialsBack(t *testing.T) {
	o := onServer().options(fantasia.Options{Trials: 3, Algorithm: random})
	space, _ := line()
	first := open(t, space, o)
	trial, err := first.Ask(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := first.Tell(trial, 1, nil); !errors.Is(err, fantasia.ErrClosed) {
		t.Errorf("Tell after Close: %v", err)
	}
	if _, err := first.Ask(t.Context()); !errors.Is(err, fantasia.ErrClosed) {
		t.Errorf("Ask after Close: %v", err)
	}
	space, _ = line()
	again, err := open(t, space, o).Ask(t.Context())
	if err != nil || again.Number() != trial.Number() || again.Seed() != trial.Seed() {
		t.Errorf("the next trial is %+v, %v, want trial %d again", again, err, trial.Number())
	}
}

// A program that is started again goes on with its study, and may change what can change.
func TestStudyOnServerIsOpenedAgain(t *testing.T) {
	b := onServer()
	run := func(t *testing.T, hi float64, o fantasia.Options) (evaluated []int, err error) {
		space := fantasia.NewSpace()
		x := space.Float("x", 0, hi)
		u, err := fantasia.Minimize(space, b.options(o))
		if err != nil {
			return nil, err
		}
		defer u.Close()
		err = u.Run(t.Context(), func(_ context.Context, trial *fantasia.Trial) (float64, error) {
			evaluated = append(evaluated, trial.Number())
			if x.Of(trial) > hi {
				t.Errorf("x is %v, above %v", x.Of(trial), hi)
			}
			return x.Of(trial), nil
		})
		return evaluated, err
	}
	o := fantasia.Options{
		Trials: 3, Algorithm: fantasia.Algorithm{Name: "random", Settings: map[string]any{}}, MaxFailed: 5, Duration: time.Hour,
		EarlyStopping: fantasia.EarlyStopping{Name: "asha", Settings: map[string]any{"minSteps": 2}},
	}
	if got, err := run(t, 1, o); err != nil || !slices.Equal(got, []int{1, 2, 3}) {
		t.Errorf("the first program: trials %v, %v", got, err)
	}
	if got, err := run(t, 1, o); err != nil || len(got) != 0 {
		t.Errorf("the same again: trials %v, %v, want none", got, err)
	}
	o.Trials = 5
	if got, err := run(t, 0.5, o); err != nil || !slices.Equal(got, []int{4, 5}) {
		t.Errorf("with other bounds and a larger budget: trials %v, %v", got, err)
	}
	o.Seed = 7
	if _, err := run(t, 0.5, o); !errors.Is(err, fantasia.ErrDifferent) || !strings.Contains(err.Error(), "seed was 0 and is 7") {
		t.Errorf("another seed: %v", err)
	}
}

// A function that allows less than the text of its constraint has the other points told to be
// infeasible.
func TestConstraintOfTheProgram(t *testing.T) {
	space := fantasia.NewSpace()
	n := space.Int("n", 1, 8)
	space.Require("n < 8", func(p fantasia.Point) bool { return n.Of(p) < 4 }, n)
	u := onServer().minimize(t, space, fantasia.Options{Trials: 7, Algorithm: fantasia.Algorithm{Name: "grid"}})
	if err := u.Run(t.Context(), func(_ context.Context, trial *fantasia.Trial) (float64, error) {
		if n.Of(trial) >= 4 {
			t.Errorf("n is %d", n.Of(trial))
		}
		return float64(n.Of(trial)), nil
	}); err != nil {
		t.Fatal(err)
	}
	if completed, infeasible := count(t, u, fantasia.Completed), count(t, u, fantasia.Infeasible); completed != 3 || infeasible != 4 {
		t.Errorf("%d trials completed and %d are infeasible, want 3 and 4", completed, infeasible)
	}
}

// recorder counts the calls of a server by method.
type recorder struct {
	fantasia.Server
	mu    sync.Mutex
	calls map[string]int
}

// Call implements fantasia.Server.
func (r *recorder) Call(ctx context.Context, method string, request []byte) ([]byte, error) {
	r.mu.Lock()
	r.calls[method]++
	r.mu.Unlock()
	return r.Server.Call(ctx, method, request)
}

// A program that opens a study as it is changes nothing, and what people have noted stays.
func TestOpeningChangesNothing(t *testing.T) {
	b := onServer()
	r := &recorder{Server: b.server, calls: map[string]int{}}
	for range 2 {
		space := fantasia.NewSpace()
		x := space.Float("x", 1, 10, fantasia.Log, fantasia.Step(0.5))
		kind := fantasia.Ordered(space, "kind", []int{1, 2, 4})
		space.Int("n", 0, 3, fantasia.When(kind, 1, 4))
		open(t, space, fantasia.Options{
			Name: b.name, Server: r, Trials: 4, Seed: 3, Algorithm: fantasia.Algorithm{Name: "hebo", Settings: map[string]any{"initial": 4}},
			Initial: [][]fantasia.Assignment{{x.Is(2)}}, EarlyStopping: fantasia.EarlyStopping{Name: "percentile"},
		})
	}
	if r.calls["CreateStudy"] != 2 || r.calls["GetStudy"] != 1 || r.calls["UpdateStudy"] != 0 {
		t.Errorf("calls %v, want a study that is created, and then read but not changed", r.calls)
	}
}

func TestWrongStudiesAreRefusedByTheServer(t *testing.T) {
	away := &remote.Server{URL: "http://127.0.0.1:1"}
	there := &remote.Server{URL: serverURL}
	for what, test := range map[string]struct {
		space   func(*fantasia.Space)
		options fantasia.Options
		is      error
		want    string
	}{
		"name":     {nil, fantasia.Options{Server: there}, fantasia.ErrInvalid, "Options.Name is \"\"; want"},
		"state":    {nil, fantasia.Options{Server: there, Name: "a", State: "file"}, fantasia.ErrInvalid, "Options.State is file; want none"},
		"patience": {nil, fantasia.Options{Patience: time.Second}, fantasia.ErrInvalid, "Options.Patience is 1s; want none"},
		"algorithm": {nil, fantasia.Options{Server: there, Name: "a", Algorithm: fantasia.Algorithm{Name: "best"}}, fantasia.ErrInvalid,
			"invalid: spec.algorithm.name"},
		"rule": {nil, fantasia.Options{Server: there, Name: "a", EarlyStopping: fantasia.EarlyStopping{Name: "soon"}}, fantasia.ErrInvalid,
			"spec.earlyStopping"},
		"away": {nil, fantasia.Options{Server: away, Name: "a", Patience: time.Millisecond}, fantasia.ErrUnavailable, "127.0.0.1:1"},
		"constraint": {func(s *fantasia.Space) {
			s.Require("even", func(fantasia.Point) bool { return true }, s.Int("n", 1, 2))
		}, fantasia.Options{Server: there, Name: "a"}, fantasia.ErrInvalid, "invalid: spec.constraints[0]"},
	} {
		t.Run(what, func(t *testing.T) {
			space, _ := line()
			if test.space != nil {
				test.space(space)
			}
			_, err := fantasia.Minimize(space, test.options)
			if !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one that is %v with %q", err, test.is, test.want)
			}
		})
	}
	there.CloseIdleConnections()
}
