//go:build e2e

package kube_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/kube"
	"github.com/fantasia-hpo/fantasia/internal/exchange/crd"
	"github.com/fantasia-hpo/fantasia/internal/test/testcluster"
	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
	"github.com/fantasia-hpo/fantasia/study"
	yaml "go.yaml.in/yaml/v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

const (
	module = "github.com/fantasia-hpo/fantasia/"
	// patience bounds every wait that should succeed.
	patience = 2 * time.Minute
	// program makes the test binary the program that is tuned; its value is
	// where evaluations are logged.
	program = "E2E_KUBE_PROGRAM"
)

func TestMain(m *testing.M) {
	if log := os.Getenv(program); log != "" {
		if err := evaluate(log); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if os.Getenv("FANTASIA_TRIAL") != "" { // a trial that ran all tests would start trials that do, without end
		fmt.Fprintf(os.Stderr, "a trial's program needs %s in its environment\n", program)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// evaluate is the program: a parabola, which takes a tenth of a second.
func evaluate(path string) (err error) {
	var p struct{ X float64 }
	if err := json.Unmarshal([]byte(os.Getenv("FANTASIA_PARAMETERS")), &p); err != nil {
		return err
	}
	time.Sleep(100 * time.Millisecond)
	value := (p.X - 0.3) * (p.X - 0.3)
	log, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	line, err := json.Marshal(evaluation{os.Getenv("FANTASIA_STUDY"), os.Getenv("FANTASIA_TRIAL"), value})
	if err != nil {
		return err
	}
	if _, err := log.Write(append(line, '\n')); err != nil {
		return err
	}
	fmt.Printf(`{"fantasia": {"metrics": {"loss": %v, "x": %v}}}`+"\n", value, p.X)
	return nil
}

// evaluation is a line of the program's log.
type evaluation struct {
	Study, Trial string
	Value        float64
}

// rig is a namespace of the cluster, and coordinators and a worker beside it.
type rig struct {
	*testcluster.Cluster
	t         *testing.T
	namespace string
	log       string // of the evaluations
	kube      dynamic.Interface
	config    *rest.Config
}

var (
	events      = schema.GroupVersionResource{Version: "v1", Resource: "events"}
	namespaces  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

func newRig(t *testing.T, coordinators int) *rig {
	t.Helper()
	config, err := kube.Config()
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, kube: client, config: config, namespace: fmt.Sprintf("fantasia-kube-%d", os.Getpid())}
	r.define()
	r.newNamespace()
	r.start(coordinators)
	return r
}

// newNamespace makes the rig's namespace for the length of the test.
func (r *rig) newNamespace() {
	r.t.Helper()
	ns := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace",
		"metadata": map[string]any{"name": r.namespace}}}
	if _, err := r.kube.Resource(namespaces).Create(r.t.Context(), ns, metav1.CreateOptions{}); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := r.kube.Resource(namespaces).Delete(ctx, r.namespace, metav1.DeleteOptions{}); err != nil {
			r.t.Error(err)
		}
	})
}

// define installs the definition for the length of the test. One that is there
// is left to whom it belongs, unless it says something else.
func (r *rig) define() {
	r.t.Helper()
	text, err := crd.YAML()
	if err != nil {
		r.t.Fatal(err)
	}
	var definition any
	if err := yaml.Unmarshal(text, &definition); err != nil {
		r.t.Fatal(err)
	}
	patch, err := json.Marshal(definition)
	if err != nil {
		r.t.Fatal(err)
	}
	const name, manager = study.Plural + "." + study.Group, "e2e"
	before, errBefore := r.kube.Resource(definitions).Get(r.t.Context(), name, metav1.GetOptions{})
	force := true
	options := metav1.PatchOptions{FieldManager: manager, Force: &force, DryRun: []string{metav1.DryRunAll}}
	after, err := r.kube.Resource(definitions).Patch(r.t.Context(), name, types.ApplyPatchType, patch, options)
	if err != nil {
		r.t.Fatal(err)
	}
	if errBefore != nil || before.GetGeneration() != after.GetGeneration() {
		options.DryRun = nil
		if _, err := r.kube.Resource(definitions).Patch(r.t.Context(), name, types.ApplyPatchType, patch, options); err != nil {
			r.t.Fatal(err)
		}
	}
	// Whoever applies the same text, such as helm after kubectl, is in no conflict with the first.
	others := metav1.PatchOptions{FieldManager: "another", DryRun: []string{metav1.DryRunAll}}
	if _, err := r.kube.Resource(definitions).Patch(r.t.Context(), name, types.ApplyPatchType, patch, others); err != nil {
		r.t.Errorf("the definition cannot be applied twice: %v", err)
	}
	if errBefore != nil {
		r.t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			if err := r.kube.Resource(definitions).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
				r.t.Error(err)
			}
		})
	}
	testenv.Eventually(r.t, patience, func(ctx context.Context) error {
		_, err := r.kube.Resource(kube.Studies()).List(ctx, metav1.ListOptions{})
		return err
	})
}

// start starts the coordinators and the worker.
func (r *rig) start(coordinators int) {
	t := r.t
	t.Helper()
	dir := t.TempDir()
	r.log = filepath.Join(dir, "evaluations")
	pools := filepath.Join(dir, "pools.yaml")
	if err := os.WriteFile(pools, fmt.Appendf(nil, "%s: [default, empty]\n", r.namespace), 0o600); err != nil {
		t.Fatal(err)
	}
	r.Cluster = testcluster.Start(t, testcluster.Options{
		Coordinators: coordinators, Args: []string{"--studies", "--study-pools", pools, "--study-namespaces", r.namespace},
	})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	testenv.Start(t, testenv.Build(t, module+"cmd/worker"), []string{
		"--nats", r.NATS, "--slots", "4", "--gpus", "none", "--pass-env", program, "--state", filepath.Join(dir, "worker"), "--", self,
	}, []string{program + "=" + r.log}, nil)
}

// study is a resource, whose spec is changed by replacements.
func (r *rig) study(name string, trials int, replace ...string) *unstructured.Unstructured {
	r.t.Helper()
	text := strings.NewReplacer(replace...).Replace(fmt.Sprintf(`
apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: %s}
spec:
  objective: {metric: loss, direction: minimize}
  parameters: [{name: x, type: float, min: 0, max: 1}]
  algorithm: {name: gp, settings: {noise: "no"}, seed: 1}
  budget: {maxTrials: %d}
  parallelism: 4
  trial: {command: [unused], retries: {lost: 10}}
`, name, trials))
	u := &unstructured.Unstructured{}
	var object any
	err := yaml.Unmarshal([]byte(text), &object)
	if err == nil {
		text, errJSON := json.Marshal(object)
		err = errors.Join(errJSON, u.UnmarshalJSON(text))
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return u
}

// apply is kubectl apply --server-side.
func (r *rig) apply(u *unstructured.Unstructured) error {
	_, err := r.kube.Resource(kube.Studies()).Namespace(r.namespace).Apply(r.t.Context(), u.GetName(), u,
		metav1.ApplyOptions{FieldManager: "kubectl"})
	return err
}

// get reads a resource.
func (r *rig) get(ctx context.Context, name string) (*kube.Resource, error) {
	u, err := r.kube.Resource(kube.Studies()).Namespace(r.namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return kube.Read(u)
}

// await waits until a resource is as it should be; want says what is missing.
func (r *rig) await(name string, want func(*kube.Resource) error) *kube.Resource {
	r.t.Helper()
	var last *kube.Resource
	testenv.Eventually(r.t, patience, func(ctx context.Context) (err error) {
		if last, err = r.get(ctx, name); err != nil {
			return err
		}
		if last.Status.ObservedGeneration != last.Generation {
			return fmt.Errorf("generation %d is not observed: %+v", last.Generation, last.Status)
		}
		return want(last)
	})
	return last
}

// condition wants a condition with a reason, and a text in its message.
func condition(kind, reason, says string) func(*kube.Resource) error {
	return func(r *kube.Resource) error {
		for _, c := range r.Status.Conditions {
			if c.Type == kind && c.Reason == reason && strings.Contains(c.Message, says) {
				return nil
			}
		}
		return fmt.Errorf("want %s with reason %s and %q: %+v", kind, reason, says, r.Status)
	}
}

// holds wants exactly these conditions to be true.
func holds(kinds ...string) func(*kube.Resource) error {
	return func(r *kube.Resource) error {
		var got []string
		for _, c := range r.Status.Conditions {
			if c.Status == metav1.ConditionTrue {
				got = append(got, c.Type)
			}
		}
		if !slices.Equal(got, kinds) {
			return fmt.Errorf("the conditions %q are true, want %q: %+v", got, kinds, r.Status)
		}
		return nil
	}
}

// told waits until a resource has events with these reasons, in their order. Events with
// other reasons may be among them, as a machine that is busy has silent workers.
func (r *rig) told(name string, reasons ...string) {
	r.t.Helper()
	testenv.Eventually(r.t, patience, func(ctx context.Context) error {
		list, err := r.kube.Resource(events).Namespace(r.namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + name})
		if err != nil {
			return err
		}
		var got []string
		for _, e := range list.Items { // their names end in their times
			got = append(got, fmt.Sprintf("%s %v", e.GetName(), e.Object["reason"]))
		}
		slices.Sort(got)
		for i, text := range got {
			_, got[i], _ = strings.Cut(text, " ")
		}
		got = slices.DeleteFunc(got, func(reason string) bool { return !slices.Contains(reasons, reason) })
		if !slices.Equal(got, reasons) {
			return fmt.Errorf("the events of %s are %q, want %q", name, got, reasons)
		}
		return nil
	})
}

// evaluations are the values that were logged for a study, by trial.
func (r *rig) evaluations(study string) map[string][]float64 {
	r.t.Helper()
	text, err := os.ReadFile(r.log)
	if err != nil {
		r.t.Fatal(err)
	}
	values := map[string][]float64{}
	for line := range strings.Lines(string(text)) {
		var e evaluation
		if json.Unmarshal([]byte(line), &e) == nil && e.Study == study {
			values[e.Trial] = append(values[e.Trial], e.Value)
		}
	}
	return values
}

// table is what kubectl get prints: the API server makes its cells.
func (r *rig) table() *metav1.Table {
	r.t.Helper()
	url := r.config.Host + "/apis/fantasia.dev/v1/namespaces/" + r.namespace + "/studies"
	client, err := rest.HTTPClientFor(r.config)
	if err != nil {
		r.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, url, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	resp, err := client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	var table metav1.Table
	if err := json.NewDecoder(resp.Body).Decode(&table); err != nil {
		r.t.Fatal(err)
	}
	return &table
}
