package testenv

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
)

// Ports are handed out below those that systems give to outgoing connections
// (Linux begins at 32,768) and that Kubernetes gives to services (30,000), since
// one of those could take a port between its choice and its use. Each test
// process has a block of its own.
const (
	firstPort  = 20_000
	blockPorts = 400
	portBlocks = 25
)

// ports is this process's block.
var ports block

// FreePort returns a port of the loopback interface that nobody uses now. No other
// test gets it before all others of this process's block have had their turn. It
// is safe for concurrent use.
func FreePort(t testing.TB) int {
	t.Helper()
	port, err := ports.next()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// block is a range of ports whose first one is listened on for as long as the
// process lives: that keeps other processes out. It is safe for concurrent use.
type block struct {
	mu    sync.Mutex
	lock  net.Listener
	first int
	used  int
}

func (b *block) next() (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := 0; b.lock == nil; i++ {
		if i == portBlocks {
			return 0, fmt.Errorf("all %d blocks of ports from %d on are taken", portBlocks, firstPort)
		}
		b.first = firstPort + i*blockPorts
		b.lock, _ = listen(b.first) // an error: somebody else's
	}
	for range blockPorts - 1 {
		b.used = b.used%(blockPorts-1) + 1
		l, err := listen(b.first + b.used)
		if err != nil {
			continue // in use
		}
		return b.first + b.used, l.Close()
	}
	return 0, errors.New("all ports of the block are in use")
}

func listen(port int) (net.Listener, error) {
	return net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
}
