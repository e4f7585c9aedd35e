package testenv

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
)

// Ports are chosen below those that systems assign to outgoing connections (from 32,768
// on Linux) and that Kubernetes assigns to services (from 30,000), which could take a
// port between its choice and its use. Each test process has its own block.
const (
	firstPort  = 20_000
	blockPorts = 400
	portBlocks = 25
)

// ports is this process's block.
var ports block

// FreePort returns an unused port of the loopback interface. A port is returned again
// only after all others of this process's block. It is safe for concurrent use.
func FreePort(t testing.TB) int {
	t.Helper()
	port, err := ports.next()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// block is a range of ports. The process listens on the first one for as long as it
// lives, which keeps other processes out of the block. It is safe for concurrent use.
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
		b.lock, _ = listen(b.first) // on an error, another process has the block
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
