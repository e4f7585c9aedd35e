// Package lifecycle runs a program until it is told to end, and closes what it has opened, in
// reverse order, with a time limit for each step.
package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// Exit ends the process with the code that run returns. The context of run ends at the first
// SIGINT or SIGTERM; a second one ends the process at once.
func Exit(run func(context.Context) int) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx))
}

// Main is Exit for a program that succeeds or fails. It writes an error to stderr, after the
// program's name.
func Main(name string, run func(context.Context) error) {
	Exit(func(ctx context.Context) int {
		if err := run(ctx); err != nil {
			fmt.Fprintln(os.Stderr, name+":", err)
			return 1
		}
		return 0
	})
}

// Stack is a last-in, first-out list of named clean-ups. The zero Stack is ready for
// use. A constructor that fails closes what it has pushed so far; one that succeeds
// passes the Stack on. It is safe for concurrent use.
type Stack struct {
	mu    sync.Mutex
	steps []step
}

type step struct {
	name string
	f    func(context.Context) error
}

// Push adds a clean-up, which runs before all earlier ones.
func (s *Stack) Push(name string, f func(context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = append(s.steps, step{name, f})
}

// PushClose adds a clean-up that needs no context.
func (s *Stack) PushClose(name string, f func() error) {
	s.Push(name, func(context.Context) error { return f() })
}

// Close runs the clean-ups, each for at most timeout, and joins their errors. A second
// call does nothing.
func (s *Stack) Close(timeout time.Duration) error {
	s.mu.Lock()
	steps := s.steps
	s.steps = nil
	s.mu.Unlock()
	var errs []error
	for i := len(steps) - 1; i >= 0; i-- {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		if err := steps[i].f(ctx); err != nil {
			errs = append(errs, fmt.Errorf("close %s: %w", steps[i].name, err))
		}
		cancel()
	}
	return errors.Join(errs...)
}
