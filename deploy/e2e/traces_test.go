//go:build e2e && jaeger

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// jaegerSpan is a span in the form of Jaeger's API; times are in microseconds.
type jaegerSpan struct {
	SpanID        string `json:"spanID"`
	OperationName string `json:"operationName"`
	References    []struct {
		RefType string `json:"refType"`
		TraceID string `json:"traceID"`
		SpanID  string `json:"spanID"`
	} `json:"references"`
	Duration  int64       `json:"duration"`
	Tags      []jaegerTag `json:"tags"`
	ProcessID string      `json:"processID"`
}

type jaegerTag struct {
	Key   string `json:"key"`
	Value any    `json:"value"`
}

type jaegerTrace struct {
	TraceID   string       `json:"traceID"`
	Spans     []jaegerSpan `json:"spans"`
	Processes map[string]struct {
		ServiceName string      `json:"serviceName"`
		Tags        []jaegerTag `json:"tags"`
	} `json:"processes"`
}

// parent returns the parent of a span; empty for a root.
func (s *jaegerSpan) parent(trace string) string {
	for _, r := range s.References {
		if r.RefType == "CHILD_OF" && r.TraceID == trace {
			return r.SpanID
		}
	}
	return ""
}

// tagsOf returns tags by their keys.
func tagsOf(list []jaegerTag) map[string]string {
	tags := map[string]string{}
	for _, tag := range list {
		tags[tag.Key] = fmt.Sprint(tag.Value)
	}
	return tags
}

// forward lets pods reach a service of the test's machine, which may only listen
// locally, and returns the address for pods.
func (c *cluster) forward(target string) string {
	c.t.Helper()
	to, err := url.Parse(target)
	if err != nil {
		c.t.Fatal(err)
	}
	nodes, err := c.kube.CoreV1().Nodes().List(c.t.Context(), metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	host := ""
	for _, a := range nodes.Items[0].Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			host = a.Address
		}
	}
	// The address by which this machine reaches the node is also one by which the
	// node's pods reach this machine.
	var dialer net.Dialer
	conn, err := dialer.DialContext(c.t.Context(), "udp", net.JoinHostPort(host, "9"))
	if err != nil {
		c.t.Fatal(err)
	}
	own := conn.LocalAddr().(*net.UDPAddr).IP.String()
	if err := conn.Close(); err != nil {
		c.t.Fatal(err)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(own, "0"))
	if err != nil {
		c.t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) },
	}}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	c.t.Cleanup(func() {
		if err := errors.Join(server.Close(), <-ended); !errors.Is(err, http.ErrServerClosed) {
			c.t.Error(err)
		}
	})
	return "http://" + listener.Addr().String()
}

// trace waits until Jaeger has a whole trace: its root, and the parent of every span.
func (c *cluster) trace(jaeger, id string) jaegerTrace {
	c.t.Helper()
	var found jaegerTrace
	c.await(time.Minute, func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, jaeger+"/api/traces/"+id, nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return err
		}
		var answer struct{ Data []jaegerTrace }
		if err := json.Unmarshal(body, &answer); err != nil {
			return err
		}
		if len(answer.Data) != 1 {
			return fmt.Errorf("%s: %.200s", resp.Status, body)
		}
		found = answer.Data[0]
		ids := map[string]bool{"": true}
		for i := range found.Spans {
			ids[found.Spans[i].SpanID] = true
		}
		root := false
		for i := range found.Spans {
			p := found.Spans[i].parent(found.TraceID)
			root = root || p == ""
			if !ids[p] {
				return fmt.Errorf("the parent %s is missing", p)
			}
		}
		if !root {
			return errors.New("the root is missing")
		}
		return nil
	})
	return found
}

// recorded is how long a leader may take at most, on a loaded machine, to export a trial's
// spans and to record that. A leader that is killed in between leaves the next one to send
// them again.
const recorded = 5 * time.Second

// checkTrace checks that a trial's trace contains coordinator, worker and training
// process, that no span is in it twice unless the trial ended just before the leader was
// killed, and that the parts of the trial add up to it. It returns the pods of the
// coordinators, each once, and that of the training process for each of its spans.
func (c *cluster) checkTrace(t *fantasiav1.Trial, tr jaegerTrace, killed time.Time) (leaders, programs []string) {
	c.t.Helper()
	services, names := map[string]bool{}, map[string]int64{}
	mayRepeat, repeated := t.GetTimes().GetEnded().AsTime().After(killed.Add(-recorded)), false
	byID := map[string]jaegerSpan{}
	for _, s := range tr.Spans {
		p := tr.Processes[s.ProcessID]
		services[p.ServiceName] = true
		if _, again := byID[s.SpanID]; again {
			repeated = true
			if !mayRepeat {
				c.t.Errorf("trial %s, which ended %v before the leader was killed, has the span %s twice", t.GetName(),
					killed.Sub(t.GetTimes().GetEnded().AsTime()), s.OperationName)
			}
		}
		byID[s.SpanID] = s
		tags := tagsOf(p.Tags)
		if tags["k8s.namespace.name"] != c.namespace || tags["k8s.pod.name"] == "" || tags["k8s.node.name"] == "" {
			c.t.Errorf("%s of %s says that it is in %v", s.OperationName, p.ServiceName, tags)
		}
		switch p.ServiceName {
		case "fantasia-coordinator":
			leaders = append(leaders, tags["k8s.pod.name"])
		case "digits":
			programs = append(programs, tags["k8s.pod.name"])
		}
	}
	leaders = slices.Compact(slices.Sorted(slices.Values(leaders)))
	if repeated && len(leaders) == 1 {
		c.t.Errorf("trial %s has spans twice, all from the leader %s", t.GetName(), leaders[0])
	}
	for _, want := range []string{"fantasia-coordinator", "fantasia-worker", "digits"} {
		if !services[want] {
			c.t.Errorf("trial %s has no span of %s: %v", t.GetName(), want, slices.Collect(maps.Keys(services)))
		}
	}
	var whole, parts int64
	var root string
	for id, s := range byID {
		if s.parent(tr.TraceID) == "" {
			whole, root = s.Duration, id
		}
	}
	for _, s := range byID {
		if s.parent(tr.TraceID) == root {
			parts += s.Duration
			names[s.OperationName] += s.Duration
		}
	}
	// Jaeger truncates each of about ten parts to whole microseconds. Two leaders do not
	// read the same time when they fold a result.
	if miss := whole - parts; !repeated && (miss < -20 || miss > 20) {
		c.t.Errorf("trial %s took %d µs, its parts %d: %v", t.GetName(), whole, parts, names)
	}
	return leaders, programs
}

// checkPhases checks that the phases of a Job fill the span of its evaluation, and that each names its Job, pod and node.
func (c *cluster) checkPhases(trial string, tr jaegerTrace, program string) {
	c.t.Helper()
	i := slices.IndexFunc(tr.Spans, func(s jaegerSpan) bool { return s.OperationName == telemetry.SpanEvaluate })
	if i < 0 {
		c.t.Errorf("trial %s has no span of its evaluation", trial)
		return
	}
	took, parts := map[string]int64{}, int64(0)
	for _, name := range []string{messaging.PhaseAdmit, messaging.PhaseSchedule, messaging.PhasePrepare, messaging.PhaseStart,
		messaging.PhaseRun, messaging.PhaseFinish} {
		k := slices.IndexFunc(tr.Spans, func(s jaegerSpan) bool {
			return s.OperationName == name && s.parent(tr.TraceID) == tr.Spans[i].SpanID
		})
		if k < 0 {
			c.t.Errorf("trial %s has no phase %s", trial, name)
			continue
		}
		took[name] = tr.Spans[k].Duration
		parts += tr.Spans[k].Duration
		tags := tagsOf(tr.Spans[k].Tags)
		if tags["k8s.namespace.name"] != c.namespace || tags["k8s.job.name"] == "" || tags["k8s.pod.name"] != program ||
			tags["k8s.node.name"] == "" {
			c.t.Errorf("trial %s: the phase %s has the tags %v, want the pod %s", trial, name, tags, program)
		}
	}
	c.t.Logf("trial %s: an evaluation of %d µs has the phases %v, trace %s", trial, tr.Spans[i].Duration, took, tr.TraceID)
	if miss := tr.Spans[i].Duration - parts; miss < -20 || miss > 20 {
		c.t.Errorf("trial %s: the evaluation took %d µs, its phases %v", trial, tr.Spans[i].Duration, took)
	}
}

const tracedStudy = `
apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: traced}
spec:
  objective: {metric: error, direction: minimize, take: last}
  parameters:
    - {name: learning_rate, type: float, min: 1e-3, max: 0.2, scale: log}
    - {name: hidden, type: int, min: 16, max: 48, scale: log}
    - {name: epochs, type: fixed, value: 60}
  algorithm: {seed: 1}
  budget: {maxTrials: 12}
  parallelism: 4
  trial: {command: [digits, "${args}"], timeout: 3m, retries: {lost: 5}}
`

// jobTraces runs a study of Jobs, and asks Jaeger for each trial's trace: the program's
// spans come from its own pod, with the trial's span as their ancestor.
func (c *cluster) jobTraces(jaeger string, killed time.Time) {
	c.t.Helper()
	file := strings.NewReplacer("{name: traced}", "{name: jobs}", "maxTrials: 12", "maxTrials: 4", "parallelism: 4",
		"parallelism: 2\n  pool: jobs").Replace(tracedStudy)
	c.create(file)
	c.completed(5*time.Minute, "jobs")
	pods := map[string]int{}
	for _, trial := range c.trials("jobs") {
		trace := c.trace(jaeger, trial.GetTraceId())
		_, programs := c.checkTrace(trial, trace, killed)
		if len(programs) > 0 {
			c.checkPhases(trial.GetName(), trace, programs[0])
		}
		for _, p := range programs {
			pods[p]++
			if strings.HasPrefix(p, "fantasia-worker") {
				c.t.Errorf("trial %s: its program's span says that it is of the worker's pod %s", trial.GetName(), p)
			}
		}
	}
	c.t.Logf("spans of the Jobs' programs in Jaeger, by pod: %v", pods)
	if len(pods) != 4 {
		c.t.Errorf("the spans of 4 Jobs come from the pods %v, want one each", pods)
	}
}

// TestTraces runs a study of a real training program, another one whose leader's pod is
// killed in the middle, one after it, and one of Jobs, and asks Jaeger for the trace of every
// trial.
func TestTraces(t *testing.T) {
	inTurn(t)
	c := newCluster(t)
	jaeger := strings.TrimSuffix(os.Getenv("FANTASIA_E2E_JAEGER"), "/")
	at, err := url.Parse(jaeger)
	if err != nil || jaeger == "" {
		t.Fatalf("FANTASIA_E2E_JAEGER is %q, want the address of Jaeger's query API: %v", jaeger, err)
	}
	endpoint := c.forward(env("FANTASIA_E2E_OTLP", "http://"+net.JoinHostPort(at.Hostname(), "4318")))
	c.chart("install", fmt.Sprintf(`
image: {tag: %[1]q}
nats: {bundled: {accounts: true, persistence: {enabled: false}}}
etcd: {bundled: {persistence: {enabled: false}}}
coordinator: {resources: {requests: {cpu: 50m, memory: 64Mi}}}
poolDefaults: {resources: {requests: {cpu: 50m, memory: 64Mi}}}
telemetry: {otlpEndpoint: %[3]q, env: {OTEL_METRICS_EXPORTER: none, OTEL_LOGS_EXPORTER: none}}
pools:
  default: {image: "%[2]sdigits:%[1]s", allowStudyCommands: true, slots: 2, replicas: 2}
%[4]s`, c.tag, repository, endpoint, c.jobPool(2, "digits", `["${args}"]`, "[]")))
	c.settled(3*time.Minute, "coordinator", 3, c.tag)
	first := strings.NewReplacer("{name: traced}", "{name: first}", "maxTrials: 12", "maxTrials: 4").Replace(tracedStudy)
	c.create(first)
	c.completed(5*time.Minute, "first")
	exported := time.Now().Add(recorded)
	c.create(strings.Replace(tracedStudy, "maxTrials: 12", "maxTrials: 24", 1))
	c.ended(3*time.Minute, "traced", 3)
	c.await(time.Minute, func(context.Context) error {
		if time.Now().Before(exported) {
			return errors.New("the spans of the first study may not have been recorded yet")
		}
		return nil
	})
	old, killed := c.leader(""), time.Now()
	c.delete(old, true)
	now := c.leader(old)
	// The next study belongs to the new leader only.
	c.create(strings.Replace(tracedStudy, "{name: traced}", "{name: next}", 1))
	folded := map[string]int{}
	for _, study := range []string{"first", "traced", "next"} {
		c.completed(5*time.Minute, study)
		for _, trial := range c.trials(study) {
			leaders, _ := c.checkTrace(trial, c.trace(jaeger, trial.GetTraceId()), killed)
			for _, l := range leaders {
				folded[l]++
			}
		}
	}
	c.jobTraces(jaeger, killed)
	t.Logf("trials by the leader that folded them: %v; %s was killed, %s leads", folded, old, now)
	if folded[old] == 0 || folded[now] == 0 {
		t.Errorf("traces come from the leaders %v, want both %s and %s", folded, old, now)
	}
}
