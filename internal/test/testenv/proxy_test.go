package testenv

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// echo starts a server that answers each line with itself and reports it.
func echo(t *testing.T) (addr string, seen chan string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	seen = make(chan string, 16)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			for r := bufio.NewReader(c); ; {
				line, err := r.ReadString('\n')
				if err != nil {
					break
				}
				seen <- line
				if _, err := io.WriteString(c, line); err != nil {
					break
				}
			}
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return l.Addr().String(), seen
}

func TestProxyHoldsAndDrops(t *testing.T) {
	addr, seen := echo(t)
	p := StartProxy(t, "tcp://"+addr)
	c, err := net.Dial("tcp", p.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	r := bufio.NewReader(c)
	send := func(line string) {
		t.Helper()
		if _, err := io.WriteString(c, line); err != nil {
			t.Fatal(err)
		}
	}
	receive := func(wait time.Duration) (string, error) {
		if err := c.SetReadDeadline(time.Now().Add(wait)); err != nil {
			t.Fatal(err)
		}
		return r.ReadString('\n')
	}

	send("1\n")
	if got, err := receive(10 * time.Second); got != "1\n" {
		t.Fatalf("through an open proxy: %q, %v", got, err)
	}
	p.HoldReplies()
	<-seen
	send("2\n")
	if got := <-seen; got != "2\n" {
		t.Fatalf("the server saw %q; requests must pass", got)
	}
	if got, err := receive(20 * time.Millisecond); err == nil {
		t.Fatalf("a held reply came through: %q", got)
	}
	p.Heal()
	if got, err := receive(10 * time.Second); got != "2\n" {
		t.Fatalf("after healing: %q, %v", got, err)
	}
	p.Drop()
	if got, err := receive(10 * time.Second); !errors.Is(err, io.EOF) {
		t.Fatalf("after a drop: %q, %v; want the end of the connection", got, err)
	}
}

// dialled is a connection through a proxy. ask sends a line and returns the answer, if it
// comes within a time.
func dialled(t *testing.T, p *Proxy) (ask func(line string, wait time.Duration) (string, error)) {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	r := bufio.NewReader(c)
	return func(line string, wait time.Duration) (string, error) {
		if err := c.SetDeadline(time.Now().Add(wait)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, line); err != nil {
			t.Fatal(err)
		}
		return r.ReadString('\n')
	}
}

func TestProxyHoldsOneClientOnly(t *testing.T) {
	addr, seen := echo(t)
	p := StartProxy(t, addr)
	ask := dialled(t, p)
	if got, err := ask("I am held\n", 10*time.Second); got != "I am held\n" {
		t.Fatalf("through an open proxy: %q, %v", got, err)
	}
	<-seen
	p.HoldOnly(func(first []byte) bool { return bytes.HasPrefix(first, []byte("I am free")) })
	if got, err := ask("another is held\n", 10*time.Second); got != "another is held\n" {
		t.Fatalf("a client that is not meant: %q, %v", got, err)
	}
	<-seen
	p.Heal()
	p.HoldOnly(func(first []byte) bool { return bytes.HasPrefix(first, []byte("I am held")) })
	if got, err := ask("now me\n", 20*time.Millisecond); err == nil {
		t.Fatalf("a client that is held got %q", got)
	}
	select {
	case line := <-seen:
		t.Fatalf("the server saw %q of a client that is held", line)
	default:
	}
}

func TestProxyIsSlow(t *testing.T) {
	addr, _ := echo(t)
	p := StartProxy(t, addr)
	ask := dialled(t, p)
	const delay = 50 * time.Millisecond
	p.Slow(delay)
	began := time.Now()
	if got, err := ask("1\n", 10*time.Second); got != "1\n" || time.Since(began) < 2*delay {
		t.Errorf("after %s: %q, %v; want the answer after %s", time.Since(began), got, err, 2*delay)
	}
}
