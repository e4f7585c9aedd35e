package testenv

import (
	"net"
	"strings"
	"sync"
	"testing"
)

// Proxy forwards TCP connections to a server, and drops traffic when a test asks for
// it. Its methods are safe for concurrent use.
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
	closed            chan struct{}
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
func (p *Proxy) Hold() { p.set(&p.requests, &p.replies) }

// HoldReplies forwards requests to the server but holds its replies.
func (p *Proxy) HoldReplies() { p.set(&p.replies) }

func (p *Proxy) set(gates ...*chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
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
		gone := make(chan struct{}, 2)
		p.running.Go(func() { p.copy(server, client, &p.requests, gone) })
		p.running.Go(func() { p.copy(client, server, &p.replies, gone) })
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

// copy forwards one direction until either end closes, and then closes both.
func (p *Proxy) copy(to, from net.Conn, gate *chan struct{}, gone chan struct{}) {
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
		open := *gate
		p.mu.Unlock()
		select {
		case <-open:
		case <-gone:
			return
		case <-p.closed:
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
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
