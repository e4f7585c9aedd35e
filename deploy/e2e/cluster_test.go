//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	release    = "fantasia"
	repository = "ghcr.io/fantasia-hpo/"
	root       = "../.."
)

// cluster is a namespace of the cluster of KUBECONFIG, with a release of the chart in
// it.
type cluster struct {
	t         *testing.T
	config    *rest.Config
	kube      kubernetes.Interface
	namespace string
	tag, next string   // of the images: two versions
	values    string   // a file
	trust     string   // the file of the authority of the API's certificate; empty without TLS
	before    []string // what the namespace contains without the release
	began     time.Time
}

func env(name, fallback string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return fallback
}

// reach returns the cluster of KUBECONFIG, without a namespace.
func reach(t *testing.T) *cluster {
	t.Helper()
	path := os.Getenv("KUBECONFIG")
	if path == "" {
		t.Fatal("KUBECONFIG is not set: end-to-end tests need a cluster")
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.Burst = 50, 100
	config.WarningHandler = rest.NoWarnings{}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{
		t: t, config: config, kube: kube, values: filepath.Join(t.TempDir(), "values.yaml"),
		tag: env("FANTASIA_E2E_TAG", "e2e"), next: env("FANTASIA_E2E_NEXT_TAG", "e2e-next"), began: time.Now(),
	}
}

// turn is held by the short test that runs beside the two long ones.
var turn sync.Mutex

// inTurn makes a short test wait for its turn: the long tests start at once, and the
// node has room for three releases.
func inTurn(t *testing.T) {
	t.Parallel()
	turn.Lock()
	t.Cleanup(turn.Unlock)
}

// newCluster creates an empty namespace that only admits restricted pods, and checks that
// it does. It is removed with the test unless FANTASIA_E2E_KEEP is set.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := reach(t)
	ns, err := c.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "fantasia-e2e-",
		Labels:       onlyRestricted(),
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.namespace = ns.Name
	t.Logf("namespace %s", c.namespace)
	t.Cleanup(c.remove)
	c.refuses()
	return c
}

// in returns the cluster for a subtest.
func (c *cluster) in(t *testing.T) *cluster {
	part := *c
	part.t = t
	return &part
}

// remove deletes the namespace. After a failure it first logs its contents.
func (c *cluster) remove() {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	if c.t.Failed() {
		c.show(ctx)
	}
	if os.Getenv("FANTASIA_E2E_KEEP") != "" {
		return
	}
	if out, err := c.helmCommand(ctx, "uninstall", release, "--ignore-not-found", "--wait", "--timeout", "90s").CombinedOutput(); err != nil {
		c.t.Errorf("helm uninstall: %v\n%s", err, out)
	}
	if err := c.kube.CoreV1().Namespaces().Delete(ctx, c.namespace, metav1.DeleteOptions{}); err != nil {
		c.t.Error(err)
		return
	}
	leavingMu.Lock()
	defer leavingMu.Unlock()
	leaving = append(leaving, c)
}

// leaving are the clusters whose namespaces were deleted. Kubernetes takes up to two
// minutes to forget a definition that was deleted with the release, and only then
// deletes a namespace that contained its resources. So only the last test waits for all
// of them.
var (
	leavingMu sync.Mutex // the tests run side by side
	leaving   []*cluster
)

func TestMain(m *testing.M) {
	code := m.Run()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	for _, c := range leaving {
		if err := c.gone(ctx); err != nil {
			fmt.Fprintf(os.Stderr, "the namespace %s is still there: %v\n", c.namespace, err)
			code = 1
		}
	}
	os.Exit(code)
}

// gone waits until the namespace is deleted.
func (c *cluster) gone(ctx context.Context) error {
	return poll(ctx, func(ctx context.Context) error {
		_, err := c.kube.CoreV1().Namespaces().Get(ctx, c.namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return cmp.Or(err, errors.New("it is still going"))
	})
}

// show logs the pods, their output and their events.
func (c *cluster) show(ctx context.Context) {
	pods, err := c.kube.CoreV1().Pods(c.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		c.t.Log(err)
		return
	}
	lines := int64(15)
	for _, p := range pods.Items {
		c.t.Logf("pod %s: %s %s", p.Name, p.Status.Phase, p.Status.Message)
		for _, container := range append(p.Spec.InitContainers, p.Spec.Containers...) {
			log, err := c.kube.CoreV1().Pods(c.namespace).GetLogs(p.Name,
				&corev1.PodLogOptions{Container: container.Name, TailLines: &lines}).DoRaw(ctx)
			c.t.Logf("%s %s: %v\n%s", p.Name, container.Name, err, log)
		}
	}
	events, err := c.kube.CoreV1().Events(c.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		c.t.Log(err)
		return
	}
	for _, e := range events.Items {
		if e.Type != corev1.EventTypeNormal {
			c.t.Logf("event %s %s: %s: %s", e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, e.Message)
		}
	}
}

func (c *cluster) helmCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, env("FANTASIA_E2E_HELM", filepath.Join(root, "bin/tools/helm")),
		append(args, "--namespace", c.namespace)...)
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// helm runs helm in the namespace.
func (c *cluster) helm(args ...string) string {
	c.t.Helper()
	out, err := c.helmCommand(c.t.Context(), args...).CombinedOutput()
	if err != nil {
		c.t.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// chart runs helm install or upgrade with the values of the test.
func (c *cluster) chart(verb, values string, args ...string) {
	c.t.Helper()
	if err := os.WriteFile(c.values, []byte(values), 0o600); err != nil {
		c.t.Fatal(err)
	}
	c.helm(append([]string{verb, release, filepath.Join(root, "deploy/helm/fantasia"), "--values", c.values}, args...)...)
}

// await calls f until it returns nil.
func (c *cluster) await(within time.Duration, f func(ctx context.Context) error) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), within)
	defer cancel()
	if err := poll(ctx, f); err != nil {
		c.t.Fatalf("after %v: %v", within, err)
	}
}

// poll calls f until it returns nil. When ctx ends, it returns f's last error before
// that, or ctx's.
func poll(ctx context.Context, f func(ctx context.Context) error) error {
	var last error
	for {
		err := f(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return cmp.Or(last, ctx.Err())
		case <-time.After(250 * time.Millisecond):
		}
	}
}

// timed logs how long something took since the cluster was created.
func (c *cluster) timed(format string, args ...any) {
	c.t.Helper()
	c.t.Logf("%7.1fs  %s", time.Since(c.began).Seconds(), fmt.Sprintf(format, args...))
}

// pods returns the pods of a component that are not being deleted.
func (c *cluster) pods(ctx context.Context, component string) ([]corev1.Pod, error) {
	list, err := c.kube.CoreV1().Pods(c.namespace).List(ctx, metav1.ListOptions{
		LabelSelector: "app.kubernetes.io/instance=" + release + ",app.kubernetes.io/component=" + component,
	})
	if err != nil {
		return nil, err
	}
	var living []corev1.Pod
	for _, p := range list.Items {
		if p.DeletionTimestamp == nil && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			living = append(living, p)
		}
	}
	return living, nil
}

func ready(p corev1.Pod) bool {
	for _, condition := range p.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// settled waits until a component has the given number of pods, all ready and with one
// image tag.
func (c *cluster) settled(within time.Duration, component string, count int, tag string) {
	c.t.Helper()
	c.await(within, func(ctx context.Context) error {
		pods, err := c.pods(ctx, component)
		if err != nil {
			return err
		}
		if len(pods) != count {
			return fmt.Errorf("%s has %d pods, want %d", component, len(pods), count)
		}
		for _, p := range pods {
			if !ready(p) || !strings.HasSuffix(p.Spec.Containers[0].Image, ":"+tag) {
				return fmt.Errorf("%s %s is ready: %v, want it ready with tag %s", p.Name, p.Spec.Containers[0].Image, ready(p), tag)
			}
		}
		return nil
	})
}
