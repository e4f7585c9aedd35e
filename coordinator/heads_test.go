package coordinator

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/internal/test/membus"
	"github.com/fantasia-hpo/fantasia/study"
)

// A leader that has read only the head of an ended study acts on its whole specification: it shows it, compares
// a changed file with it, and resumes the study.
func TestEndedStudiesOfAnEarlierLeader(t *testing.T) {
	r := newRig(t, membus.Options{})
	c := r.leader()
	r.hand("w", 2, nil)
	shown, resumed := r.create(c, "shown", 2, 1), r.create(c, "resumed", 2, 1)
	r.ends(shown.ID)
	r.ends(resumed.ID)
	c.stop()
	c = r.leader()
	for _, id := range []string{shown.ID, resumed.ID} {
		if err := c.command(r.ctx(), func(_ context.Context, l *leader, _ time.Time) error {
			if r := l.studies.Get(id); !r.Head || len(r.Spec.Definition.Spec.Parameters) > 0 {
				t.Errorf("the leader has read the whole specification of %s", r.Name())
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if all, err := c.Summaries(r.ctx(), shown.ID); err != nil || !cmp.Equal(all[0].Study, *shown) {
		t.Errorf("the study is %v, %v; want %v", all, err, shown)
	}
	other := newStudy("shown", 5, 1, func(s *study.Spec) { s.Trial.Command = []string{"false"} })
	if err := c.Update(r.ctx(), shown.ID, other, 0); !errors.Is(err, ErrIncompatible) {
		t.Errorf("another command: %v, want ErrIncompatible", err)
	}
	if err := c.Update(r.ctx(), resumed.ID, newStudy("resumed", 4, 1), 0); err != nil {
		t.Fatal(err)
	}
	r.ends(resumed.ID)
	r.verify(resumed.ID, 4, 4)
}
