//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"

	"github.com/fantasia-hpo/fantasia/coordinator/kube"
	"github.com/fantasia-hpo/fantasia/coordinator/podcost"
	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
	"github.com/fantasia-hpo/fantasia/study"
)

// studiesValues are the values of a release that runs the studies of its own namespace,
// as the chart's default is.
func (c *cluster) studiesValues() string {
	return fmt.Sprintf(`
image: {tag: %[1]q}
coordinator: {replicas: 2, resources: {requests: {cpu: 50m, memory: 64Mi}}}
nats: {bundled: {persistence: {enabled: false}}}
etcd: {bundled: {persistence: {enabled: false}}}
poolDefaults: {resources: {requests: {cpu: 50m, memory: 64Mi}}, podDeletionCost: true}
pools: {default: {image: "%[2]sdigits:%[1]s", allowStudyCommands: true, slots: 2}}
`, c.tag, repository)
}

// definitions are the cluster's definitions of resources.
func (c *cluster) definitions() dynamic.ResourceInterface {
	c.t.Helper()
	client, err := dynamic.NewForConfig(c.config)
	if err != nil {
		c.t.Fatal(err)
	}
	return client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
}

// chartsDefinition returns the chart's definition of studies.
func (c *cluster) chartsDefinition() *unstructured.Unstructured {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "deploy/helm/fantasia/crds/study-crd.yaml"))
	if err != nil {
		c.t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &u.Object); err != nil {
		c.t.Fatal(err)
	}
	return u
}

// leaveOldDefinition makes the cluster's definition of studies one that an older version
// of the chart has left: it belongs to a release that is gone, and lacks the columns.
func (c *cluster) leaveOldDefinition() {
	c.t.Helper()
	u := c.chartsDefinition()
	u.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "Helm"})
	u.SetAnnotations(map[string]string{"meta.helm.sh/release-name": "gone", "meta.helm.sh/release-namespace": "gone",
		"helm.sh/resource-policy": "keep"})
	versions, _, err := unstructured.NestedSlice(u.Object, "spec", "versions")
	if err != nil {
		c.t.Fatal(err)
	}
	delete(versions[0].(map[string]any), "additionalPrinterColumns")
	if err := unstructured.SetNestedSlice(u.Object, versions, "spec", "versions"); err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.definitions().Apply(c.t.Context(), u.GetName(), u, metav1.ApplyOptions{FieldManager: "helm", Force: true}); err != nil {
		c.t.Fatal(err)
	}
}

// upgradeDefinition runs the command of docs/operate/kubernetes.md that updates the definition,
// which must then be the chart's.
func (c *cluster) upgradeDefinition() {
	c.t.Helper()
	if out, err := exec.CommandContext(c.t.Context(), "kubectl", "apply", "--server-side", "--force-conflicts", "--field-manager=helm",
		"--filename", filepath.Join(root, "deploy/helm/fantasia/crds")).CombinedOutput(); err != nil {
		c.t.Fatalf("%v\n%s", err, out)
	}
	want := c.chartsDefinition()
	got, err := c.definitions().Get(c.t.Context(), want.GetName(), metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	versions := func(u *unstructured.Unstructured) any { return u.Object["spec"].(map[string]any)["versions"] }
	zero := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == `["priority"]` }, cmp.Ignore()) // the server leaves 0 out
	if diff := cmp.Diff(versions(want), versions(got), zero); diff != "" {
		c.t.Errorf("the cluster's definition is not the chart's (-chart +cluster):\n%s", diff)
	}
}

// priced waits until the leader has told Kubernetes that deleting a busy worker's pod costs
// something.
func (c *cluster) priced() {
	c.t.Helper()
	c.await(time.Minute, func(ctx context.Context) error {
		pods, err := c.pods(ctx, "worker")
		if err != nil {
			return err
		}
		for _, p := range pods {
			if cost, err := strconv.Atoi(p.Annotations[podcost.Annotation]); err != nil || cost < 1 {
				return fmt.Errorf("the busy pod %s has the annotations %v, want its deletion to cost something", p.Name, p.Annotations)
			}
		}
		return nil
	})
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

// wait runs kubectl wait until a resource has a condition. The returned function waits
// for it and returns when it ended.
func (c *cluster) wait(resource, condition string) (done func() time.Time) {
	c.t.Helper()
	var out []byte
	var err error
	var ended time.Time
	var waits sync.WaitGroup
	waits.Go(func() {
		out, err = exec.CommandContext(c.t.Context(), "kubectl", "wait", "--namespace", c.namespace, resource, "--for=condition="+condition,
			"--timeout=3m").CombinedOutput()
		ended = time.Now()
	})
	return func() time.Time {
		c.t.Helper()
		waits.Wait()
		if err != nil {
			c.t.Errorf("kubectl wait %s: %v\n%s", resource, err, out)
		}
		return ended
	}
}

// TestStudies runs studies by their resources through a release, with the permissions
// that the chart grants, lets kubectl wait for one that completes and one that fails, and
// uninstalls the release while another study is running.
func TestStudies(t *testing.T) {
	inTurn(t)
	c := newCluster(t)
	c.leaveOldDefinition()
	client, err := dynamic.NewForConfig(c.config)
	if err != nil {
		t.Fatal(err)
	}
	studies := client.Resource(kube.Studies()).Namespace(c.namespace)
	c.chart("install", c.studiesValues())
	c.leaveOldDefinition()
	c.upgradeDefinition()
	waits := map[string]func() time.Time{}
	applied := time.Now()
	for name, trials := range map[string]int{"short": 4, "endless": 100_000, "failing": 4} {
		u := &unstructured.Unstructured{}
		text := fmt.Sprintf(studyResource, name, trials)
		if name == "failing" {
			text = strings.Replace(text, `[digits, "${args}"]`, "[digits, --unknown]", 1)
		}
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			t.Fatal(err)
		}
		c.await(time.Minute, func(ctx context.Context) error { // the definition may be a moment old
			_, err := studies.Apply(ctx, name, u, metav1.ApplyOptions{FieldManager: "kubectl"})
			return err
		})
	}
	for name, condition := range map[string]string{"short": kube.ConditionComplete, "failing": kube.ConditionFailed} {
		waits[name] = c.wait("study/"+name, condition)
	}
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
	for name, wait := range waits {
		ended := wait()
		at := read(t.Context(), name).Status.CompletionTime
		if at == nil || ended.Sub(at.Time) > 10*time.Second {
			t.Errorf("kubectl wait ended at %v, want within 10s of the end of study %s, %v", ended, name, at)
			continue
		}
		t.Logf("study %s ended %.0fs after kubectl apply; kubectl wait returned %.1fs after that apply", name, at.Sub(applied).Seconds(),
			ended.Sub(applied).Seconds())
	}
	var short, endless *kube.Resource
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
	c.plugin(c, "short", 1)
	c.priced()
	c.helm("uninstall", release, "--wait", "--timeout", "2m")
	if err := studies.Delete(t.Context(), "endless", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := studies.Get(t.Context(), "endless", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after the uninstall, the deleted study is still there: %v", err)
	}
}

// pluginProgram returns the program as kubectl finds it.
func (c *cluster) pluginProgram() string {
	c.t.Helper()
	plugin := filepath.Join(c.t.TempDir(), "kubectl-fantasia")
	if err := os.Symlink(testenv.Build(c.t, "github.com/fantasia-hpo/fantasia/cmd/fantasia"), plugin); err != nil {
		c.t.Fatal(err)
	}
	return plugin
}

// plugin shows the trials of an ended study, and the log of the one with a number, as
// kubectl fantasia does: through the API server, with the token of the release of home.
func (c *cluster) plugin(home *cluster, name string, number int) {
	c.t.Helper()
	for want, args := range map[string][]string{"COMPLETED": {"trials", name}, "error": {"logs", name, strconv.Itoa(number)}} {
		if out, err := c.callPlugin(home, args...); err != nil || !strings.Contains(out, want) {
			c.t.Errorf("kubectl fantasia %q: %v, want %q in\n%s", args, err, want, out)
		}
	}
}

// callPlugin returns what kubectl fantasia prints in the namespace, with the token of the release of home.
func (c *cluster) callPlugin(home *cluster, args ...string) (string, error) {
	c.t.Helper()
	token, err := home.token(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	cmd := exec.CommandContext(c.t.Context(), c.pluginProgram(), append(args, "--namespace", c.namespace)...)
	cmd.Env = append(os.Environ(), "FANTASIA_TOKEN="+token, "FANTASIA_CA="+home.trust)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
