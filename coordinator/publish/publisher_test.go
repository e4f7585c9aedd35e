package publish

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/messaging"
)

// refusing is a bus that refuses the assignment of one trial, and every group that is
// too large for a bus.
type refusing struct {
	Bus
	bad  int
	sent *[]int
}

func (r refusing) Assign(_ context.Context, as []*messaging.Assignment) error {
	if len(as) > 1000 {
		return errors.New("too many at once")
	}
	if slices.ContainsFunc(as, func(a *messaging.Assignment) bool { return a.Trial == r.bad }) {
		return fmt.Errorf("trial %d: %w", r.bad, messaging.ErrTooLarge)
	}
	for _, a := range as {
		*r.sent = append(*r.sent, a.Trial)
	}
	return nil
}

// All waiting assignments are published, even thousands after a takeover. One that
// the bus refuses does not block the others.
func TestAllButTheBadOneArePublished(t *testing.T) {
	var sent []int
	p := newPublisher(refusing{bad: 7, sent: &sent})
	var m Messages
	const trials = 2500
	for n := range trials {
		a := &messaging.Assignment{AttemptID: attempt(n + 1)}
		m.Assignments = append(m.Assignments, Assignment{Assignment: a}, Assignment{Assignment: a})
	}
	p.Add(&m, time.Now())
	queued, failed := p.takeQueued(), queues{}
	if err := p.send(t.Context(), &queued, &failed); err != nil {
		t.Fatal(err)
	}
	slices.Sort(sent)
	if len(sent) != trials-1 || len(slices.Compact(sent)) != trials-1 {
		t.Errorf("%d assignments were published, want all of %d but one, once each", len(sent), trials)
	}
	if failed.assignments.len() != 0 {
		t.Error("an assignment that every bus refuses is retried forever")
	}
}

// fencing is the bus of a leader that another leader has fenced.
type fencing struct{ Bus }

func (fencing) Assign(context.Context, []*messaging.Assignment) error { return messaging.ErrFenced }

func TestAFencedLeaderPublishesNoMore(t *testing.T) {
	p := newPublisher(fencing{})
	p.Add(&Messages{Assignments: []Assignment{{Assignment: &messaging.Assignment{AttemptID: attempt(1)}}}}, time.Now())
	if err := p.Run(t.Context()); !errors.Is(err, messaging.ErrFenced) {
		t.Errorf("the publisher ended with %v", err)
	}
}

// newPublisher returns a publisher whose loop has ended.
func newPublisher(bus Bus) *Publisher {
	gone := func(context.Context, func(context.Context, time.Time) error) bool { return false }
	return New(slog.New(slog.DiscardHandler), bus, nil, gone)
}

func attempt(n int) messaging.AttemptID {
	return messaging.AttemptID{Study: "s", Trial: n, Attempt: 1, Nonce: "n"}
}

func TestReceiptsAreWithheld(t *testing.T) {
	var m Messages
	m.Receipt("w", attempt(1), messaging.Late)
	m.Receipt("v", attempt(1), messaging.Late)
	m.Receipt("w", attempt(2), messaging.Late)
	m.Cancel("w", attempt(1), "enough")
	m.Withhold("w", attempt(1))
	if len(m.Controls) != 3 || m.Controls[0].Worker != "v" || m.Controls[2].Kind != messaging.ControlCancel {
		t.Errorf("left are %+v, want all but the first", m.Controls)
	}
}
