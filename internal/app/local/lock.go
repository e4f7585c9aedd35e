package local

import (
	"errors"
	"fmt"

	"github.com/fantasia-hpo/fantasia/internal/dirlock"
)

// ErrHeld means that another run uses the state directory.
var ErrHeld = dirlock.ErrHeld

// lock takes the state directory for this process.
func lock(dir string) (unlock func() error, err error) {
	unlock, err = dirlock.Take(dir)
	if errors.Is(err, ErrHeld) {
		err = fmt.Errorf("%w; wait for it, or choose another with --state", err)
	}
	return unlock, err
}
