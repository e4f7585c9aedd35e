package kubejob

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/rest"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/jobpolicy"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
	"github.com/fantasia-hpo/fantasia/worker/kubejob/jobsidecar"
	"github.com/fantasia-hpo/fantasia/worker/kubejob/kubecore"
)

// brought is an assignment of a study of the namespace team-a that brings a Job which
// runs as an account.
func brought(t *testing.T, account string) *messaging.Assignment {
	t.Helper()
	a := assignment()
	a.StudyName, a.Run.Command, a.Run.Env = "team-a.digits", nil, nil
	text := `{"container": "main", "metadata": {"labels": {"team": "vision", "n": "${layers}"}}, "spec": {"parallelism": 1, "template": {"spec": {
		"serviceAccountName": "` + account +
		`", "containers": [{"name": "helper", "image": "h"}, {"name": "main", "image": "train", "args": ["--kind=${kind}", "${args}"]}]}}}}`
	if err := json.Unmarshal([]byte(text), &a.Run.Job); err != nil {
		t.Fatal(err)
	}
	return a
}

var teamPolicies = jobpolicy.Policies{"team-a": {ServiceAccounts: []string{"training"}}, "team-b": {}}

// A Job that a study brings is made of the study's template, in the namespace of its
// resource.
func TestBroughtJob(t *testing.T) {
	r := newTestRunner(t,
		Options{StudyJobs: teamPolicies, Sidecar: "worker:1", Template: []byte(plainJob), Environ: []string{"OTEL_TRACES_EXPORTER=otlp"}})
	a := brought(t, "training")
	p, object, err := r.prepare(evaluation.Task{Assignment: a, Slot: 1})
	if err != nil {
		t.Fatal(err)
	}
	if p.namespace != "team-a" || object.GetNamespace() != "team-a" || object.GetKind() != "Job" || p.ownedBy != studyOwner {
		t.Errorf("it is a %s of namespace %s, owned by %s", object.GetKind(), object.GetNamespace(), p.ownedBy)
	}
	if l := object.GetLabels(); l["team"] != "vision" || l["n"] != "3" || l[LabelStudy] != "team-a.digits" {
		t.Errorf("labels %v", l)
	}
	spec := object.Object["spec"].(map[string]any)
	if spec["parallelism"] != int64(1) || spec["backoffLimit"] != int64(0) {
		t.Errorf("spec %v", spec)
	}
	pod := spec["template"].(map[string]any)
	main, helper := containerOf(pod, "main"), containerOf(pod, "helper")
	if args := asList(main["args"]); !slices.Equal(args, []any{"--kind=a $(b) $$", "--lr=0.01"}) {
		t.Errorf("args %v", args)
	}
	if len(asList(main["env"])) == 0 || len(asList(helper["env"])) != 0 {
		t.Errorf("the program has the variables %v, the other container %v", main["env"], helper["env"])
	}
	// The annotation has the template, to continue after a restart; the variable of the
	// sidecar has not.
	kept, err := assignmentOf(object)
	if err != nil || kept.Run.Job == nil || kept.Run.Job.Container != "main" {
		t.Errorf("the annotation has the template %+v, %v", kept, err)
	}
	for _, v := range asList(containerOf(map[string]any{"spec": map[string]any{"containers": child(pod, "spec")["initContainers"]}},
		sidecarName)["env"]) {
		text := v.(map[string]any)["value"].(string)
		if attempt, err := jobsidecar.ParseAttempt(strings.ReplaceAll(text, "$$", "$")); err != nil || attempt.Assignment.Run.Job != nil {
			t.Errorf("the sidecar gets %s, %v", text, err)
		}
	}
}

// What the policy forbids is refused here too, once the words are filled in; and so are
// Jobs that no namespace here may bring.
func TestBroughtJobsAreChecked(t *testing.T) {
	r := newTestRunner(t, Options{StudyJobs: teamPolicies})
	for _, test := range []struct {
		name   string
		change func(a *messaging.Assignment)
		says   string
		accept bool
	}{
		{"another account", func(a *messaging.Assignment) { *a = *brought(t, "admin") }, `may not run as service account "admin"`, true},
		{"an account by a parameter", func(a *messaging.Assignment) {
			*a = *brought(t, "${kind}")
			a.Parameters["kind"] = "admin"
		}, `may not run as service account "admin"`, true},
		{"another namespace", func(a *messaging.Assignment) { a.StudyName = "team-c.digits" },
			"creates no Jobs that the studies of namespace team-c bring", false},
		{"no resource", func(a *messaging.Assignment) { a.StudyName = "digits" }, "is not a resource of Kubernetes", false},
		{"no Job", func(a *messaging.Assignment) { a.Run.Job = nil }, "no template (--template)", false},
	} {
		a := brought(t, "training")
		test.change(a)
		if _, _, err := r.prepare(evaluation.Task{Assignment: a}); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want …%s…", test.name, err, test.says)
		}
		if err := (&evaluator{runner: r}).Accept(a); (err == nil) != test.accept {
			t.Errorf("%s: accepting it says %v", test.name, err)
		}
	}
}

// A worker takes over its Jobs in all namespaces. A Job counts for its own namespace only,
// since whoever may create Jobs there can write its annotation.
func TestRecoverFromTeams(t *testing.T) {
	r := newTestRunner(t, Options{StudyJobs: teamPolicies})
	made := func(namespace string, a *messaging.Assignment) runtime.Object {
		text, err := jobsidecar.Encode(a, 0, messaging.TraceContext{})
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "Job"}}
		u.SetName(JobName(a))
		u.SetNamespace(namespace)
		u.SetLabels(labels(a, "w1"))
		u.SetAnnotations(map[string]string{AnnotationAttempt: text})
		return u
	}
	mine := brought(t, "training")
	forged := brought(t, "training") // in team-b, of team-a's study
	forged.Nonce = "forged"
	plain := assignment() // in team-a, of a study by the operator's template
	plain.Nonce = "plain"
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{{Group: "batch", Version: "v1", Resource: "jobs"}: "JobList"},
		made("team-a", mine), made("team-b", forged), made("team-a", plain))
	r.options.Logger = slog.New(slog.DiscardHandler)
	for of, s := range r.teams {
		s.client = client.Resource(s.resource).Namespace(of.namespace)
	}
	found, err := r.Recover(t.Context())
	if err != nil || len(found) != 1 || found[0].Assignment.Nonce != mine.Nonce || found[0].Assignment.Run.Job == nil {
		t.Errorf("%+v, %v; want the Job of team-a", found, err)
	}
	if err := r.MarkEnded(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	if found, err = r.Recover(t.Context()); err != nil || len(found) != 0 {
		t.Errorf("%+v, %v; want none once its result is on the disk", found, err)
	}
	settled, err := r.teams[team{"team-a", ""}].client.Get(t.Context(), JobName(mine), metav1.GetOptions{})
	if err != nil || settled.GetLabels()[LabelConcluded] != "true" {
		t.Errorf("the Job has the labels %v, %v", settled.GetLabels(), err)
	}
}

// forbidden is a cluster whose API forbids everything.
type forbidden struct{}

func (forbidden) RoundTrip(*http.Request) (*http.Response, error) {
	return answer(http.StatusForbidden,
		strings.NewReader(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403}`)), nil
}

// A namespace that the worker may not see costs its own trials only. They wait for the rights, and say so.
func TestANamespaceThatCannotBeSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := &rest.Config{Host: "http://cluster", Transport: forbidden{}, QPS: -1}
		core, err := kubecore.New(config)
		if err != nil {
			t.Fatal(err)
		}
		o := Options{StudyJobs: teamPolicies, Worker: "w1", Core: core, StartTimeout: time.Minute}
		if o.Client, err = dynamic.NewForConfig(config); err != nil {
			t.Fatal(err)
		}
		r, err := New(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if found, err := r.Recover(t.Context()); err != nil || len(found) != 0 {
			t.Errorf("%+v, %v; want nothing", found, err)
		}
		began, said := time.Now(), ""
		e := r.evaluate(t.Context(), evaluation.Task{Assignment: brought(t, "training"), Waiting: func(cause string) { said = cause }})
		if want := "jobs and pods cannot be watched in namespace team-a"; e.Outcome != messaging.OutcomeFailed ||
			e.Failure.Reason != messaging.ReasonStart || !strings.Contains(e.Failure.Message, want) || !strings.Contains(said, want) {
			t.Errorf("%+v %+v after it said %q, want …%s…", e, e.Failure, said, want)
		}
		if waited := time.Since(began); waited < o.StartTimeout {
			t.Errorf("it waited for the rights for %v, want the start timeout, %v", waited, o.StartTimeout)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Rights may come later; what admission refuses, and a namespace that is being deleted, are another matter. The
// texts are those of Kubernetes 1.36.
func TestLacksRights(t *testing.T) {
	for reason, want := range map[string]bool{
		`User "system:serviceaccount:tuning:worker" cannot create resource "jobs" in API group "batch" in the namespace "team-a"`:        true,
		`User "system:serviceaccount:tuning:worker" cannot get resource "studies" in API group "fantasia.dev" in the namespace "team-a"`: true,
		`exceeded quota: team, requested: count/jobs.batch=1, used: count/jobs.batch=5, limited: count/jobs.batch=5`:                     false,
		`violates PodSecurity "restricted:latest": privileged`:                                                                           false,
		`unable to create new content in namespace team-a because it is being terminated`:                                                false,
	} {
		err := apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, "", errors.New(reason))
		if lacksRights(fmt.Errorf("create it: %w", err)) != want {
			t.Errorf("%v lacks rights: want %v", err, want)
		}
	}
}

// A running Job that the policy has come to forbid is deleted by the next process.
func TestAForbiddenJobIsDeleted(t *testing.T) {
	r := newTestRunner(t, Options{StudyJobs: teamPolicies})
	r.options.Logger = slog.New(slog.DiscardHandler)
	a := brought(t, "admin")
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "Job"}}
	u.SetName(JobName(a))
	u.SetNamespace("team-a")
	s := r.teams[team{"team-a", ""}]
	s.client = fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{{Group: "batch", Version: "v1", Resource: "jobs"}: "JobList"},
		u).Resource(s.resource).Namespace("team-a")
	e := r.evaluate(t.Context(), evaluation.Task{Assignment: a})
	if e.Outcome != messaging.OutcomeFailed || e.Failure.Reason != messaging.ReasonCommand ||
		!strings.Contains(e.Failure.Message, "serviceAccountName") {
		t.Errorf("%+v %+v", e, e.Failure)
	}
	if there, err := s.exists(t.Context(), JobName(a)); err != nil || there {
		t.Errorf("the Job exists: %v, %v", there, err)
	}
}

// study.JobWords lists what a template can use.
func TestJobWords(t *testing.T) {
	known := study.JobWords()
	for word := range words(evaluation.Task{Assignment: assignment()}) {
		if !slices.Contains(known, word) {
			t.Errorf("%s is not among the words of a Job", word)
		}
		known = slices.DeleteFunc(known, func(w string) bool { return w == word })
	}
	if len(known) > 0 {
		t.Errorf("%q have no values", known)
	}
}

// A study may bring another kind that the policy of its namespace lists, with the pod that reports.
func TestABroughtKind(t *testing.T) {
	template := func(account string) *study.Job {
		pod := map[string]any{"spec": map[string]any{"serviceAccountName": account,
			"containers": []any{map[string]any{"name": "pytorch", "image": "train", "args": []any{"${args}"}}}}}
		return &study.Job{APIVersion: "kubeflow.org/v1", Kind: "PyTorchJob", Spec: map[string]any{"pytorchReplicaSpecs": map[string]any{
			"Master": map[string]any{"template": pod}, "Worker": map[string]any{"template": pod},
		}}}
	}
	kind := jobpolicy.Kind{
		APIVersion: "kubeflow.org/v1", Resource: "pytorchjobs", Pods: []string{"spec.pytorchReplicaSpecs.*.template"},
		Reporter: "spec.pytorchReplicaSpecs.Master.template",
	}
	r := newTestRunner(t,
		Options{StudyJobs: jobpolicy.Policies{"team-a": {Kinds: map[string]jobpolicy.Kind{"PyTorchJob": kind}}, "team-b": {}}})
	a := brought(t, "default")
	a.Run.Job = template("default")
	p, object, err := r.prepare(evaluation.Task{Assignment: a})
	if err != nil {
		t.Fatal(err)
	}
	if object.GetKind() != "PyTorchJob" || object.GetName() != JobName(a) || object.GetNamespace() != "team-a" ||
		p.resource.Resource != "pytorchjobs" || p.resource.Group != "kubeflow.org" {
		t.Errorf("it is %s %s/%s, created as %v", object.GetKind(), object.GetNamespace(), object.GetName(), p.resource)
	}
	var reporting []bool
	for _, pod := range podTemplates(object.Object) { // the Master's first
		reporting = append(reporting, reports(pod))
	}
	if !slices.Equal(reporting, []bool{true, false}) {
		t.Errorf("the pods report: %v, want only the Master", reporting)
	}
	a.Run.Job = template("admin")
	if _, _, err := r.prepare(evaluation.Task{Assignment: a}); err == nil ||
		!strings.Contains(err.Error(), `may not run as service account "admin"`) {
		t.Errorf("a forbidden account: %v", err)
	}
	a.StudyName = "team-b.digits"
	if err := (&evaluator{runner: r}).Accept(a); err == nil || !strings.Contains(err.Error(),
		"creates no PyTorchJob that the studies of namespace team-b bring") {
		t.Errorf("a namespace without the kind: %v", err)
	}
}
