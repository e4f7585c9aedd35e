package messaging

import (
	"encoding/json"
	"fmt"
)

const (
	// MaxCauses is the largest number of causes in a heartbeat.
	MaxCauses = 20
	// MaxCause is the largest length of a cause in bytes, as JSON.
	MaxCause = 800
)

// Waiting is why the programs of some running attempts have not started, such as what keeps their
// pods from a node. Attempts are named by their places in Heartbeat.Running, so that a heartbeat of
// very many fits into a message.
type Waiting struct {
	Cause   string `json:"cause"`
	Running []int  `json:"running"`
}

// SetWaiting sets Waiting from the causes of running attempts. It leaves out causes after the
// first MaxCauses, and shortens long ones.
func (h *Heartbeat) SetWaiting(causes map[AttemptID]string) {
	h.Waiting = nil
	places := map[string]int{}
	for i, id := range h.Running {
		cause := causes[id]
		if cause == "" {
			continue
		}
		place, known := places[cause]
		if !known {
			if len(h.Waiting) == MaxCauses {
				continue
			}
			place = len(h.Waiting)
			places[cause] = place
			h.Waiting = append(h.Waiting, Waiting{Cause: shortened(cause)})
		}
		h.Waiting[place].Running = append(h.Waiting[place].Running, i)
	}
}

// Causes returns why the programs of running attempts have not started.
func (h *Heartbeat) Causes() map[AttemptID]string {
	causes := map[AttemptID]string{}
	for _, w := range h.Waiting {
		for _, i := range w.Running {
			causes[h.Running[i]] = w.Cause
		}
	}
	return causes
}

// shortened cuts a cause that is too long as JSON, where a character can take six bytes.
func shortened(cause string) string {
	for {
		data, err := json.Marshal(cause)
		if err != nil || len(data) <= MaxCause {
			return cause
		}
		cause = cut(cause, len(cause)*MaxCause/(len(data)+1))
	}
}

// checkWaiting checks that causes are few and short, and that their attempts run.
func (h *Heartbeat) checkWaiting() error {
	if len(h.Waiting) > MaxCauses {
		return fmt.Errorf("%w: waiting has %d causes, at most %d", ErrInvalid, len(h.Waiting), MaxCauses)
	}
	for i, w := range h.Waiting {
		if shortened(w.Cause) != w.Cause {
			return fmt.Errorf("%w: waiting[%d].cause has %d bytes, at most %d as JSON", ErrInvalid, i, len(w.Cause), MaxCause)
		}
		if err := h.checkPlaces(fmt.Sprintf("waiting[%d].running", i), w.Running); err != nil {
			return err
		}
	}
	return nil
}

// checkPlaces checks that a field has places of running attempts.
func (h *Heartbeat) checkPlaces(field string, places []int) error {
	for _, n := range places {
		if n < 0 || n >= len(h.Running) {
			return fmt.Errorf("%w: %s has %d, must be the place of a running attempt, 0 to %d", ErrInvalid, field, n, len(h.Running)-1)
		}
	}
	return nil
}
