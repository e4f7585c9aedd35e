package local

import (
	"errors"
	"fmt"

	"github.com/fantasia-hpo/fantasia/study"
)

// Damaged means that a file of a state directory is damaged. It is a study.ErrDamaged.
type Damaged struct {
	State string
	// Cause names the file and what is wrong with it.
	Cause error
}

// Error says what is damaged and what to do.
func (d *Damaged) Error() string {
	return fmt.Sprintf("%v\nNothing was changed. Restore a backup into a new directory: fantasia restore FILE --state NEW\n"+
		"Without a backup, save what can be read: fantasia state repair %s --into NEW", d.Cause, d.State)
}

// Unwrap returns the cause.
func (d *Damaged) Unwrap() error { return d.Cause }

// Is makes a Damaged a study.ErrDamaged.
func (d *Damaged) Is(target error) bool { return target == study.ErrDamaged }

// damaged gives an error about records its way back, if it is one.
func (n *node) damaged(err error) error {
	if errors.Is(err, study.ErrDamaged) {
		return &Damaged{n.o.State, err}
	}
	return err
}
