package family

import (
	"syscall"
	"time"
)

// group reaches a family by the process group of its program alone.
type group struct{ leader int }

var _ members = (*group)(nil)

func (g *group) signal(sig syscall.Signal) { _ = syscall.Kill(-g.leader, sig) }

func (g *group) kill() { g.signal(syscall.SIGKILL) }

func (g *group) alive() bool { return groupAlive(g.leader) }

func (g *group) reaped() {}

func (g *group) close(time.Time) error {
	g.kill()
	return nil
}
