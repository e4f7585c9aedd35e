package assistant

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"

	"connectrpc.com/connect"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/internal/app/local"
	"github.com/fantasia-hpo/fantasia/internal/app/standalone"
	"github.com/fantasia-hpo/fantasia/internal/exchange/fetch"
)

// Dial makes a client of the API at an address.
type Dial func(transport http.RoundTripper, url string) fetch.Service

// Remote is the place of a server.
type Remote struct{ Client fetch.Service }

var _ Place = Remote{}

func (r Remote) source() *Source { return &Source{Service: r.Client, Close: func() {}} }

// Main implements Place.
func (r Remote) Main(context.Context) (*Source, error) { return r.source(), nil }

// Study implements Place.
func (r Remote) Study(context.Context, string) (*Source, error) { return r.source(), nil }

// All implements Place.
func (r Remote) All(_ context.Context, f func(*Source) error) error { return f(r.source()) }

// Local is the place of the studies in a directory: those that it serves itself, as fantasia
// serve does, in the subdirectory Served, and those of fantasia run beside it, which can only be
// read.
type Local struct {
	// Dir is the directory with the states of fantasia run.
	Dir string
	// Served is the state directory of the studies that are served. If another process serves it,
	// that process is asked.
	Served standalone.Options
	// Hidden leaves out the studies of fantasia run, which know no tokens.
	Hidden bool
	Dial   Dial

	mu      sync.Mutex
	running *running
}

var _ Place = (*Local)(nil)

// running is a server that this process runs.
type running struct {
	url   string
	stop  context.CancelFunc
	ended chan struct{}
	err   error // once ended is closed
}

// Close ends the server that this process runs, if any.
func (l *Local) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running == nil {
		return nil
	}
	l.running.stop()
	<-l.running.ended
	return l.running.err
}

// Main implements Place. It starts the server if nobody serves the directory.
func (l *Local) Main(ctx context.Context) (*Source, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running != nil {
		select {
		case <-l.running.ended: // it has failed
			l.running = nil
		default:
			return l.at(l.running.url), nil
		}
	}
	started, err := l.start(ctx)
	if errors.Is(err, local.ErrInUse) {
		at, unknown := standalone.Served(l.Served.State)
		if unknown != nil {
			return nil, fmt.Errorf("%w; its address is not known yet, so try again", err)
		}
		return l.at(at.URL), nil
	}
	if err != nil {
		return nil, err
	}
	l.running = started
	return l.at(started.url), nil
}

// start starts a server and waits until it answers.
func (l *Local) start(ctx context.Context) (*running, error) {
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	r := &running{stop: stop, ended: make(chan struct{})}
	ready := make(chan standalone.Address, 1)
	o := l.Served
	o.Ready = func(a standalone.Address) { ready <- a }
	go func() {
		defer close(r.ended)
		r.err = standalone.Run(serving, o)
	}()
	select {
	case at := <-ready:
		r.url = at.URL
		return r, nil
	case <-r.ended:
		stop()
		return nil, cmp.Or(r.err, errors.New("the server ended"))
	case <-ctx.Done():
		stop()
		<-r.ended
		return nil, fmt.Errorf("start a server: %w", ctx.Err())
	}
}

// at returns the source of a server of this machine.
func (l *Local) at(url string) *Source {
	transport := &http.Transport{}
	return &Source{Service: l.Dial(transport, url), Close: transport.CloseIdleConnections}
}

// runs returns the state directories of fantasia run.
func (l *Local) runs() []string {
	if l.Hidden {
		return nil
	}
	states, err := local.States(l.Dir)
	if err != nil {
		return nil // there is none
	}
	var list []string
	for _, state := range states {
		if filepath.Clean(state) != filepath.Clean(l.Served.State) {
			list = append(list, state)
		}
	}
	return list
}

// open returns the source of a state of fantasia run.
func (l *Local) open(ctx context.Context, state string) (*Source, error) {
	c, err := local.Connect(ctx, state)
	if err != nil {
		return nil, err
	}
	return &Source{
		Service: l.Dial(c.Transport, "http://state"), Directory: state, Idle: c.Idle,
		Close: func() { _ = c.Close() }, // nothing was written
	}, nil
}

// Study implements Place.
func (l *Local) Study(ctx context.Context, nameOrID string) (*Source, error) {
	served, err := l.Main(ctx)
	if err != nil {
		return nil, err
	}
	_, err = fetch.Send(ctx, served.Service, fetch.Service.GetStudy, &fantasiav1.GetStudyRequest{Name: "studies/" + nameOrID})
	if connect.CodeOf(err) != connect.CodeNotFound {
		return served, nil
	}
	for _, state := range l.runs() {
		if filepath.Base(state) == nameOrID {
			served.Close()
			return l.open(ctx, state)
		}
	}
	return served, nil
}

// All implements Place.
func (l *Local) All(ctx context.Context, f func(*Source) error) error {
	served, err := l.Main(ctx)
	if err != nil {
		return err
	}
	defer served.Close()
	if err := f(served); err != nil {
		return err
	}
	for _, state := range l.runs() {
		src, err := l.open(ctx, state)
		if err == nil {
			err = f(src)
			src.Close()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", state, err)
		}
	}
	return nil
}
