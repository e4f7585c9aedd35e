// Package library_test tests package fantasia with both of its bindings: a study in the process, and
// one on a server.
package library_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/fantasia-hpo/fantasia"
	"github.com/fantasia-hpo/fantasia/internal/app/standalone"
	"github.com/fantasia-hpo/fantasia/remote"
)

// serverURL is the address of the server that the tests share.
var serverURL string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "fantasia")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	s, err := serve(filepath.Join(dir, "state"), "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	serverURL = s.url
	code := m.Run()
	if err := s.stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// server is a server in this process.
type server struct {
	url    string
	cancel context.CancelFunc
	ended  chan error
}

// serve starts a server with a state directory at an address.
func serve(state, listen string) (*server, error) {
	ctx, cancel := context.WithCancel(context.Background())
	ready := make(chan standalone.Address, 1)
	s := &server{cancel: cancel, ended: make(chan error, 1)}
	go func() {
		s.ended <- standalone.Run(ctx,
			standalone.Options{State: state, Listen: listen, Version: "test", Ready: func(a standalone.Address) { ready <- a }})
	}()
	select {
	case a := <-ready:
		s.url = a.URL
		return s, nil
	case err := <-s.ended:
		cancel()
		return nil, fmt.Errorf("the server ended: %w", err)
	}
}

// stop ends the server.
func (s *server) stop() error {
	s.cancel()
	return <-s.ended
}

// binding is where a study of the suite is led.
type binding struct {
	server fantasia.Server // nil for this process
	name   string          // of the study on the server
}

// studies counts those on the server: with -count, a test makes its study several times.
var studies atomic.Int32

// onServer returns a binding with a new name.
func onServer() binding {
	return binding{server: &remote.Server{URL: serverURL}, name: fmt.Sprintf("study-%d", studies.Add(1))}
}

// each runs a test with each binding.
func each(t *testing.T, test func(*testing.T, binding)) {
	t.Run("in process", func(t *testing.T) { test(t, binding{}) })
	t.Run("on a server", func(t *testing.T) { test(t, onServer()) })
}

// options returns options for the binding.
func (b binding) options(o fantasia.Options) fantasia.Options {
	if b.server != nil {
		o.Name, o.Server = b.name, b.server
	}
	return o
}

// minimize opens a study that ends with the test.
func (b binding) minimize(t testing.TB, space *fantasia.Space, o fantasia.Options) *fantasia.Study {
	t.Helper()
	return open(t, space, b.options(o))
}

// open opens a study that ends with the test.
func open(t testing.TB, space *fantasia.Space, o fantasia.Options) *fantasia.Study {
	t.Helper()
	u, err := fantasia.Minimize(space, o)
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, u)
	return u
}

// closeAtEnd closes a study when the test ends.
func closeAtEnd(t testing.TB, study io.Closer) {
	t.Helper()
	t.Cleanup(func() {
		if err := study.Close(); err != nil {
			t.Error(err)
		}
	})
}

// random is the fastest algorithm.
var random = fantasia.Algorithm{Name: "random"}

// line returns a space of one parameter from 0 to 1.
func line() (*fantasia.Space, fantasia.Param[float64]) {
	space := fantasia.NewSpace()
	return space, space.Float("x", 0, 1)
}

// count returns how many trials are in a state.
func count(t testing.TB, u *fantasia.Study, state fantasia.State) (n int) {
	t.Helper()
	for r, err := range u.Trials() {
		if err != nil {
			t.Fatal(err)
		}
		if r.State == state {
			n++
		}
	}
	return n
}
