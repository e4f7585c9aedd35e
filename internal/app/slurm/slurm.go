// Package slurm runs the workers of a study as jobs of Slurm: an array of jobs, each of which is a
// worker that takes trials from the coordinator in this process. It needs nothing but Slurm's
// commands, a port that the nodes reach, and a directory that they share.
package slurm

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fantasia-hpo/fantasia/internal/app/local"
)

// scheme begins the addresses of NATS.
const scheme = "nats://"

// Remote prepares the shared directory, and returns the workers of a run whose NATS listens at an
// address: host:port, in which host is how the nodes call this machine, by default its name. Without
// an address, the port of the last run is used if it is known.
func (f *Fleet) Remote(listen string) (*local.Remote, error) {
	key, err := makeShared(f.Job.Shared)
	if err != nil {
		return nil, err
	}
	last, err := readRecord(f.Job.Shared)
	if err != nil {
		return nil, err
	}
	host, port, err := address(listen, last.NATS)
	if err != nil {
		return nil, err
	}
	bind := "" // all interfaces: the name of this machine may be known by another address here than to the nodes
	if ip := net.ParseIP(host); ip != nil {
		bind = host
	}
	return &local.Remote{
		Listen: net.JoinHostPort(bind, port), Worker: key, Dir: filepath.Join(f.Job.Shared, workersDir),
		Listening: func(port int) error {
			last.NATS, last.Pool = scheme+net.JoinHostPort(host, strconv.Itoa(port)), f.Pool
			return last.write(f.Job.Shared)
		},
		Run: f.Run,
	}, nil
}

// CheckState refuses a state directory on a network file system.
func CheckState(state string) error { return checkState(state, remoteFileSystem) }

// checkState is CheckState for any way to learn the file system of a path.
func checkState(state string, kind func(path string) (string, error)) error {
	path, err := filepath.Abs(state)
	if err != nil {
		return fmt.Errorf("find the state directory: %w", err)
	}
	found, err := kind(path)
	if err != nil {
		return fmt.Errorf("look at the file system of %s: %w", path, err)
	}
	if found != "" {
		return fmt.Errorf("--state is %s, which is on %s: locks and mapped files are not safe there, so the study could be damaged; want a "+
			"directory on a local disk, such as /var/tmp/%s-%d. Only --shared may be on %s",
			path, found, filepath.Base(path), os.Getuid(), found)
	}
	return nil
}

// address completes the address at which nodes reach this machine.
func address(listen, last string) (host, port string, err error) {
	if listen != "" {
		if host, port, err = net.SplitHostPort(listen); err != nil {
			return "", "", fmt.Errorf("--listen is %q; want HOST:PORT, such as login1:4222 or login1:0: %w", listen, err)
		}
	}
	if host == "" {
		if host, err = os.Hostname(); err != nil {
			return "", "", errors.Join(errors.New("--listen: this machine has no name; want HOST:PORT"), err)
		}
	}
	if listen == "" { // workers of an earlier run know its port
		port = "0"
		if _, known, err := net.SplitHostPort(strings.TrimPrefix(last, scheme)); err == nil {
			port = known
		}
	}
	return host, port, nil
}

// count is what the tasks of a fleet do.
type count struct {
	waiting, active []task
	// cancelled is how many tasks somebody else has cancelled, and broken those that have failed.
	cancelled int
	broken    []task
}

// tally sorts tasks. dismissed are those that the fleet has cancelled itself.
func tally(tasks []task, dismissed map[string]bool) count {
	var c count
	for _, t := range tasks {
		switch {
		case waiting[t.State]:
			c.waiting = append(c.waiting, t)
		case active[t.State]:
			c.active = append(c.active, t)
		case t.State == stateCancelled && !dismissed[t.ID]:
			c.cancelled++
		case broken[t.State]:
			c.broken = append(c.broken, t)
		}
	}
	return c
}

// surplus returns up to n tasks to cancel: those that wait, the youngest first, and then those whose
// workers have nothing to do.
func (c *count) surplus(n int, idle func(task) bool) []string {
	var ids []string
	for _, t := range slices.Backward(slices.SortedFunc(slices.Values(c.waiting), byAge)) {
		ids = append(ids, t.ID)
	}
	for _, t := range c.active {
		if idle(t) {
			ids = append(ids, t.ID)
		}
	}
	return ids[:min(n, len(ids))]
}

// byAge compares tasks by their jobs, which Slurm numbers, and then by their index.
func byAge(a, b task) int { return slices.Compare(a.numbers(), b.numbers()) }

// numbers returns the numbers of the job and of the index.
func (t *task) numbers() []int {
	var n []int
	for part := range strings.SplitSeq(t.ID, "_") {
		number, err := strconv.Atoi(part)
		if err != nil {
			number = -1 // no index
		}
		n = append(n, number)
	}
	return n
}
