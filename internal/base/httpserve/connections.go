package httpserve

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"
)

// Connections bound how many connections a listener has open, whatever they are used for: one that
// sends nothing costs memory and a file descriptor as well. The zero value of each field means
// its default.
type Connections struct {
	// PerAddress is how many one address may have open. Default 5,000: it can be a proxy.
	PerAddress int
	// All is how many there may be, default 20,000. Both defaults are less where the process may
	// open few files.
	All int
}

func (c Connections) withDefaults() Connections {
	all := 20_000
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err == nil && files.Cur < 40_000 {
		all = max(16, int(files.Cur)/2) // the rest is for files and other connections
	}
	c.All = cmp.Or(c.All, all)
	c.PerAddress = cmp.Or(c.PerAddress, c.All/4)
	return c
}

// Bound returns a listener that closes connections beyond the limits at once. If there are too many
// in all, a new one takes the place of the oldest one of the address that has most, so that nobody
// can keep all others out. network returns what counts as one address, of a remote address with
// its port; where it returns false, as for a socket, connections are not limited. The logger gets a
// line for each that is closed.
func Bound(l net.Listener, limits Connections, network func(remote string) (netip.Prefix, bool), logger *slog.Logger) net.Listener {
	return &bounded{Listener: l, limits: limits.withDefaults(), network: network, logger: logger, open: map[netip.Prefix]*list.List{}}
}

type bounded struct {
	net.Listener
	limits  Connections
	network func(remote string) (netip.Prefix, bool)
	logger  *slog.Logger

	mu   sync.Mutex
	all  int
	open map[netip.Prefix]*list.List // of *connection, the oldest first; none is empty
}

// connection is one that counts until it is closed.
type connection struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.leave()
	return c.Conn.Close()
}

// Accept implements net.Listener.
func (b *bounded) Accept() (net.Conn, error) {
	for {
		c, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from, ok := b.network(c.RemoteAddr().String())
		if !ok {
			return c, nil
		}
		counted, instead := b.enter(from, c)
		if instead != nil {
			b.logger.Warn("closed a connection: too many are open", slog.String("address", instead.RemoteAddr().String()),
				slog.Int("per_address", b.limits.PerAddress), slog.Int("all", b.limits.All))
			_ = instead.Close() // nobody waits for an answer
		}
		if counted != nil {
			return counted, nil
		}
	}
}

// enter counts a connection, nil if it has no place, and returns one that is to be closed.
func (b *bounded) enter(from netip.Prefix, c net.Conn) (counted, instead net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	own := 0
	if l := b.open[from]; l != nil {
		own = l.Len()
	}
	if own >= b.limits.PerAddress {
		return nil, c
	}
	if b.all >= b.limits.All {
		var most *list.List
		for _, l := range b.open {
			if most == nil || l.Len() > most.Len() {
				most = l
			}
		}
		if most == nil || most.Len() <= own {
			return nil, c
		}
		instead, _ = most.Front().Value.(*connection)
	}
	l := b.open[from]
	if l == nil {
		l = list.New()
		b.open[from] = l
	}
	entered := &connection{Conn: c}
	place := l.PushBack(entered)
	b.all++
	entered.leave = sync.OnceFunc(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.all--
		if l.Remove(place); l.Len() == 0 {
			delete(b.open, from)
		}
	})
	return entered, instead
}

// BodyTimeout returns a handler that limits the time for which a request's body may be
// read to d, from the start of the request. Reading then fails with an error that wraps
// context.DeadlineExceeded. An answer may take any time.
func BodyTimeout(next http.Handler, d time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		// Writers of tests know no deadlines.
		if r.Body == nil || r.Body == http.NoBody || control.SetReadDeadline(time.Now().Add(d)) != nil {
			next.ServeHTTP(w, r)
			return
		}
		r.Body = &timedBody{ReadCloser: r.Body, control: control, limit: d}
		next.ServeHTTP(w, r)
	})
}

// timedBody lifts the deadline at the body's end: over HTTP/1, it would otherwise end the
// request's context later.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
	limit   time.Duration
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = fmt.Errorf("the request's body took longer than %v: %w", b.limit, context.DeadlineExceeded)
	case err != nil:
		_ = b.control.SetReadDeadline(time.Time{}) // the connection may be gone
	}
	return n, err
}
