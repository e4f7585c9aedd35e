package httpserve_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/base/httpserve"
	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
)

// echo greets whoever it lets in.
func echo(t *testing.T, l net.Listener) {
	t.Helper()
	done := make(chan struct{})
	t.Cleanup(func() { _ = l.Close(); <-done })
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.WriteString(c, "x")
				_, _ = io.Copy(io.Discard, c) // until the other side or the listener closes it
				_ = c.Close()
			}()
		}
	}()
}

// caller is an open connection, and whether it was let in.
type caller struct {
	net.Conn
	in bool
}

func call(t *testing.T, address, from string) caller {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := d.DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	n, _ := io.ReadFull(c, make([]byte, 1))
	return caller{c, n == 1}
}

func byIP(remote string) (netip.Prefix, bool) {
	at, err := netip.ParseAddrPort(remote)
	return netip.PrefixFrom(at.Addr(), at.Addr().BitLen()), err == nil
}

// Connections are bounded for each address and in all, and one that is closed makes room. If
// there are too many in all, the address that has most gives way.
func TestConnectionsAreBounded(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var log testenv.Text
	echo(t, httpserve.Bound(l, httpserve.Connections{PerAddress: 3, All: 5}, byIP, slog.New(slog.NewTextHandler(&log, nil))))
	address := l.Addr().String()
	var first []caller
	for i := range 4 {
		c := call(t, address, "127.0.0.1")
		if c.in != (i < 3) {
			t.Errorf("connection %d of an address was let in: %t", i+1, c.in)
		}
		first = append(first, c)
	}
	if !log.Has("closed a connection: too many are open") || !log.Has("address=127.0.0.1:") {
		t.Errorf("the log says %q", log.String())
	}
	_ = first[2].Close()
	testenv.Eventually(t, time.Minute, func(context.Context) error {
		if !call(t, address, "127.0.0.1").in {
			return errors.New("no place is free although a connection was closed")
		}
		return nil
	})
	for range 2 {
		if !call(t, address, "127.0.0.2").in {
			t.Error("a second address was not let in")
		}
	}
	if !call(t, address, "127.0.0.3").in {
		t.Error("a third address was not let in, although another has three connections")
	}
	if _, err := io.Copy(io.Discard, first[0]); err != nil { // it ends: the oldest of the address with most
		t.Log(err) // or is reset
	}
	if call(t, address, "127.0.0.2").in && call(t, address, "127.0.0.1").in && call(t, address, "127.0.0.3").in {
		t.Error("there is no bound on all connections")
	}
}

// pipes is a listener in memory, whose time can be that of synctest.
type pipes struct {
	ends chan net.Conn
	done chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.ends:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.done)
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes"} }

// A caller has ten seconds for its TLS handshake and for its headers, however slowly it sends, and
// two minutes between requests.
func TestSlowCallersAreCutOff(t *testing.T) {
	cert, key := testenv.NewCA(t).New("server")
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		tls  bool
		send string // one byte a second
		most time.Duration
	}{
		"a handshake that never begins": {true, "", 10 * time.Second},
		"a slow handshake":              {true, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03aaaaaaaaaaaaaaaaaaaaaaaa", 10 * time.Second},
		"nothing":                       {false, "", 10 * time.Second},
		"slow headers":                  {false, "GET / HTTP/1.1\r\nHost: localhost\r\nX: aaaaaaaaaaaaaaaaaaaaaaa", 10 * time.Second},
		"an endless preface of HTTP/2":  {false, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 25 * time.Second},
		"an idle connection":            {false, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 2*time.Minute + 40*time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := &pipes{ends: make(chan net.Conn), done: make(chan struct{})}
			listener := net.Listener(p)
			if c.tls {
				listener = tls.NewListener(p, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
			}
			ctx, stop := context.WithCancel(t.Context())
			served := make(chan error, 1)
			handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "ok") })
			go func() { served <- httpserve.Serve(ctx, listener, handler, slog.New(slog.DiscardHandler)) }()
			mine, its := net.Pipe()
			p.ends <- its
			begun, closed := time.Now(), make(chan time.Duration, 1)
			go func() {
				_, _ = io.Copy(io.Discard, bufio.NewReader(mine))
				closed <- time.Since(begun)
			}()
			speed := time.Second
			if name == "an idle connection" {
				speed = 0
			}
			for i := range len(c.send) {
				time.Sleep(speed)
				if _, err := mine.Write([]byte{c.send[i]}); err != nil {
					break
				}
			}
			if took := <-closed; took > c.most {
				t.Errorf("%s: the connection was open for %v; want at most %v", name, took, c.most)
			}
			_ = mine.Close()
			stop()
			if err := <-served; err != nil {
				t.Error(err)
			}
		})
	}
}
