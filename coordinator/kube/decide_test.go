package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/file"
	"github.com/fantasia-hpo/fantasia/study/jobpolicy"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// spec is that of a small study, changed.
func spec(t *testing.T, replace ...string) any {
	t.Helper()
	text := strings.NewReplacer(replace...).Replace(`{
		"objective": {"metric": "loss", "direction": "minimize"},
		"parameters": [{"name": "x", "type": "float", "min": 0, "max": 1}, {"name": "k", "type": "categorical", "values": [1, 2]}],
		"budget": {"maxTrials": 10},
		"pool": "default",
		"trial": {"command": ["true"]}
	}`)
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func resource(t *testing.T, replace ...string) *Resource {
	return &Resource{
		Namespace: "team-a", Name: "digits", UID: "8d6b7e0f-4ad6-4a2f-8f43-5d6d4b2f7c11", Version: "7", Generation: 2,
		Created: began.Add(time.Hour), Spec: spec(t, replace...),
	}
}

func rules() *Rules {
	return &Rules{
		Parse: func(text []byte) (*study.Study, error) { return file.Parse(text) },
		Pools: Pools{"team-a": {"default", "gpu"}, Any: {"shared"}},
		Jobs:  jobpolicy.Policies{"team-a": {ServiceAccounts: []string{"training"}}},
		Began: began,
	}
}

// known is what the ledger has of a resource's study.
func known(t *testing.T, r *Resource) *ledger.Summary {
	t.Helper()
	s, err := rules().parse(r)
	if err != nil {
		t.Fatal(err)
	}
	return &ledger.Summary{Study: record.Study{ID: r.ID(), Definition: *s}, Status: record.Status{State: study.Running}}
}

// command is the trial of the study, and job one that brings a Job which runs as an account.
const command = `"command": ["true"]`

func job(account string) string {
	return fmt.Sprintf(`"job": {"spec": {"template": {"spec": {"serviceAccountName": %q, "containers": [{"name": "a", "image": "b"}]}}}}`,
		account)
}

func TestDecide(t *testing.T) {
	accepted := func(r *Resource) {
		r.Status.ID = r.ID()
		r.Status.ObservedGeneration = r.Generation
		r.Status.Conditions = []metav1.Condition{{Type: ConditionAccepted, Reason: ReasonAccepted}}
	}
	for _, test := range []struct {
		name   string
		change []string        // of the spec
		with   func(*Resource) // of the rest; nil for nothing
		ledger bool            // whether it has the unchanged study, with a program's attributes
		want   Action
		reason string
		says   string // a part of the message
	}{
		{name: "new", want: Create, reason: ReasonAccepted},
		{name: "another's finalizer", ledger: true, with: func(r *Resource) { r.Finalizers = []string{"other"} }, want: Show,
			reason: ReasonAccepted},
		{name: "unchanged", ledger: true, with: accepted, want: Show, reason: ReasonAccepted},
		{name: "taken up by a leader that died", ledger: true, want: Show, reason: ReasonAccepted},
		{name: "invalid", change: []string{`"max": 1}`, `"max": -1}`}, want: Show, reason: ReasonInvalid,
			says: "spec.parameters[0].max: -1 is below min, 0"},
		{name: "invalid while it runs", change: []string{`"max": 1}`, `"max": -1}`}, ledger: true, want: Show, reason: ReasonInvalid,
			says: "continues with its previous spec"},
		{name: "unknown field", change: []string{`"pool"`, `"poool"`}, want: Show, reason: ReasonInvalid, says: `did you mean "pool"`},
		{name: "denied", change: []string{`"default"`, `"tpu"`}, want: Show, reason: ReasonDenied,
			says: `namespace team-a may not use pool "tpu"; it may use default, gpu`},
		{name: "denied by another namespace's pools", change: []string{`"default"`, `"shared"`}, want: Show, reason: ReasonDenied,
			says: "team-a"},
		{name: "a larger budget", change: []string{"10", "20"}, ledger: true, want: Update, reason: ReasonAccepted},
		{name: "another allowed pool", change: []string{`"default"`, `"gpu"`}, ledger: true, want: Update, reason: ReasonAccepted},
		{name: "changed through the API", change: []string{"10", "20"}, ledger: true, with: accepted, want: Show, reason: ReasonAccepted,
			says: "through the API"},
		{name: "incompatible", change: []string{`"loss"`, `"error"`}, ledger: true, want: Show, reason: ReasonIncompatible,
			says: `spec.objective.metric was "loss" and is "error"`},
		{name: "a Job", change: []string{command, job("training")}, want: Create, reason: ReasonAccepted},
		{name: "a Job beyond the policy", change: []string{command, job("admin")}, want: Show, reason: ReasonDenied,
			says: `spec.trial.job.spec.template.spec.serviceAccountName: the Jobs of namespace team-a may not run as service account "admin"; they may run as training`},
		{name: "a Job of a namespace without a policy", change: []string{command, job("training"), `"default"`, `"shared"`},
			with: func(r *Resource) { r.Namespace = "team-b" },
			want: Show, reason: ReasonDenied, says: "spec.trial.job: namespace team-b may not bring Job templates"},
		{name: "a Job instead of the command", change: []string{command, job("training")}, ledger: true, want: Show, reason: ReasonIncompatible,
			says: "spec.trial.job was null and is "},
		{name: "deleted through the API", with: accepted, want: Show, reason: ReasonDeleted, says: "is not in the ledger any more"},
		{name: "status of another resource", with: func(r *Resource) { r.Status.ID = "01k0000000000000000000000a" }, want: Create,
			reason: ReasonAccepted},
		{name: "being deleted", with: func(r *Resource) { r.Deleting = true }, ledger: true, want: Delete},
		{name: "being deleted, without a study", with: func(r *Resource) { r.Deleting = true }, want: Leave},
		{name: "being deleted, another's finalizer", with: func(r *Resource) { r.Deleting, r.Finalizers = true, []string{"other"} }, want: Leave},
		{name: "being deleted while invalid", change: []string{`"max": 1}`, `"max": -1}`}, with: func(r *Resource) { r.Deleting = true },
			ledger: true, want: Delete},
		{name: "being deleted, an earlier version's finalizer, without a study", with: func(r *Resource) {
			r.Deleting, r.Finalizers = true, []string{Finalizer}
		}, want: Delete},
		{name: "being deleted, another's finalizer, with a study", with: func(r *Resource) { r.Deleting, r.Finalizers = true, []string{"other"} },
			ledger: true, want: Delete},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := resource(t, test.change...)
			if test.with != nil {
				test.with(r)
			}
			var has *ledger.Summary
			if test.ledger {
				has = known(t, resource(t))
				has.Study.Definition.Spec.Attributes = map[string]any{"data": "digits"}
			}
			d := rules().Decide(r, has)
			if d.Action != test.want || d.Verdict.Reason != test.reason || !strings.Contains(d.Verdict.Message, test.says) {
				t.Errorf("%+v; want %s, reason %q, a message with %q", d, test.want, test.reason, test.says)
			}
			if d.Verdict.Accepted != (test.reason == ReasonAccepted) {
				t.Errorf("accepted is %t with reason %s", d.Verdict.Accepted, test.reason)
			}
			if begins := d.Action == Create || d.Action == Update; begins != (d.Study != nil) || begins && d.Study.Metadata.Name != "team-a.digits" {
				t.Errorf("%s comes with the study %+v", d.Action, d.Study)
			}
		})
	}
}

// The study of a resource that is gone is deleted, also if only a later list says so.
func TestDeletedResources(t *testing.T) {
	u := &unstructured.Unstructured{}
	u.SetUID("8d6b7e0f-4ad6-4a2f-8f43-5d6d4b2f7c11")
	u.SetCreationTimestamp(metav1.NewTime(began))
	for _, object := range []any{u, cache.DeletedFinalStateUnknown{Obj: u}} {
		limits := workqueue.NewTypedItemExponentialFailureRateLimiter[item](retryAtFirst, retryAtLast)
		k := &term{Controller: &Controller{Rules: *rules()}, queue: workqueue.NewTypedRateLimitingQueue(limits)}
		k.deleted(object)
		if got, _ := k.queue.Get(); got.gone != bare(u).ID() {
			t.Errorf("%+v is queued, want the study of the resource to be deleted", got)
		}
		k.queue.ShutDown()
	}
}

// A message names every problem with its field, and no line of a text that
// nobody wrote.
// A resource learns from resources of its own namespace, whatever it writes; what the study has read is no change of
// the resource.
func TestEarlierStudiesOfANamespace(t *testing.T) {
	learns := []string{`"pool": "default",`, `"pool": "default", "learnFrom": [{"study": "march"}, {"study": "team-b.april"}],`}
	d := rules().Decide(resource(t, learns...), nil)
	if d.Action != Create || d.Study.Spec.LearnFrom[0].Study != "team-a.march" || d.Study.Spec.LearnFrom[1].Study != "team-a.team-b.april" {
		t.Fatalf("%+v, want to learn from studies of the namespace team-a", d.Study)
	}
	k := known(t, resource(t, learns...))
	for i := range k.Study.Definition.Spec.LearnFrom {
		k.Study.Definition.Spec.LearnFrom[i].Trials = []study.EarlierTrial{{Parameters: map[string]any{"lr": 0.5}, Value: 1}}
	}
	if d := rules().Decide(resource(t, learns...), k); d.Action != Show || d.Verdict.Reason != ReasonAccepted {
		t.Errorf("the same resource again: %+v", d)
	}
}

func TestReasons(t *testing.T) {
	r := resource(t, `"max": 1}`, `"max": -1}`, `"loss"`, `"a b"`)
	got := rules().Decide(r, nil).Verdict.Message
	_, err := rules().parse(r)
	bad, ok := errors.AsType[*study.Problems](err)
	if !ok {
		t.Fatal(err)
	}
	problems := bad.List
	lines := strings.Split(got, "\n")
	if len(lines) != len(problems) || len(lines) != 2 {
		t.Fatalf("%d lines of %d problems:\n%s", len(lines), len(problems), got)
	}
	for i, p := range problems {
		if want := p.Path + ": " + p.Message; lines[i] != want {
			t.Errorf("line %d is %q, want %q", i, lines[i], want)
		}
	}
}

func TestIDs(t *testing.T) {
	a, b := resource(t), resource(t)
	if a.ID() != b.ID() || len(a.ID()) != len(record.NewID(strings.NewReader("0123456789"), began)) {
		t.Errorf("one resource has the ids %q and %q", a.ID(), b.ID())
	}
	b.UID = "8d6b7e0f-4ad6-4a2f-8f43-5d6d4b2f7c12"
	if a.ID() == b.ID() {
		t.Error("two resources have one id")
	}
	b.Created = a.Created.Add(time.Second)
	if a.ID() >= b.ID() {
		t.Errorf("the id of a later resource, %s, sorts before %s", b.ID(), a.ID())
	}
}

func TestPools(t *testing.T) {
	p := Pools{"team-a": {"default", "gpu"}, "admins": {Any}, "nobody": {}, Any: {"default"}}
	for _, test := range []struct {
		namespace, pool string
		allowed         bool
	}{
		{"team-a", "gpu", true}, {"team-a", "tpu", false}, {"admins", "tpu", true}, {"nobody", "default", false},
		{"others", "default", true}, {"others", "gpu", false}, {Any, "gpu", false},
	} {
		if err := p.Check(test.namespace, test.pool); (err == nil) != test.allowed {
			t.Errorf("%s in %s: %v", test.pool, test.namespace, err)
		}
	}
	if err := Pools(nil).Check("team-a", "default"); err == nil {
		t.Error("without a list, a pool is allowed")
	}
}
