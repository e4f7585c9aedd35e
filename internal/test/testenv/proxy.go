package testenv

import (
	"bytes"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// Proxy forwards TCP connections to a server, and holds, slows or drops traffic when a
// test asks for it. Its methods are safe for concurrent use.
type Proxy struct {
	// Addr is where clients connect, host:port.
	Addr string

	listener net.Listener
	running  sync.WaitGroup

	mu     sync.Mutex
	target string
	conns  map[net.Conn]struct{}
	// requests and replies are closed channels while that direction is forwarded.
	requests, replies chan struct{}
	// only limits what is held to the connections that it matches; nil for all.
	only func(first []byte) bool
	// delay is how long each piece of data waits before it is forwarded.
	delay  time.Duration
	closed chan struct{}
}

// StartProxy starts a proxy in front of a server's address (host:port, or a URL that
// contains it); the test's end closes it.
func StartProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	open := make(chan struct{})
	close(open)
	p := &Proxy{Addr: l.Addr().String(), target: host(target), listener: l,
		conns: map[net.Conn]struct{}{}, requests: open, replies: open, closed: make(chan struct{})}
	p.running.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// host returns the host and port of a server's address or URL.
func host(target string) string {
	if _, rest, ok := strings.Cut(target, "://"); ok {
		return rest
	}
	return target
}

// Redirect forwards new connections to another server.
func (p *Proxy) Redirect(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = host(target)
}

// Hold stops both directions without closing any connection, like a network outage.
func (p *Proxy) Hold() { p.set(nil, &p.requests, &p.replies) }

// HoldOnly is Hold for the connections of which match returns true. It gets the first
// piece of data that the client sent, which tells who the client is.
func (p *Proxy) HoldOnly(match func(first []byte) bool) { p.set(match, &p.requests, &p.replies) }

// HoldReplies forwards requests to the server but holds its replies.
func (p *Proxy) HoldReplies() { p.set(nil, &p.replies) }

// Slow makes each piece of data wait before it is forwarded, in each direction; 0 ends
// that.
func (p *Proxy) Slow(delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = delay
}

// set holds directions of the connections that only matches. A proxy MUST be healed
// before it holds anything else.
func (p *Proxy) set(only func(first []byte) bool, gates ...*chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.only = only
	for _, g := range gates {
		*g = make(chan struct{})
	}
}

// Heal forwards everything again, including what was held on connections that are still
// open.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, g := range []chan struct{}{p.requests, p.replies} {
		select {
		case <-g:
		default:
			close(g)
		}
	}
}

// Drop closes all connections; held traffic is lost.
func (p *Proxy) Drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

// Reset is Drop with a reset of TCP in place of an end, as of a machine that has lost its
// connections.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = c.Close()
	}
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		target := p.target
		p.mu.Unlock()
		server, err := net.Dial("tcp", target)
		if err != nil {
			_ = client.Close()
			continue
		}
		if !p.keep(client, server) {
			return
		}
		gone, first := make(chan struct{}, 2), new([]byte)
		p.running.Go(func() { p.copy(server, client, &p.requests, first, true, gone) })
		p.running.Go(func() { p.copy(client, server, &p.replies, first, false, gone) })
	}
}

// keep registers the two ends of a connection, or closes them if the test has ended.
func (p *Proxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		p.conns[c] = struct{}{}
	}
	select {
	case <-p.closed:
		for _, c := range conns {
			_ = c.Close()
		}
		return false
	default:
		return true
	}
}

// copy forwards one direction until either end closes, and then closes both. The copier
// of the requests sets first to the first piece of data.
func (p *Proxy) copy(to, from net.Conn, gate *chan struct{}, first *[]byte, requests bool, gone chan struct{}) {
	defer func() {
		gone <- struct{}{}
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, c := range []net.Conn{to, from} {
			_ = c.Close()
			delete(p.conns, c)
		}
	}()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		if requests && *first == nil {
			*first = bytes.Clone(buf[:n])
		}
		open, delay := *gate, p.delay
		if p.only != nil && !p.only(*first) {
			open = nil
		}
		p.mu.Unlock()
		if !p.wait(open, delay, gone) {
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// wait waits for a delay and then for a gate, if it is not nil. It returns false if the
// connection or the proxy is closed first.
func (p *Proxy) wait(gate chan struct{}, delay time.Duration, gone chan struct{}) bool {
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-gone:
			return false
		case <-p.closed:
			return false
		}
	}
	if gate == nil {
		return true
	}
	select {
	case <-gate:
		return true
	case <-gone:
		return false
	case <-p.closed:
		return false
	}
}

func (p *Proxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	close(p.closed)
	p.mu.Unlock()
	p.Drop()
	p.running.Wait()
}
