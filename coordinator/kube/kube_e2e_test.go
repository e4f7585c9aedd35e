//go:build e2e

package kube_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"
	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/fantasia/v1/fantasiav1connect"
	"github.com/fantasia-hpo/fantasia/coordinator/kube"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/internal/app/inject"
	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
	"github.com/fantasia-hpo/fantasia/study"
	clientv3 "go.etcd.io/etcd/client/v3"
	yaml "go.yaml.in/yaml/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"
)

// TestStudiesAsResources runs studies by their resources, against the cluster
// that KUBECONFIG names; coordinators, worker, NATS and etcd run beside it.
func TestStudiesAsResources(t *testing.T) {
	r := newRig(t, 2)
	t.Run("samples", r.with(testSamples))
	t.Run("manifests", r.with(testManifests))
	t.Run("runs", r.with(testRuns))
	t.Run("grows", r.with(testGrows))
	t.Run("front", r.with(testFront))
	t.Run("refused by the API server", r.with(testRefused))
	t.Run("refused by the coordinator", r.with(testRejected))
	t.Run("denied", r.with(testDenied))
	t.Run("goes on under the next leader", r.with(testNextLeader))
	t.Run("deleted through the API", r.with(testDeletedOtherwise))
	t.Run("no worker", r.with(testNoWorker))
	t.Run("another namespace", r.with(testOtherNamespace))
	t.Run("deleted", r.with(testDeleted))
	t.Run("made again", r.with(testMadeAgain))
	t.Run("restored", r.with(testRestored))
	t.Run("deleted while nobody led", r.with(testDeletedMeanwhile))
	t.Run("of an earlier version", r.with(testEarlierVersion))
}

func (r *rig) with(test func(t *testing.T, r *rig)) func(*testing.T) {
	return func(t *testing.T) {
		inner := *r
		inner.t = t
		test(t, &inner)
	}
}

// complete waits for the end of a study, and holds its status against what the
// evaluations logged.
func complete(t *testing.T, r *rig, name string, trials int) *kube.Resource {
	t.Helper()
	got := r.await(name, func(k *kube.Resource) error {
		if k.Status.State != study.Completed || k.Status.Recommended == nil || k.Status.Done != trials {
			return fmt.Errorf("not complete: %+v", k.Status)
		}
		return condition(kube.ConditionComplete, kube.ReasonCompleted, "")(k)
	})
	values, best := r.evaluations(r.namespace+"."+name), math.Inf(1)
	for trial, list := range values {
		// A trial can have been run more than once only where a leader was killed.
		if slices.Min(list) != slices.Max(list) {
			t.Errorf("trial %s has the values %v", trial, list)
		}
		best = min(best, list[0])
	}
	s := &got.Status
	if len(values) != trials || s.Best == nil || s.Best.Value != best || s.Counts == nil || s.Counts.Completed != trials {
		t.Errorf("%d trials were evaluated, the best %v; the status is %+v", len(values), best, s)
	}
	if x, ok := s.Best.Parameters["x"].(float64); !ok || (x-0.3)*(x-0.3) != best {
		t.Errorf("the best parameters are %v", s.Best.Parameters)
	}
	if len(got.Finalizers) > 0 || s.ID != got.ID() || s.StartTime == nil || s.CompletionTime == nil {
		t.Errorf("the resource is %+v", got)
	}
	in, err := r.Ledger.Study(t.Context(), r.namespace+"."+name)
	if err != nil || in.Study.ID != got.ID() {
		t.Errorf("the ledger has %+v, %v", in.Study, err)
	}
	return got
}

func testRuns(t *testing.T, r *rig) {
	if err := r.apply(r.study("runs", 12)); err != nil {
		t.Fatal(err)
	}
	got := complete(t, r, "runs", 12)
	r.await("runs", holds(kube.ConditionAccepted, kube.ConditionComplete, kube.ConditionFinished))
	r.told("runs", kube.ReasonAccepted, kube.EventStarted, kube.ReasonCompleted)
	table := r.table()
	var names []string
	for _, c := range table.ColumnDefinitions {
		if c.Priority == 0 {
			names = append(names, c.Name)
		}
	}
	if want := []string{"Name", "State", "Accepted", "Done", "Trials", "Best", "Recommended", "Age"}; !slices.Equal(names, want) {
		t.Errorf("kubectl get shows the columns %q, want %q", names, want)
	}
	row := fmt.Sprintf("%v", table.Rows[0].Cells[:7])
	if want := fmt.Sprintf("[runs COMPLETED Accepted 12 12 %.4g %.4g]", got.Status.Best.Value, got.Status.Recommended.Mean); row != want {
		t.Errorf("kubectl get shows %s, want %s", row, want)
	}
}

// testFront looks at the columns of a study of two objectives, in whose front all trials are: both
// objectives grow from 0.3 on, in opposite directions.
func testFront(t *testing.T, r *rig) {
	err := r.apply(r.study("front", 4,
		"objective: {metric: loss, direction: minimize}",
		"objectives: [{metric: loss, direction: minimize, reference: 1}, {metric: x, direction: maximize, reference: 0}]",
		"min: 0", "min: 0.3"))
	if err != nil {
		t.Fatal(err)
	}
	got := r.await("front", condition(kube.ConditionComplete, kube.ReasonCompleted, ""))
	front, volume, worse := got.Status.Front, 0.0, 1.0
	values := r.evaluations(r.namespace + ".front")
	losses := make([]float64, 0, len(values))
	for _, list := range values {
		losses = append(losses, list[0])
	}
	slices.Sort(losses)
	for _, loss := range slices.Backward(losses) { // the strip between it and the next larger loss
		volume += (worse - loss) * (0.3 + math.Sqrt(loss))
		worse = loss
	}
	if front == nil || front.Size != 4 || front.Hypervolume == nil || math.Abs(*front.Hypervolume-volume) > 1e-9 || got.Status.Best != nil {
		t.Fatalf("the front is %+v, want 4 trials and a hypervolume of %v", front, volume)
	}
	r.await("front", func(s *kube.Resource) error {
		f, knee := s.Status.Front, s.Status.Recommended
		if knee == nil || knee.Parameters["x"] == nil || !slices.Contains(f.Recommended, knee.Trial) {
			return fmt.Errorf("the front is %+v and its knee %+v, want one of the recommended trials with its parameters", f, knee)
		}
		return nil
	})
	row := map[string]any{}
	table := r.table()
	i := slices.IndexFunc(table.Rows, func(row metav1.TableRow) bool { return row.Cells[0] == "front" })
	for k, c := range table.ColumnDefinitions {
		row[c.Name] = table.Rows[i].Cells[k]
	}
	if size, ok := row["Front"].(float64); !ok || size != 4 || row["Hypervolume"] != fmt.Sprintf("%.4g", volume) {
		t.Errorf("kubectl get shows %v, want the front of 4 trials and %.4g", row, volume)
	}
}

func testGrows(t *testing.T, r *rig) {
	if err := r.apply(r.study("runs", 15)); err != nil {
		t.Fatal(err)
	}
	complete(t, r, "runs", 15)
	err := r.apply(r.study("runs", 15, "metric: loss", "metric: other"))
	if err == nil || !strings.Contains(err.Error(), "objective.metric cannot change once the study has begun") {
		t.Errorf("another metric: %v", err)
	}
	// A wider range is an edit: the study goes on in it.
	if err := r.apply(r.study("runs", 16, "max: 1}", "max: 2}")); err != nil {
		t.Fatal(err)
	}
	complete(t, r, "runs", 16)
	if err := r.apply(r.study("runs", 17, "type: float, min: 0, max: 1}", "type: int, min: 0, max: 2}")); err != nil {
		t.Fatal(err)
	}
	r.await("runs", condition(kube.ConditionAccepted, kube.ReasonIncompatible, `spec.parameters.x.type was "float" and is "int"`))
	if err := r.apply(r.study("runs", 16, "max: 1}", "max: 2}")); err != nil {
		t.Fatal(err)
	}
	r.await("runs", condition(kube.ConditionAccepted, kube.ReasonAccepted, ""))
}

// testRefused holds what the definition itself refuses, in clear words.
func testRefused(t *testing.T, r *rig) {
	for _, test := range []struct{ name, old, new, says string }{
		{"bounds", "max: 1}", "max: -1}", "spec.parameters[0].max: Invalid value: max must be above min"},
		{"log", "min: 0, max: 1}", "min: 0, max: 1, scale: log}", "spec.parameters[0].min: Invalid value: scale log needs a range above 0"},
		{"no-max", ", max: 1}", "}", "a float, an int or a fidelity needs min and max"},
		{"type", "type: float", "type: real", `spec.parameters[0].type: Unsupported value: "real": supported values: "float", "int"`},
		{"int", "type: float, min: 0", "type: int, min: 0.5", "an int has whole bounds"},
		{"step", "max: 1}", "max: 1, step: 3}", "a step is at most the whole range"},
		{"prior", "max: 1}", "max: 1, prior: {mean: 0.5}}",
			"spec.parameters[0].prior: Invalid value: the prior of a float or an int has mean and sd"},
		{"no-trials", "maxTrials: 5", "maxTrials: 0", "spec.budget.maxTrials: Invalid value: 0: spec.budget.maxTrials in body should be " +
			"greater than or equal to 1"},
		{"metrics", "retries:", "metrics: {pattern: a, file: b}, retries:", "metrics have one of pattern, file and events"},
		{"goal", "  parameters:", "  goal: {hypervolume: 1}\n  parameters:",
			"a goal of several objectives needs at most 4 of them, each with a reference"},
		{"job", "retries:", "job: {spec: {template: {}}}, retries:", "spec.trial.job: Invalid value: a job cannot be combined with command"},
		{"env", "retries:", "env: {FANTASIA_X: a}, retries:", "FANTASIA_ are reserved"},
		{"direction", ", direction: minimize", "", "spec.objective.direction: Required value"},
		{"a.b", "", "", "a study's name is lower-case letters, digits and dashes"},
	} {
		err := r.apply(r.study(test.name, 5, test.old, test.new))
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %q", test.name, err, test.says)
		}
	}
	twice := r.study("twice", 5, "max: 1}]", "max: 1}, {name: x, type: bool}]")
	_, err := r.kube.Resource(kube.Studies()).Namespace(r.namespace).Create(t.Context(), twice, metav1.CreateOptions{})
	if want := `spec.parameters[1]: Duplicate value: {"name":"x"}`; !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("one name twice: %v, want %q", err, want)
	}
}

// testRejected holds what only the coordinator sees: the condition has the texts
// of the command line.
func testRejected(t *testing.T, r *rig) {
	const old, new = "algorithm: {name: gp", "constraints: ['y <= 1']\n  algorithm: {name: magic"
	if err := r.apply(r.study("rejected", 5, old, new)); err != nil {
		t.Fatal(err)
	}
	got := r.await("rejected", condition(kube.ConditionAccepted, kube.ReasonInvalid, "spec.algorithm.name: \"magic\" is not an algorithm"))
	if err := condition(kube.ConditionAccepted, kube.ReasonInvalid, `spec.constraints[0]: "y <= 1": `)(got); err != nil {
		t.Error(err)
	}
	if got.Status.State != kube.StateRejected || len(got.Finalizers) != 0 {
		t.Errorf("the resource is %+v", got)
	}
	// Mended, it runs.
	if err := r.apply(r.study("rejected", 5)); err != nil {
		t.Fatal(err)
	}
	complete(t, r, "rejected", 5)
}

func testDenied(t *testing.T, r *rig) {
	if err := r.apply(r.study("denied", 5, "parallelism: 4", "pool: gpu")); err != nil {
		t.Fatal(err)
	}
	r.await("denied",
		condition(kube.ConditionAccepted, kube.ReasonDenied, "namespace "+r.namespace+` may not use pool "gpu"; it may use default`))
	if _, err := r.Ledger.Study(t.Context(), r.namespace+".denied"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("the ledger: %v", err)
	}
}

func testNextLeader(t *testing.T, r *rig) {
	const trials = 120
	if err := r.apply(r.study("failover", trials)); err != nil {
		t.Fatal(err)
	}
	r.await("failover", func(k *kube.Resource) error {
		if k.Status.Done < 10 {
			return fmt.Errorf("%d are done", k.Status.Done)
		}
		return nil
	})
	r.KillLeader()
	complete(t, r, "failover", trials)
	r.told("failover", kube.ReasonAccepted, kube.EventStarted, kube.EventLeaderChanged, kube.ReasonCompleted)
}

func testDeletedOtherwise(t *testing.T, r *rig) {
	if err := r.apply(r.study("elsewhere", 100000)); err != nil {
		t.Fatal(err)
	}
	r.await("elsewhere", condition(kube.ConditionProgressing, kube.ReasonRunning, ""))
	_, address, _ := r.Leader(0)
	client := fantasiav1connect.NewStudyServiceClient(http.DefaultClient, "http://"+address)
	name := "studies/" + r.namespace + ".elsewhere"
	if _, err := client.StopStudy(t.Context(), connect.NewRequest(&fantasiav1.StopStudyRequest{Name: name, Reason: "enough"})); err != nil {
		t.Fatal(err)
	}
	r.await("elsewhere", condition(kube.ConditionProgressing, kube.ReasonStopped, "enough"))
	r.await("elsewhere", holds(kube.ConditionAccepted, kube.ConditionComplete, kube.ConditionFinished))
	if _, err := client.DeleteStudy(t.Context(), connect.NewRequest(&fantasiav1.DeleteStudyRequest{Name: name, Force: true})); err != nil {
		t.Fatal(err)
	}
	r.await("elsewhere", condition(kube.ConditionAccepted, kube.ReasonDeleted, "is not in the ledger any more"))
}

// testNoWorker holds that a study says why none of its trials runs.
func testNoWorker(t *testing.T, r *rig) {
	if err := r.apply(r.study("waits", 5, "parallelism: 4", "parallelism: 4\n  pool: empty")); err != nil {
		t.Fatal(err)
	}
	r.await("waits", condition(kube.ConditionProgressing, kube.ReasonNoWorkers, "no worker of pool empty has been heard"))
	r.await("waits", holds(kube.ConditionAccepted))
	if err := r.apply(r.study("waits", 5)); err != nil {
		t.Fatal(err)
	}
	complete(t, r, "waits", 5)
	r.told("waits", kube.ReasonAccepted, kube.EventStarted, kube.ReasonNoWorkers, kube.ReasonAccepted, kube.ReasonCompleted)
}

// testOtherNamespace holds that a resource which nobody runs says so.
func testOtherNamespace(t *testing.T, r *rig) {
	other := *r
	other.namespace = r.namespace + "-other"
	other.newNamespace()
	if err := other.apply(other.study("ignored", 5)); err != nil {
		t.Fatal(err)
	}
	got := other.await("ignored",
		condition(kube.ConditionAccepted, kube.ReasonNotWatched, "no coordinator runs the studies of namespace "+other.namespace))
	if len(got.Finalizers) > 0 || got.Status.ID != "" {
		t.Errorf("the resource is %+v", got)
	}
	other.told("ignored", kube.EventRejected)
}

// erase deletes a resource, and waits until it and its study are gone.
func erase(t *testing.T, r *rig, name string) {
	t.Helper()
	k, err := r.get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.kube.Resource(kube.Studies()).Namespace(r.namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, patience, func(ctx context.Context) error {
		_, err := r.get(ctx, name)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("the deleted resource is still there"), err)
	})
	for _, key := range []string{"studies/" + k.ID() + "/", "names/" + r.namespace + "." + name} {
		testenv.Eventually(t, patience, func(ctx context.Context) error {
			resp, err := r.Etcd.Get(ctx, "/fantasia/v1/"+key, clientv3.WithPrefix(), clientv3.WithCountOnly())
			if err == nil && resp.Count != 0 {
				err = fmt.Errorf("the ledger has %d records below %s", resp.Count, key)
			}
			return err
		})
	}
}

func testDeleted(t *testing.T, r *rig) {
	if err := r.apply(r.study("running", 100000)); err != nil {
		t.Fatal(err)
	}
	r.await("running", func(k *kube.Resource) error {
		if k.Status.Done == 0 {
			return errors.New("no trial has ended")
		}
		return nil
	})
	for _, name := range []string{"running", "runs", "denied", "elsewhere"} {
		erase(t, r, name)
	}
}

// testMadeAgain makes a resource again under the name of a deleted one.
func testMadeAgain(t *testing.T, r *rig) {
	first := complete(t, r, "rejected", 5)
	erase(t, r, "rejected")
	if err := r.apply(r.study("rejected", 5)); err != nil {
		t.Fatal(err)
	}
	second := r.await("rejected", condition(kube.ConditionComplete, kube.ReasonCompleted, ""))
	if first.Status.ID == second.Status.ID {
		t.Errorf("both studies have the id %s", second.Status.ID)
	}
}

// testRestored restores a backup after a resource was deleted and created again under its name:
// the study of the deleted resource does not go on, and that of another resource does.
func testRestored(t *testing.T, r *rig) {
	for _, name := range []string{"revived", "stays"} {
		if err := r.apply(r.study(name, 100000)); err != nil {
			t.Fatal(err)
		}
		r.await(name, func(k *kube.Resource) error {
			if k.Status.Done == 0 {
				return errors.New("no trial has ended")
			}
			return nil
		})
	}
	old, err := r.get(t.Context(), "revived")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "studies.backup")
	program := testenv.Build(t, module+"cmd/fantasia")
	fantasia := func(ctx context.Context, args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, program, append(args, "--etcd", r.EtcdServer.URL)...).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("fantasia %q: %w\n%s", args, err, out)
		}
		return string(out), err
	}
	if _, err := fantasia(t.Context(), "backup", file); err != nil {
		t.Fatal(err)
	}
	erase(t, r, "revived")
	if err := r.apply(r.study("revived", 5)); err != nil {
		t.Fatal(err)
	}
	r.await("revived", condition(kube.ConditionComplete, kube.ReasonCompleted, ""))
	for _, p := range r.Coordinators {
		p.Kill()
	}
	var out string
	testenv.Eventually(t, patience, func(ctx context.Context) (err error) { // the lease of the killed leader ends
		out, err = fantasia(ctx, "restore", file, "--force")
		return err
	})
	for name, fate := range map[string]string{"revived": "is stopped: restored from a backup", "stays": "goes on"} {
		if !strings.Contains(out, r.namespace+"."+name+", id ") || !strings.Contains(out, fate) {
			t.Errorf("want %s: %s in\n%s", name, fate, out)
		}
	}
	before, err := r.Ledger.Study(t.Context(), r.namespace+".stays")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range r.Coordinators {
		p.Restart()
	}
	r.await("stays", func(k *kube.Resource) error {
		if k.Status.Done < before.Status.Counts.Ended()+100 {
			return fmt.Errorf("it does not go on: %+v", k.Status)
		}
		return nil
	})
	r.await("revived", condition(kube.ConditionAccepted, kube.ReasonDeleted, "a backup without it was restored"))
	r.await("revived", holds(kube.ConditionComplete, kube.ConditionFinished))
	in, err := r.Ledger.Study(t.Context(), old.ID())
	if err != nil || in.Status.State != study.Stopped || in.Status.Counts.Open() != 0 {
		t.Errorf("the study of the deleted resource is %+v, %v", in.Status, err)
	}
	erase(t, r, "stays")
}

// testDeletedMeanwhile deletes a resource while no coordinator runs, and makes it again under its name: the
// next leader ends the study of the first, and runs that of the second.
func testDeletedMeanwhile(t *testing.T, r *rig) {
	for _, name := range []string{"meanwhile", "replaced"} {
		if err := r.apply(r.study(name, 100000)); err != nil {
			t.Fatal(err)
		}
		r.await(name, condition(kube.ConditionProgressing, kube.ReasonRunning, ""))
	}
	old := map[string]string{}
	for _, p := range r.Coordinators {
		p.Kill()
	}
	for _, name := range []string{"meanwhile", "replaced"} {
		k, err := r.get(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		old[name] = k.ID()
		if err := r.kube.Resource(kube.Studies()).Namespace(r.namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := r.get(t.Context(), name); !apierrors.IsNotFound(err) {
			t.Errorf("without a coordinator, the deleted resource is still there: %v", err)
		}
	}
	if err := r.apply(r.study("replaced", 5)); err != nil {
		t.Fatal(err)
	}
	for _, p := range r.Coordinators {
		p.Restart()
	}
	testenv.Eventually(t, patience, func(ctx context.Context) error {
		in, err := r.Ledger.Study(ctx, old["meanwhile"])
		if err == nil && (in.Status.State != study.Stopped || !strings.Contains(in.Status.Reason, "was deleted while no coordinator led")) {
			err = fmt.Errorf("the study of the deleted resource is %+v", in.Status)
		}
		return err
	})
	got := r.await("replaced", condition(kube.ConditionComplete, kube.ReasonCompleted, "")) // the log has the first's trials, too
	if got.ID() == old["replaced"] || got.Status.ID != got.ID() || got.Status.Done != 5 {
		t.Errorf("the second study, after %s, is %+v", old["replaced"], got.Status)
	}
	erase(t, r, "replaced")
}

// testEarlierVersion holds a resource with the finalizer that earlier versions put on: a leader takes it off.
func testEarlierVersion(t *testing.T, r *rig) {
	finalized := r.study("finalized", 100000)
	finalized.SetFinalizers([]string{kube.Finalizer, "example.com/other"})
	if err := r.apply(finalized); err != nil {
		t.Fatal(err)
	}
	r.await("finalized", func(k *kube.Resource) error {
		if !slices.Equal(k.Finalizers, []string{"example.com/other"}) {
			return fmt.Errorf("the resource has the finalizers %q", k.Finalizers)
		}
		return condition(kube.ConditionProgressing, kube.ReasonRunning, "")(k)
	})
	finalized.SetFinalizers(nil)
	if err := r.apply(finalized); err != nil {
		t.Fatal(err)
	}
	erase(t, r, "finalized")
	erase(t, r, "failover")
}

// testManifests holds that the API server takes every document of the samples as it stands. The
// template of Jobs is the content of a ConfigMap; TestKubejobSample in deploy/e2e runs it.
func testManifests(t *testing.T, r *rig) {
	client, err := discovery.NewDiscoveryClientForConfig(r.config)
	if err != nil {
		t.Fatal(err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client))
	files, err := filepath.Glob("../../deploy/samples/*.yaml")
	if err != nil || len(files) < 6 {
		t.Fatalf("the samples are %q, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for loader := yaml.NewDecoder(strings.NewReader(string(text))); ; {
			var object map[string]any
			if err := loader.Decode(&object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			data, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			u := &unstructured.Unstructured{}
			if err := u.UnmarshalJSON(data); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			u.SetNamespace(r.namespace)
			if filepath.Base(file) == "kubejob-template.yaml" {
				u.SetName("template")
				spec, _, _ := unstructured.NestedMap(u.Object, "spec", "template", "spec")
				spec["restartPolicy"] = "Never" // the worker adds it
				if err := unstructured.SetNestedMap(u.Object, spec, "spec", "template", "spec"); err != nil {
					t.Fatal(err)
				}
			}
			mapping, err := mapper.RESTMapping(u.GroupVersionKind().GroupKind(), u.GroupVersionKind().Version)
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			_, err = r.kube.Resource(mapping.Resource).Namespace(r.namespace).Create(t.Context(), u,
				metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
			if err != nil {
				t.Errorf("%s: %s %s: %v", file, u.GetKind(), u.GetName(), err)
			}
		}
	}
}

// testSamples holds that the repository's study files are resources as they are.
func testSamples(t *testing.T, r *rig) {
	found := 0
	for _, pattern := range []string{"../../deploy/samples/*.yaml", "../../examples/*/*.yaml", "../../study/file/testdata/good/*"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := inject.ParseStudy(file, text); err != nil {
				continue // no study file
			}
			found++
			u := r.study("unused", 1)
			u.Object = nil
			var object any
			if err := yaml.Unmarshal(text, &object); err != nil {
				t.Fatal(err)
			}
			data, err := json.Marshal(object)
			if err == nil {
				err = u.UnmarshalJSON(data)
			}
			if err == nil {
				u.SetNamespace(r.namespace)
				_, err = r.kube.Resource(kube.Studies()).Namespace(r.namespace).Create(t.Context(), u,
					metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
			}
			if err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
	if found < 5 {
		t.Errorf("found only %d study files", found)
	}
}
