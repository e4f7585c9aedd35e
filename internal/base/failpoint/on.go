//go:build failpoints

package failpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// current holds the rules of this process.
var current = must(newSet(os.Getenv("FANTASIA_FAILPOINTS")))

// Reach marks a place where a process can die or wait. A rule that lets it fail panics.
func Reach(p Point) {
	if err := current.reach(p); err != nil {
		panic(fmt.Sprintf("failpoint %s: nobody can be told that %v", p, err))
	}
}

// Fail marks a place that can also fail: it returns the error that the caller must treat as
// its own, or nil.
func Fail(p Point) error { return current.reach(p) }

// Duration returns a time, unless a rule sets another one.
func Duration(p Point, usual time.Duration) time.Duration {
	if r, ok := current.due(p); ok {
		return r.set
	}
	return usual
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// rule is what happens at a point.
type rule struct {
	act func() error
	set time.Duration
	at  int // at which time; 0 for each
}

// list is a text of rules, and how often their points were reached.
type list struct {
	rules map[Point]rule
	hits  map[Point]int
}

// due counts a point and returns its rule if that has come.
func (l *list) due(p Point) (rule, bool) {
	r, ok := l.rules[p]
	if !ok {
		return r, false
	}
	l.hits[p]++
	return r, r.at == 0 || r.at == l.hits[p]
}

// set is the rules of a process. It is safe for concurrent use.
type set struct {
	file string

	mu    sync.Mutex
	fixed *list
	text  string // of the file, of which read was made
	read  *list
}

// newSet reads the rules of the variable.
func newSet(text string) (*set, error) {
	s := &set{read: &list{}}
	var fixed []string
	for part := range strings.SplitSeq(text, ";") {
		if file, ok := strings.CutPrefix(strings.TrimSpace(part), "@"); ok {
			s.file = file
			continue
		}
		fixed = append(fixed, part)
	}
	var err error
	s.fixed, err = parse(strings.Join(fixed, ";"))
	return s, err
}

func (s *set) reach(p Point) error {
	r, ok := s.due(p)
	if !ok {
		return nil
	}
	return r.act()
}

func (s *set) due(p Point) (rule, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.fixed.due(p); ok || s.file == "" {
		return r, ok
	}
	text, err := os.ReadFile(s.file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		panic(err)
	}
	if string(text) != s.text {
		s.text, s.read = string(text), must(parse(string(text)))
	}
	r, ok := s.read.due(p)
	if !ok || r.at == 0 {
		return r, ok
	}
	return r, os.Remove(s.file) == nil
}

// parse reads rules.
func parse(text string) (*list, error) {
	l := &list{rules: map[Point]rule{}, hits: map[Point]int{}}
	for part := range strings.SplitSeq(text, ";") {
		if part = strings.TrimSpace(part); part == "" || part[0] == '#' {
			continue
		}
		name, action, ok := strings.Cut(part, "=")
		if !ok || !slices.Contains(All(), Point(name)) {
			return nil, fmt.Errorf("failpoint %q: want point=action, with a point of %v", part, All())
		}
		action, count, counted := strings.Cut(action, "@")
		var r rule
		var err error
		if counted {
			if r.at, err = strconv.Atoi(count); err != nil || r.at < 1 {
				return nil, fmt.Errorf("failpoint %q: the number after @ is %q, want 1 or more", part, count)
			}
		}
		if err = r.parse(action); err != nil {
			return nil, fmt.Errorf("failpoint %q: %w", part, err)
		}
		l.rules[Point(name)] = r
	}
	return l, nil
}

func (r *rule) parse(action string) (err error) {
	name, argument, _ := strings.Cut(strings.TrimSuffix(action, ")"), "(")
	r.act = func() error { return nil }
	switch name {
	case "kill":
		r.act = kill
	case "enospc":
		r.act = func() error { return syscall.ENOSPC }
	case "sleep":
		var d time.Duration
		d, err = time.ParseDuration(argument)
		r.act = func() error { time.Sleep(d); return nil }
	case "set":
		r.set, err = time.ParseDuration(argument)
	default:
		err = fmt.Errorf("the action is %q, want kill, enospc, sleep(2s) or set(2s)", action)
	}
	return err
}

// kill ends the process as SIGKILL does: nothing runs any more.
func kill() error {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		return err
	}
	select {} // the signal may come a moment later
}
