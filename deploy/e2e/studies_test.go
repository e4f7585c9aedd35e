//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"github.com/fantasia-hpo/fantasia/coordinator/kube"
	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
	"github.com/fantasia-hpo/fantasia/study"
)

// studiesValues enables studies only in the test's namespace, as other releases of the
// cluster have theirs. Nothing is kept. One release of a cluster installs the
// definition of studies: this one, unless another one has.
func (c *cluster) studiesValues(define bool) string {
	return fmt.Sprintf(`
image: {tag: %[1]q}
crds: {install: %[4]v, keep: false}
studies: {enabled: true, namespaces: [%[3]s], pools: {%[3]s: [default]}}
coordinator: {replicas: 2, resources: {requests: {cpu: 50m, memory: 64Mi}}}
nats: {bundled: {persistence: {enabled: false}}}
etcd: {bundled: {persistence: {enabled: false}}}
poolDefaults: {resources: {requests: {cpu: 50m, memory: 64Mi}}, podDeletionCost: true}
pools: {default: {image: "%[2]sdigits:%[1]s", allowStudyCommands: true, slots: 2}}
`, c.tag, repository, c.namespace, define)
}

// definition returns the cluster's definition of studies, or nil.
func (c *cluster) definition(ctx context.Context) (*metav1.PartialObjectMetadata, error) {
	client, err := metadata.NewForConfig(c.config)
	if err != nil {
		return nil, err
	}
	definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	d, err := client.Resource(definitions).Get(ctx, kube.Studies().GroupResource().String(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return d, err
}

// undefined reports whether the cluster lacks the definition of studies, which another
// release may have installed. It waits for one that is being deleted.
func (c *cluster) undefined() (lacking bool) {
	c.t.Helper()
	c.await(2*time.Minute, func(ctx context.Context) error {
		d, err := c.definition(ctx)
		if lacking = d == nil; err == nil && !lacking && d.DeletionTimestamp != nil {
			err = errors.New("the definition of studies is still going")
		}
		return err
	})
	return lacking
}

const studyResource = `
apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: %s}
spec:
  objective: {metric: error, direction: minimize}
  parameters:
    - {name: learning_rate, type: float, min: 1e-3, max: 0.2, scale: log}
    - {name: hidden, type: int, min: 16, max: 48, scale: log}
    - {name: epochs, type: fixed, value: 5}
  algorithm: {name: sobol, seed: 1}
  budget: {maxTrials: %d}
  parallelism: 2
  trial: {command: [digits, "${args}"], timeout: 3m}
`

// TestStudies runs a study by its resource through a release, with the permissions that
// the chart grants, and uninstalls the release while another study is running.
func TestStudies(t *testing.T) {
	inTurn(t)
	c := newCluster(t)
	define := c.undefined()
	t.Logf("with the definition of studies: %v", define)
	client, err := dynamic.NewForConfig(c.config)
	if err != nil {
		t.Fatal(err)
	}
	studies := client.Resource(kube.Studies()).Namespace(c.namespace)
	c.chart("install", c.studiesValues(define))
	for name, trials := range map[string]int{"short": 4, "endless": 100_000} {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(fmt.Appendf(nil, studyResource, name, trials), &u.Object); err != nil {
			t.Fatal(err)
		}
		c.await(time.Minute, func(ctx context.Context) error { // the definition may be a moment old
			_, err := studies.Apply(ctx, name, u, metav1.ApplyOptions{FieldManager: "kubectl"})
			return err
		})
	}
	var short, endless *kube.Resource
	read := func(ctx context.Context, name string) *kube.Resource {
		u, err := studies.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return &kube.Resource{}
		}
		r, err := kube.Read(u)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	c.await(3*time.Minute, func(ctx context.Context) error {
		short, endless = read(ctx, "short"), read(ctx, "endless")
		if short.Status.State != study.Completed || endless.Status.Done == 0 {
			return fmt.Errorf("the studies have the statuses %+v and %+v", short.Status, endless.Status)
		}
		return nil
	})
	if s := &short.Status; s.Done != 4 || s.Best == nil || len(s.Best.Parameters) != 3 || s.Study != c.namespace+".short" {
		t.Errorf("the study has the status %+v", s)
	}
	for _, r := range []*kube.Resource{short, endless} {
		if !slices.Contains(r.Finalizers, kube.Finalizer) {
			t.Errorf("study %s has the finalizers %q", r.Name, r.Finalizers)
		}
	}
	c.plugin("short")
	c.helm("uninstall", release, "--wait", "--timeout", "2m")
	list, err := studies.List(t.Context(), metav1.ListOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	for i := range items(list) {
		if f := list.Items[i].GetFinalizers(); len(f) > 0 {
			t.Errorf("after the uninstall, study %s has the finalizers %q", list.Items[i].GetName(), f)
		}
	}
	if define && !c.undefined() {
		t.Error("after the uninstall the definition of studies is there")
	}
}

// plugin shows the trials of an ended study, and the log of one, as kubectl fantasia
// does: through the API server.
func (c *cluster) plugin(name string) {
	c.t.Helper()
	program := testenv.Build(c.t, "github.com/fantasia-hpo/fantasia/cmd/fantasia")
	plugin := filepath.Join(c.t.TempDir(), "kubectl-fantasia")
	if err := os.Symlink(program, plugin); err != nil {
		c.t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"COMPLETED": {"trials", name, "--namespace", c.namespace}, "error": {"logs", name, "1", "--namespace", c.namespace},
	} {
		out, err := exec.CommandContext(c.t.Context(), plugin, args...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			c.t.Errorf("kubectl fantasia %q: %v, want %q in\n%s", args, err, want, out)
		}
	}
}

// items returns a list's items, or none if there is no list because the definition is
// gone.
func items(list *unstructured.UnstructuredList) []unstructured.Unstructured {
	if list == nil {
		return nil
	}
	return list.Items
}
