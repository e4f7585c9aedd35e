package coordinator

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/internal/test/membus"
)

// A duty runs while its replica leads and can send commands from the start. It is
// restarted if it fails, and has ended when the replica's Run returns.
func TestDuties(t *testing.T) {
	r := newRig(t, membus.Options{})
	const id = "01k0000000000000000000000a"
	var runs, running atomic.Int64
	studied := make(chan error, 1)
	duty := Duty{Name: "test", Run: func(ctx context.Context, c *Coordinator) error {
		running.Add(1)
		defer running.Add(-1)
		if runs.Add(1) == 1 {
			return errors.New("fails at first")
		}
		s := newStudy("duty", 5, 1)
		_, err := c.CreateWithID(ctx, id, s)
		again, errAgain := c.CreateWithID(ctx, id, s)
		if errAgain == nil && again.ID != id {
			errAgain = errors.New("the second study has the id " + again.ID)
		}
		_, errTaken := c.CreateWithID(ctx, "01k0000000000000000000000b", s)
		if errors.Is(errTaken, ledger.ErrNameTaken) {
			errTaken = nil
		}
		all, errAll := c.Summaries(ctx)
		none, errNone := c.Summaries(ctx, "01k0000000000000000000000c")
		if len(all) != 1 || len(none) != 0 || all[0].Study.ID != id {
			errAll = errors.Join(errAll, errors.New("the summaries are others"))
		}
		studied <- errors.Join(err, errAgain, errTaken, errAll, errNone)
		<-ctx.Done()
		return ctx.Err()
	}}
	p := r.leader(func(o *Options) { o.Duties = []Duty{duty} })
	select {
	case err := <-studied:
		if err != nil {
			t.Error(err)
		}
	case <-r.ctx().Done():
		t.Fatal("the duty was not restarted")
	}
	p.stop()
	if n := running.Load(); n != 0 {
		t.Errorf("%d duties run after the coordinator has ended", n)
	}
}
