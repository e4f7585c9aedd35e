package kubejob

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/worker/kubejob/kubecore"
)

// transport answers the requests of a client.
type transport func(*http.Request) *http.Response

// RoundTrip implements http.RoundTripper.
func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

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
		asked := ""
		core, err := kubecore.New(&rest.Config{Host: "http://cluster", QPS: -1, Transport: transport(func(r *http.Request) *http.Response {
			asked += r.URL.String() + "\n"
			return answer(c.status, strings.NewReader(`{"kind": "EventList", "apiVersion": "v1", "items": [`+c.items+`]}`))
		})})
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
		if strings.Contains(asked, "involvedObject.uid%3D"+string(pods[0].UID)) != c.asks {
			t.Errorf("%s: the cluster was asked %q, want the pod's events: %v", c.name, asked, c.asks)
		}
	}
}
