package cli_test

import (
	"bytes"
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/internal/app/cli"
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
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	b, err := backend()
	if err != nil {
		t.Fatal(err)
	}
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
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	b, err := backend()
	if err != nil {
		t.Fatal(err)
	}
	b.Waiting = make(chan struct{}, 100)
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
