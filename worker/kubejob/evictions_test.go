package kubejob

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/messaging"
)

// A pod that is evicted for its storage and exits with 0 when it is told to end looks like one that was done. The event
// of its eviction tells them apart, and is read only for pods that have such a limit.
func TestStorageLimitsOfPodsThatSucceed(t *testing.T) {
	const message = "Pod ephemeral local storage usage exceeds the total limit of containers 4Mi. "
	event := fmt.Sprintf(`{"reason": "Evicted", "message": %q}`, message)
	for _, c := range []struct {
		name, recording, items string
		status                 int
		asks                   bool
		outcome                messaging.Outcome
	}{
		{"evicted", "over-a-limit-and-ends-well", event, http.StatusOK, true, messaging.OutcomeFailed},
		{"done", "over-a-limit-and-ends-well", "", http.StatusOK, true, messaging.OutcomeCompleted},
		{"events are forbidden", "over-a-limit-and-ends-well", event, http.StatusForbidden, true, messaging.OutcomeCompleted},
		{"without a limit", "completed-by-its-log", event, http.StatusOK, false, messaging.OutcomeCompleted},
	} {
		tr := newTestTranscript(t, `err=(?P<error>\S+)`, nil)
		tr.line([]byte("err=0.5"))
		api := &answers{status: c.status, body: `{"kind": "EventList", "apiVersion": "v1", "items": [` + c.items + `]}`}
		core, err := NewCore(api.config())
		if err != nil {
			t.Fatal(err)
		}
		a := &attempt{plan: &plan{site: &site{Runner: &Runner{options: Options{Core: core}}}}, t: tr, logs: &followers{}}
		pods := recorded(t, c.recording).pods
		e := tr.conclude(a.ending(t.Context(), verdict{state: succeeded}, pods))
		said := e.Failure != nil && strings.Contains(e.Failure.Message, message)
		if e.Outcome != c.outcome || said != (c.outcome == messaging.OutcomeFailed) {
			t.Errorf("%s: %s (%+v), want %s", c.name, e.Outcome, e.Failure, c.outcome)
		}
		asked := strings.Contains(strings.Join(api.asked, " "), "involvedObject.uid%3D"+string(pods[0].UID))
		if asked != c.asks {
			t.Errorf("%s: the cluster was asked %q, want the pod's events: %v", c.name, api.asked, c.asks)
		}
	}
}
