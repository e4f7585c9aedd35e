package messaging_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/messaging"
)

func TestWaiting(t *testing.T) {
	h := heartbeat()
	h.Running = nil
	causes := map[messaging.AttemptID]string{}
	for i := range 4 {
		other := id
		other.Trial = i + 1
		h.Running = append(h.Running, other)
		causes[other] = []string{"no node", "no image", "no node", ""}[i]
	}
	delete(causes, h.Running[3])
	h.SetWaiting(causes)
	if len(h.Waiting) != 2 || !maps.Equal(h.Causes(), causes) {
		t.Errorf("%v became %+v, and these %v", causes, h.Waiting, h.Causes())
	}
	// An attempt that does not run any more, or is another's, waits for nothing.
	h.Running = h.Running[2:]
	if h.SetWaiting(causes); len(h.Causes()) != 1 {
		t.Errorf("%v", h.Causes())
	}
}

// Whatever causes there are, the heartbeat is accepted.
func TestCausesAreBounded(t *testing.T) {
	h := heartbeat()
	h.Running = nil
	causes := map[messaging.AttemptID]string{}
	for i := range 2 * messaging.MaxCauses {
		other := id
		other.Trial = i + 1
		h.Running = append(h.Running, other)
		causes[other] = strings.Repeat([]string{"c", "<", "\x01", "é", "\xff"}[i%5], 2000+i)
	}
	h.SetWaiting(causes)
	if _, err := messaging.Encode(h); err != nil || len(h.Waiting) != messaging.MaxCauses {
		t.Errorf("%d causes, %v", len(h.Waiting), err)
	}
}
