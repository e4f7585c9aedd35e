package kubejob

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
)

// deletions is the cluster's API for the deletion of Jobs.
type deletions func(path string, o metav1.DeleteOptions)

// RoundTrip implements http.RoundTripper.
func (d deletions) RoundTrip(r *http.Request) (*http.Response, error) {
	var o metav1.DeleteOptions
	if r.Method != http.MethodDelete {
		return answer(http.StatusMethodNotAllowed, http.NoBody), nil
	}
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
		return nil, err
	}
	d(r.URL.Path, o)
	return answer(http.StatusOK, strings.NewReader(`{"kind": "Status", "apiVersion": "v1"}`)), nil
}

// TestAPrunedJobIsDeleted stops an attempt early while its program runs. Its Job is
// deleted, after its pods, and what the program still reports in its grace counts.
func TestAPrunedJobIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, program := io.Pipe()
		var opened atomic.Bool
		api := &podAPI{logs: func(context.Context) *http.Response {
			if opened.Swap(true) {
				return answer(http.StatusNotFound, http.NoBody)
			}
			return answer(http.StatusOK, log)
		}}
		api.pod.Store(pod("p", -1))
		a := newTestAttempt(t, api, `err=(?P<error>\S+)`)
		say := func(second int, text string) {
			if _, err := io.WriteString(program, stamped(second, text)); err != nil {
				t.Error(err)
			}
		}
		var deleted []string
		client, err := dynamic.NewForConfig(&rest.Config{Host: "http://cluster", QPS: -1,
			Transport: deletions(func(path string, o metav1.DeleteOptions) {
				deleted = append(deleted, path+" "+string(*o.PropagationPolicy))
				say(2, "err=0.25")
				if err := program.Close(); err != nil {
					t.Error(err)
				}
				api.pod.Store(nil)
				a.sub.hub.mu.Lock()
				defer a.sub.hub.mu.Unlock()
				a.sub.gone = true
				a.sub.touch()
			})})
		if err != nil {
			t.Fatal(err)
		}
		a.client = client.Resource(schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}).Namespace("n")

		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		endings := make(chan *evaluation.Ending)
		go func() { endings <- a.await(ctx) }()
		say(1, "err=0.5")
		synctest.Wait()
		cancel(evaluation.ErrPruned)
		e := a.t.conclude(<-endings)

		if want := []string{"/apis/batch/v1/namespaces/n/jobs/j Foreground"}; !slices.Equal(deleted, want) {
			t.Errorf("deleted %q, want %q", deleted, want)
		}
		if e.Outcome != messaging.OutcomePruned || e.Failure != nil || len(e.Values) != 1 || e.Values[0] != 0.25 {
			t.Errorf("it ends as %s with %v (%+v), want %s with 0.25", e.Outcome, e.Values, e.Failure, messaging.OutcomePruned)
		}
	})
}
