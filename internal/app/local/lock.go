package local

import (
	"errors"
	"fmt"

	"github.com/fantasia-hpo/fantasia/internal/base/dirlock"
	"github.com/fantasia-hpo/fantasia/internal/base/lifecycle"
)

// ErrHeld means that another process uses the state directory.
var ErrHeld = dirlock.ErrHeld

// Lock takes a state directory for this process, creating it if necessary, until the stack
// is closed. It fails with ErrHeld if another process has it.
func Lock(dir string, stack *lifecycle.Stack) error {
	unlock, err := dirlock.Take(dir)
	if errors.Is(err, ErrHeld) {
		err = fmt.Errorf("%w; wait for it, or choose another with --state", err)
	}
	if err == nil {
		stack.PushClose("the state directory's lock", unlock)
	}
	return err
}
