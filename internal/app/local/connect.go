package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/coordinator/journal"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
	"github.com/fantasia-hpo/fantasia/internal/base/httpserve"
)

const (
	// socketName is the socket in the state directory where a run answers questions
	// about its study.
	socketName = "api.sock"
	// longestSocket is the longest path of a socket that every system accepts.
	longestSocket = 100
	// patience is how long Connect waits for another reader of the directory.
	patience = 10 * time.Second
)

var (
	// ErrNoState means that a directory is not the state of a run or a server.
	ErrNoState = errors.New("no study is kept there")
	// ErrLongPath means that a directory's path is too long for its socket.
	ErrLongPath = errors.New("the path is too long for a socket")
)

// States returns the state directories below dir: dir itself if it is one, or the journal of a
// Go program, otherwise those among its subdirectories. It fails with ErrNoState if there is none.
func States(dir string) ([]string, error) {
	if isState(dir) || journal.Is(dir) {
		return []string{dir}, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w: %w", dir, ErrNoState, err)
	}
	var found []string
	for _, e := range entries {
		if inner := filepath.Join(dir, e.Name()); isState(inner) {
			found = append(found, inner)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("read %s: %w", dir, ErrNoState)
	}
	return found, nil
}

func isState(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, etcdDir))
	return err == nil && info.IsDir()
}

// Connection answers the API's questions about the study in a state directory. It is
// read-only.
type Connection struct {
	Transport http.RoundTripper
	// Idle means that no run has the directory open, so that nothing happens in it.
	Idle bool
	// Close ends the connection; it MUST be called.
	Close func() error
}

// Connect connects to the run that uses a state directory or, if there is none, serves
// the directory from this process. It also serves the journal of a Go program, as it is now. It
// fails with ErrNoState if the directory holds no study, and with ErrInUse if a process uses the
// directory but does not answer.
func Connect(ctx context.Context, state string) (*Connection, error) {
	if journal.Is(state) {
		return serveJournal(state)
	}
	if !isState(state) {
		return nil, fmt.Errorf("read %s: %w", state, ErrNoState)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		transport, done, err := serveState(context.WithoutCancel(ctx), state) // it outlives this call
		if err == nil {
			return &Connection{Transport: transport, Idle: true, Close: done}, nil
		}
		if !errors.Is(err, ErrInUse) {
			return nil, err
		}
		// A run answers on its socket; another reader will be done soon.
		dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
			path, err := socketPath(state)
			if err != nil {
				return nil, err
			}
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}
		if c, errDial := dial(ctx, "", ""); errDial == nil {
			t := &http.Transport{DialContext: dial}
			return &Connection{Transport: t, Close: func() error { t.CloseIdleConnections(); return nil }}, c.Close()
		}
		if !backoff.Sleep(ctx, 100*time.Millisecond) {
			return nil, err
		}
	}
}

// socketPath returns the shorter of the two paths to a state directory's socket.
func socketPath(state string) (string, error) {
	path := filepath.Join(state, socketName)
	if absolute, err := filepath.Abs(path); err == nil && len(absolute) < len(path) {
		path = absolute
	} else if here, err := os.Getwd(); err == nil {
		if relative, err := filepath.Rel(here, path); err == nil && len(relative) < len(path) {
			path = relative
		}
	}
	if len(path) > longestSocket {
		return "", fmt.Errorf("%s: %w", path, ErrLongPath)
	}
	return path, nil
}

// serveState answers from the state directory itself, and holds its lock until done.
func serveState(ctx context.Context, state string) (transport http.RoundTripper, done func() error, err error) {
	client, done, err := OpenEtcd(ctx, state)
	if err != nil {
		return nil, nil, err
	}
	n := &node{o: Options{State: state}, log: slog.New(slog.DiscardHandler), ledger: ledger.New(client, ledger.Options{})}
	handler, err := n.handler(&idleState{node: n})
	if err != nil {
		return nil, nil, errors.Join(err, done())
	}
	return httpserve.InProcess{Handler: handler}, done, nil
}

// Listen listens on the socket of a state directory that this process has locked; Connect
// finds it there. It fails with ErrLongPath if the directory's path is too long.
func Listen(state string) (net.Listener, error) {
	path, err := socketPath(state)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) { // left by a killed process
		return nil, fmt.Errorf("remove the last process's socket: %w", err)
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen for commands: %w", err)
	}
	return listener, nil
}

// answer serves the study on the state directory's socket while it runs. If the
// directory's path is too long for a socket, it serves nothing.
func (n *node) answer() error {
	listener, err := Listen(n.o.State)
	if errors.Is(err, ErrLongPath) {
		n.log.Warn("commands cannot query this study while it runs", "cause", err)
		return nil
	}
	if err != nil {
		return err
	}
	return n.serve(listener)
}

// handler answers questions about the study; idle is the state directory if no run has it open.
func (n *node) handler(idle *idleState) (http.Handler, error) {
	path, handler, err := server.New(&kept{from: inState{n}, idle: idle}, server.Options{ReadOnly: errReadOnly, Logger: n.log})
	if err != nil {
		return nil, fmt.Errorf("serve the state: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle(path, handler)
	return mux, nil
}

// serve answers on a listener until the stack is closed.
func (n *node) serve(l net.Listener) error {
	handler, err := n.handler(nil)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	s := &http.Server{Handler: handler, ReadHeaderTimeout: closeTimeout}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = s.Serve(l) // returns after Close
	}()
	n.stack.PushClose("the answers to commands", func() error {
		// Whoever follows the log of a trial that has just ended gets the rest of it.
		ctx, cancel := context.WithTimeout(context.Background(), 4*logPause)
		defer cancel()
		err := s.Shutdown(ctx)
		if err != nil {
			err = s.Close()
		}
		<-served
		return err
	})
	return nil
}
