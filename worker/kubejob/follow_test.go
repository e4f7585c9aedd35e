package kubejob

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
	"github.com/fantasia-hpo/fantasia/worker/kubejob/kubecore"
)

// podAPI is the cluster's API for one pod, in memory.
type podAPI struct {
	pod  atomic.Pointer[corev1.Pod] // nil if it is gone
	logs func(ctx context.Context) *http.Response
}

// RoundTrip implements http.RoundTripper.
func (a *podAPI) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/log") {
		return a.logs(r.Context()), nil
	}
	p := a.pod.Load()
	if p == nil {
		return answer(http.StatusNotFound, strings.NewReader("")), nil
	}
	data, err := json.Marshal(p)
	return answer(http.StatusOK, strings.NewReader(string(data))), err
}

func answer(code int, body io.Reader) *http.Response {
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(body)}
}

// broken is a body whose connection breaks after a text.
func broken(text string) io.Reader {
	return io.MultiReader(strings.NewReader(text), failingReader{})
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errors.New("connection reset") }

// silent is a body that sends nothing until ctx ends.
type silent struct{ ctx context.Context }

func (s silent) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

// An attempt's value comes from a log that was read to its end. If the end cannot be
// read, the trial is handed back, no matter what was seen before.
func TestAValueIsOfAWholeLog(t *testing.T) {
	const pattern = `err=(?P<error>\S+)`
	epochs := func(from, to int) string {
		var all strings.Builder
		for i := from; i <= to; i++ {
			all.WriteString(stamped(i, fmt.Sprintf("err=%d", 100-i)))
		}
		return all.String()
	}
	whole := epochs(1, 40)
	type reading = func(ctx context.Context) *http.Response
	text := func(t string) reading {
		return func(context.Context) *http.Response { return answer(http.StatusOK, strings.NewReader(t)) }
	}
	breaks := func(context.Context) *http.Response { return answer(http.StatusOK, broken(epochs(1, 37))) }
	refuses := func(code int) reading {
		return func(context.Context) *http.Response { return answer(code, strings.NewReader("")) }
	}
	goesSilent := func(ctx context.Context) *http.Response {
		return answer(http.StatusOK, io.MultiReader(strings.NewReader(epochs(1, 37)), silent{ctx}))
	}
	for _, test := range []struct {
		name          string
		before, after reading // while the program runs, and when it has ended
		gone          bool
		summary       string
		outcome       messaging.Outcome
		message       string
	}{
		{name: "followed", before: goesSilent, after: text(whole), outcome: messaging.OutcomeCompleted},
		{name: "broken, and stays so", before: breaks, after: refuses(http.StatusBadGateway),
			outcome: messaging.OutcomeHandedBack, message: "could not be read to its end"},
		{name: "broken, and stays so, beside a sidecar", before: breaks, after: refuses(http.StatusBadGateway),
			summary: `{"value": 60, "reports": 40}`, outcome: messaging.OutcomeCompleted},
		{name: "ended by the connection, as if by the program", before: text(epochs(1, 37)), after: text(whole),
			outcome: messaging.OutcomeCompleted},
		{name: "ended within a line", before: text(strings.TrimSuffix(whole, "0\n")), after: text(whole), outcome: messaging.OutcomeCompleted},
		{name: "silent until its time is over", before: goesSilent, after: goesSilent,
			outcome: messaging.OutcomeHandedBack, message: "sends nothing"},
		{name: "of a pod that is gone", gone: true, before: breaks, after: refuses(http.StatusNotFound),
			outcome: messaging.OutcomeHandedBack, message: "could not be read to its end"},
		{name: "forbidden", before: refuses(http.StatusForbidden), after: refuses(http.StatusForbidden),
			outcome: messaging.OutcomeFailed, message: "could not be read to its end"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := &podAPI{}
				var ended atomic.Bool
				api.logs = func(ctx context.Context) *http.Response {
					if ended.Load() {
						return test.after(ctx)
					}
					return test.before(ctx)
				}
				api.pod.Store(pod("p", -1))
				a := newTestAttempt(t, api, pattern)
				endings := make(chan *evaluation.Ending)
				go func() { endings <- a.await(t.Context()) }()
				synctest.Wait()

				last := pod("p", 0)
				if test.summary != "" {
					last.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: sidecarName, State: corev1.ContainerState{
						Terminated: &corev1.ContainerStateTerminated{Message: test.summary, FinishedAt: at(11)},
					}}}
				}
				if api.pod.Store(last); test.gone {
					api.pod.Store(nil)
				}
				ended.Store(true)
				a.sub.hub.mu.Lock()
				a.sub.pods[last.UID] = last
				a.sub.object = &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{
					"conditions": []any{map[string]any{"type": "Complete", "status": "True"}},
				}}}
				a.sub.touch()
				a.sub.hub.mu.Unlock()

				e := a.t.conclude(<-endings)
				if e.Outcome != test.outcome {
					t.Fatalf("it ends as %s (%+v), want %s", e.Outcome, e.Failure, test.outcome)
				}
				if len(e.Values) > 0 && e.Values.First() != 60 {
					t.Errorf("the value is %v, want 60, that of the last epoch", e.Values.First())
				}
				if e.Failure != nil && (e.Failure.Reason != messaging.ReasonLog || !strings.Contains(e.Failure.Message, test.message)) {
					t.Errorf("the failure is %+v, want %s: …%s…", e.Failure, messaging.ReasonLog, test.message)
				}
			})
		})
	}
}

// newTestAttempt returns an attempt of a Job whose only pod runs.
func newTestAttempt(t *testing.T, api *podAPI, pattern string) *attempt {
	t.Helper()
	core, err := kubecore.New(&rest.Config{Host: "http://cluster", Transport: api, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	success, failure := conditions(t)
	r := &Runner{options: DefaultOptions()}
	r.options.Core, r.options.Logger = core, slog.New(slog.DiscardHandler)
	s := &plan{site: &site{Runner: r, namespace: "n", kind: jobKind.WithVersion("v1"), success: success, failure: failure}}
	tr := newTestTranscript(t, pattern, nil)
	p := api.pod.Load()
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetCreationTimestamp(metav1.Now())
	a := &attempt{plan: s, task: tr.task, name: "j", t: tr, logs: s.newFollowers(t.Context(), tr), sub: &subscription{
		hub: &hub{}, name: "j", object: object, changed: make(chan struct{}, 1), pods: map[types.UID]*corev1.Pod{p.UID: p},
	}}
	t.Cleanup(func() { a.logs.finish(0) })
	return a
}

// Only the logs of the pods that report are read, if the operator chose them.
func TestOnlyReportersAreFollowed(t *testing.T) {
	api := &podAPI{logs: func(context.Context) *http.Response { return answer(http.StatusNotFound, http.NoBody) }}
	api.pod.Store(pod("p", -1))
	a := newTestAttempt(t, api, "")
	a.reporter = "spec.pytorchReplicaSpecs.Master.template"
	master := pod("master", -1)
	master.Labels = map[string]string{LabelReports: "true"}
	logs := a.logs.(*followers)
	logs.observe([]*corev1.Pod{pod("worker-0", -1), master, pod("worker-1", -1)})
	if logs.known[logID{"master", "main"}] == nil || len(logs.known) != 1 {
		t.Errorf("the logs of %v are followed, want that of the master", logs.known)
	}
}
