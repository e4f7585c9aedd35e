package family

import (
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// adopted holds a family whose orphans become children of this process. A process belongs to
// it if its parent does, or if it is a child of this process and shares a process group or a
// session with a member, or was started with the program's Variable.
type adopted struct {
	program process
	mark    []byte // the entry of the environment, between the bytes that end entries
	// seen are processes that belonged to the family when they were last looked for, by
	// their ids, with their starts.
	seen map[int]string

	stop     chan struct{}
	watching sync.WaitGroup
}

var _ members = (*adopted)(nil)

// startAdopted starts a program whose orphans are adopted. If this process cannot adopt, or
// sees no processes, only the process group is reached.
func startAdopted(cmd *exec.Cmd, trial string) (*exec.Cmd, members, error) {
	adopts := children.adopts()
	cmd = again(cmd)
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	pid := cmd.Process.Pid
	program, ok := readProcess(pid)
	if !ok || !adopts {
		return cmd, &group{leader: pid}, nil
	}
	children.add(pid)
	a := &adopted{
		program: program, mark: []byte("\x00" + Variable + "=" + trial + "\x00"),
		seen: map[int]string{}, stop: make(chan struct{}),
	}
	a.watching.Go(a.watch)
	return cmd, a, nil
}

// watch waits for adopted processes that have ended while the program runs.
func (a *adopted) watch() {
	tick := time.NewTicker(sweepInterval)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			children.sweep(now)
		case <-a.stop:
			return
		}
	}
}

func (a *adopted) reaped() { children.remove(a.program.pid) }

func (a *adopted) signal(sig syscall.Signal) {
	all := a.processes() // before members lose the ancestors that tell whose they are
	_ = syscall.Kill(-a.program.pid, sig)
	for _, p := range all {
		if p.group != a.program.pid {
			p.signal(sig)
		}
	}
}

func (a *adopted) kill() { a.signal(syscall.SIGKILL) }

func (a *adopted) alive() bool { return len(a.processes()) > 0 }

// owns reports whether a child of this process belongs to the family.
func (a *adopted) owns(p process) bool {
	if p.pid == a.program.pid && p.start == a.program.start {
		return true
	}
	if children.started(p.pid) { // another family's
		return false
	}
	if p.group == a.program.pid || p.session == a.program.pid || a.seen[p.pid] == p.start {
		return true
	}
	return a.seen[p.group] != "" || a.seen[p.session] != "" || p.marked(a.mark)
}

// processes returns the members that have not ended.
func (a *adopted) processes() []process {
	all, err := processes()
	if err != nil {
		return nil
	}
	below := map[int][]process{}
	for _, p := range all {
		below[p.parent] = append(below[p.parent], p)
	}
	var queue, found []process
	for _, p := range below[os.Getpid()] {
		if a.owns(p) {
			queue = append(queue, p)
		}
	}
	for len(queue) > 0 {
		p := queue[0]
		queue = append(queue[1:], below[p.pid]...)
		if !p.ended {
			a.seen[p.pid] = p.start
			found = append(found, p)
		}
	}
	return found
}

// orphans kills the members that this process has adopted, waits for those that have ended,
// and reports whether there were any. It is quick, since it looks at no other processes.
func (a *adopted) orphans() (any bool) {
	for _, p := range children.adopted() {
		if !a.owns(p) {
			continue
		}
		any = true
		if p.ended {
			children.reap(p.pid)
		} else {
			a.seen[p.pid] = p.start
			p.signal(syscall.SIGKILL)
		}
	}
	return any
}

// none reports whether two looks found no orphan. The first look may find that a process has ended,
// when nothing tells whose it was, and miss what it had started. The second one finds that.
func (a *adopted) none() bool {
	if a.orphans() {
		return false
	}
	return !a.orphans()
}

func (a *adopted) close(deadline time.Time) error {
	close(a.stop)
	a.watching.Wait()
	// A process that starts another and ends may hide both from one look, but not from two.
	const looks = 2
	for empty := 0; ; {
		if a.none() && len(a.seen) == 0 {
			return nil // as after most trials
		}
		left := a.processes()
		for _, p := range left {
			p.signal(syscall.SIGKILL)
		}
		if empty++; len(left) > 0 {
			empty = 0
		}
		if empty == looks {
			a.orphans() // what has ended
			return nil
		}
		if time.Now().After(deadline) {
			return leftover(left)
		}
		time.Sleep(poll)
	}
}
