package cli_test

import (
	"bytes"
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/app/cli"
	"github.com/fantasia-hpo/fantasia/internal/show/display"
	"github.com/fantasia-hpo/fantasia/study"
)

// lines is an output that signals when it has received a line.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
	got  chan struct{}
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, err := l.text.Write(p)
	l.got <- struct{}{}
	return n, err
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// started is a command line that runs against a server.
type started struct {
	out, errs *lines
	code      chan int
}

func start(ctx context.Context, args ...string) started {
	s := started{out: &lines{got: make(chan struct{}, 100)}, errs: &lines{got: make(chan struct{}, 100)}, code: make(chan int, 1)}
	go func() {
		s.code <- cli.Main(ctx, args, cli.Options{Stdin: strings.NewReader(""), Stdout: s.out, Stderr: s.errs})
	}()
	return s
}

func serveOn(t *testing.T, address string, b server.Backend) (url string, stop func()) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	stop, err = serve(listener, b, nil)
	if err != nil {
		t.Fatal(err)
	}
	return listener.Addr().String(), stop
}

// TestWatchRestart follows a study through a restart of its server.
func TestWatchRestart(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) }) // after the backend has ended
	b := backend(t)
	address, stop := serveOn(t, "127.0.0.1:0", b)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	watch := start(ctx, "study", "watch", "digits", "--server", address)
	<-watch.out.got
	stop()
	b.Change("digits", func(s *server.Study) { s.Status.State = study.Completed })
	_, stop = serveOn(t, address, b)
	defer stop()
	if code := <-watch.code; code != cli.ExitOK {
		t.Errorf("exit code %d: %s", code, watch.errs)
	}
	if got := strings.Count(watch.out.String(), "\n"); got != 2 || !strings.Contains(watch.out.String(), "COMPLETED") {
		t.Errorf("the watch has shown\n%s", watch.out)
	}
}

// TestInterrupted ends commands by their context, as Ctrl-C does.
func TestInterrupted(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) }) // after the backend has ended
	b := backend(t)
	address, stop := serveOn(t, "127.0.0.1:0", b)
	defer stop()
	for _, args := range [][]string{
		{"study", "watch", "digits"},
		{"trial", "watch", "digits", "--all"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		watch := start(ctx, append(args, "--server", address)...)
		<-watch.out.got
		cancel()
		if code := <-watch.code; code != cli.ExitInterrupted {
			t.Errorf("%v: exit code %d; want %d", args, code, cli.ExitInterrupted)
		}
		if watch.errs.String() != "" {
			t.Errorf("%v: %s", args, watch.errs)
		}
	}
}

// A live watch shows what a server's study does: what runs, the best point, and why
// the last failure came.
func TestLiveWatch(t *testing.T) {
	b := backend(t)
	claimed := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	b.Change("digits", func(s *server.Study) { s.Spec.Definition.Spec.Budget.MaxDuration = study.Duration(time.Hour) })
	b.Put("digits", record.Trial{Number: 4, State: study.TrialRunning, Times: record.Times{Claimed: claimed}})
	url, stop := serveOn(t, "127.0.0.1:0", b)
	defer stop()
	got, err := cli.LiveWatchOf(t.Context(), url, "digits")
	if err != nil {
		t.Fatal(err)
	}
	got.At = time.Time{} // the clock's
	want := display.Now{
		Study: "digits", Metric: "error", State: study.Running, MaxTrials: 64, MaxDuration: time.Hour, Elapsed: 90 * time.Second,
		Counts:     record.Counts{Queued: 1, Completed: 1, Failed: 1},
		Best:       &view.Best{Trial: 1, Value: 0.03125, Parameters: view.Parameters{"lr": 1e-3, "width": 64.0}},
		Parameters: []string{"lr", "width"}, Recommended: record.Recommendation{Trial: 1, Mean: 0.04, SD: 0.0025},
		Running:     []display.Running{{Trial: 4, Since: claimed}},
		FailedTrial: 2, Failure: "exit code 1: Traceback (most recent call last): MemoryError",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
