//go:build e2e && keda

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// installKEDA installs KEDA from its own manifests in FANTASIA_E2E_KEDA, and removes it
// with the test. It comes before the cluster whose pool it scales, so that it still
// exists when the pool's ScaledObject is deleted.
func installKEDA(t *testing.T) {
	t.Helper()
	c := reach(t)
	c.namespace = "keda"
	m := c.manifests()
	text, err := os.ReadFile(os.Getenv("FANTASIA_E2E_KEDA"))
	if err != nil {
		t.Fatalf("FANTASIA_E2E_KEDA: %v", err)
	}
	all, err := documents(text)
	if err != nil {
		t.Fatal(err)
	}
	anonymous := c.anonymousProxy()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
		defer cancel()
		if t.Failed() {
			c.show(ctx)
		}
		if os.Getenv("FANTASIA_E2E_KEEP") != "" {
			return
		}
		if err := m.deleteAll(ctx); err != nil {
			t.Error(err)
		}
	})
	var service *unstructured.Unstructured
	for _, u := range all {
		switch u.GetKind() {
		case "APIService":
			// While its API is unavailable, no namespace of the cluster can be deleted.
			service = u
			continue
		case "Deployment":
			if err := c.prepare(u, anonymous); err != nil {
				t.Fatal(err)
			}
		}
		m.add(u)
	}
	if anonymous {
		m.add(anonymousReader())
	}
	for _, u := range m.applied {
		if u.GetKind() == "Deployment" {
			m.becomes("Available", 3*time.Minute, u)
			c.timed("%s is available", u.GetName())
		}
	}
	m.add(service)
	m.becomes("Available", time.Minute, service)
	c.timed("KEDA serves the external metrics")
}

// anonymousProxy reports whether the API server forwards requests to other API servers
// without the caller's identity, because it has no --requestheader-client-ca-file.
func (c *cluster) anonymousProxy() bool {
	c.t.Helper()
	config, err := c.kube.CoreV1().ConfigMaps("kube-system").Get(c.t.Context(), "extension-apiserver-authentication", metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		c.t.Fatal(err)
	}
	return err != nil || config.Data["requestheader-client-ca-file"] == ""
}

// prepare sets the image under test in a Deployment of KEDA; the image's entry point is
// the command.
func (c *cluster) prepare(u *unstructured.Unstructured, anonymous bool) error {
	containers, _, err := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
	if err != nil {
		return err
	}
	if len(containers) != 1 {
		return fmt.Errorf("%s has %d containers, want 1", u.GetName(), len(containers))
	}
	container, ok := containers[0].(map[string]any)
	if !ok {
		return fmt.Errorf("the container of %s is a %T", u.GetName(), containers[0])
	}
	args, _, err := unstructured.NestedStringSlice(container, "args")
	if err != nil {
		return err
	}
	image, _ := container["image"].(string)
	image = image[strings.LastIndex(image, "/")+1:]
	image, _, _ = strings.Cut(image, ":")
	switch {
	case image == "keda":
		args = append(args, "--enable-webhook-patching=false")
	case anonymous:
		args = append(args, "--authentication-tolerate-lookup-failure=true",
			"--authorization-always-allow-paths=/healthz,/readyz,/livez,/apis,/apis/*,/openapi/*")
	}
	container["image"], container["imagePullPolicy"] = repository+image+":"+c.tag, "IfNotPresent"
	delete(container, "command")
	if err := unstructured.SetNestedStringSlice(container, args, "args"); err != nil {
		return err
	}
	return unstructured.SetNestedSlice(u.Object, containers, "spec", "template", "spec", "containers")
}

// anonymousReader lets anonymous callers read external metrics.
func anonymousReader() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
		"metadata": map[string]any{"name": "keda-anonymous-external-metrics"},
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "keda-external-metrics-reader"},
		"subjects": []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:unauthenticated"}},
	}}
}

// startPrometheus runs Prometheus, at http://prometheus:9090.
func (c *cluster) startPrometheus() {
	c.t.Helper()
	text, err := os.ReadFile("testdata/prometheus.yaml")
	if err != nil {
		c.t.Fatal(err)
	}
	all, err := documents([]byte(strings.ReplaceAll(string(text), "prometheus:latest", "prometheus:"+c.tag)))
	if err != nil {
		c.t.Fatal(err)
	}
	m := c.manifests()
	for _, u := range all {
		m.add(u)
	}
	for _, u := range all {
		if u.GetKind() == "Deployment" {
			m.becomes("Available", time.Minute, u)
		}
	}
	c.timed("Prometheus is ready")
}

// usefulSlots is KEDA's query to Prometheus: 0 if a leader has no study for the pool,
// and no value if no leader is known.
const usefulSlots = `max(fantasia_pool_useful_parallelism{fantasia_pool="default"}) or 0 * max(fantasia_leader_leading == 1)`

// ask returns the first value of Prometheus' answer.
func (c *cluster) ask(ctx context.Context, query string) (string, error) {
	text, err := c.kube.CoreV1().Services(c.namespace).ProxyGet("http", "prometheus", "9090", "/api/v1/query", map[string]string{
		"query": query,
	}).DoRaw(ctx)
	if err != nil {
		return "", err
	}
	var answer struct {
		Data struct {
			Result []struct {
				Value [2]any `json:"value"`
			} `json:"result"`
		} `json:"data"`
	}
	if err := yaml.Unmarshal(text, &answer); err != nil {
		return "", err
	}
	if len(answer.Data.Result) == 0 {
		return "nothing", nil
	}
	return fmt.Sprint(answer.Data.Result[0].Value[1]), nil
}

// kedaValues returns the values of a release with one pool that KEDA scales, without
// volumes.
func (c *cluster) kedaValues() string {
	return fmt.Sprintf(`
image: {tag: %[1]q}
nats: {bundled: {persistence: {enabled: false}}}
etcd: {bundled: {persistence: {enabled: false}}}
coordinator: {replicas: 2, resources: {requests: {cpu: 50m, memory: 64Mi}}}
networkPolicy: {metricsFrom: [{podSelector: {matchLabels: {app: prometheus}}}]}
autoscaling: {prometheus: {address: "http://prometheus.%[3]s.svc:9090"}}
poolDefaults:
  resources: {requests: {cpu: 50m, memory: 64Mi}}
  drainSeconds: 2
  podDeletionCost: true
  env: [{name: WITNESS, value: "http://witness:8080"}]
pools:
  default:
    image: "%[2]se2e:%[1]s"
    allowStudyCommands: true
    slots: 2
    autoscaling: {method: keda, minReplicas: 0, maxReplicas: 3, stabilizationSeconds: 5}
`, c.tag, repository, c.namespace)
}

// TestKEDA scales a pool by KEDA over Prometheus: without a study it has no pods; with
// two studies, as many as are useful; fewer once one study has ended; and none after
// both. No evaluation is lost.
func TestKEDA(t *testing.T) {
	installKEDA(t)
	c := newCluster(t)
	c.startWitness()
	c.startPrometheus()
	c.chart("install", c.kedaValues())
	c.settled(2*time.Minute, "coordinator", 2, c.tag)
	c.await(time.Minute, func(ctx context.Context) error {
		n, err := c.ask(ctx, usefulSlots)
		if err == nil && n != "0" {
			err = fmt.Errorf("%s slots would be of use to no study, want 0", n)
		}
		return err
	})
	c.settled(3*time.Minute, "worker", 0, c.tag)
	c.timed("there is no study, and no worker")
	c.create(studyFile("wide", "default", 24, 4, 6))
	c.create(studyFile("narrow", "default", 36, 2, 6))
	c.await(time.Minute, func(ctx context.Context) error {
		pods, err := c.pods(ctx, "worker")
		if err == nil && len(pods) == 0 {
			err = errors.New("no worker has come for the studies")
		}
		return err
	})
	c.timed("the pool wakes for studies of parallelism 4 and 2")
	c.settled(3*time.Minute, "worker", 3, c.tag)
	n, err := c.ask(t.Context(), usefulSlots)
	c.timed("the pool has 3 workers of 2 slots; of use are %s (%v)", n, err)
	c.scaledByHPA()
	c.completed(8*time.Minute, "wide")
	c.timed("the wide study has ended")
	c.settled(2*time.Minute, "worker", 1, c.tag)
	c.timed("the pool has 1 worker")
	if s, err := c.study(t.Context(), "narrow"); err != nil || s.GetState() != fantasiav1.StudyState_STUDY_STATE_RUNNING {
		t.Errorf("the narrow study is %v (%v), want the pool to shrink while it runs", s.GetState(), err)
	}
	c.completed(8*time.Minute, "narrow")
	c.timed("the narrow study has ended")
	for name, trials := range map[string]int{"wide": 24, "narrow": 36} {
		if ways := c.compare(name, trials, c.evaluations(name)); ways[lost] > 0 {
			t.Errorf("the attempts of %s ended as %v, want none lost: a pool that shrinks hands its trials back", name, ways)
		}
	}
	c.settled(3*time.Minute, "worker", 0, c.tag)
	c.timed("the pool is empty again")
}

// scaledByHPA checks that KEDA's autoscaler requested the pods, by the metric.
func (c *cluster) scaledByHPA() {
	c.t.Helper()
	all, err := c.kube.AutoscalingV2().HorizontalPodAutoscalers(c.namespace).List(c.t.Context(), metav1.ListOptions{})
	if err != nil || len(all.Items) != 1 {
		c.t.Fatalf("there are %d autoscalers (%v), want KEDA's", len(all.Items), err)
	}
	h := all.Items[0]
	c.timed("%s wants %d pods", h.Name, h.Status.DesiredReplicas)
	if h.Status.DesiredReplicas != 3 || len(h.Status.CurrentMetrics) != 1 || h.Status.CurrentMetrics[0].External == nil {
		c.t.Errorf("%s has the status %+v, want 3 pods by an external metric", h.Name, h.Status)
	}
}
