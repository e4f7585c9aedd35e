package local

import (
	"errors"
	"fmt"

	"github.com/fantasia-hpo/fantasia/study"
)

// Damaged means that a state directory, or the state file of a program, is damaged. It is a study.ErrDamaged.
type Damaged struct {
	State string
	// Cause names the file and what is wrong with it.
	Cause error
	// Program means that the state is the file of a program.
	Program bool
}

// Error says what is damaged and what to do.
func (d *Damaged) Error() string {
	back := "Restore a backup into a new directory: fantasia restore FILE --state NEW\nWithout a backup"
	if d.Program {
		back = "Go on with a copy from before, if there is one. Without one"
	}
	return fmt.Sprintf("%v\nNothing was changed. %s, save what can be read: fantasia state repair %s --into NEW", d.Cause, back, d.State)
}

// Unwrap returns the cause.
func (d *Damaged) Unwrap() error { return d.Cause }

// Is makes a Damaged a study.ErrDamaged.
func (d *Damaged) Is(target error) bool { return target == study.ErrDamaged }

// damaged gives an error about records its way back, if it is one.
func (n *node) damaged(err error) error {
	if errors.Is(err, study.ErrDamaged) {
		return &Damaged{State: n.o.State, Cause: err}
	}
	return err
}
