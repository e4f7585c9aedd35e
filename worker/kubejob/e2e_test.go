//go:build e2e

package kubejob

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
	"github.com/fantasia-hpo/fantasia/worker/kubejob/kubecore"
)

// cluster is a namespace of its own, which admits restricted pods only.
type cluster struct {
	t    *testing.T
	o    Options
	kube kubernetes.Interface
	tag  string
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	path := os.Getenv("KUBECONFIG")
	if path == "" {
		t.Fatal("KUBECONFIG is not set: end-to-end tests need a cluster")
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.Burst = 100, 200
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ns, err := kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "fantasia-kubejob-", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := kube.CoreV1().Namespaces().Delete(context.Background(), ns.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	tag := "e2e"
	if v := os.Getenv("FANTASIA_E2E_TAG"); v != "" {
		tag = v
	}
	o := DefaultOptions()
	o.StartTimeout = time.Minute
	core, err := kubecore.New(config)
	if err != nil {
		t.Fatal(err)
	}
	o.Namespace, o.Worker, o.Client, o.Core = ns.Name, "jobs."+ns.Name, client, core
	o.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	return &cluster{t: t, o: o, kube: kube, tag: tag}
}

// jobTemplate runs the actor with some flags.
func (c *cluster) jobTemplate(flags ...string) string {
	quoted := make([]string, len(flags))
	for i, f := range flags {
		quoted[i] = fmt.Sprintf("%q", f)
	}
	return fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
spec:
  template:
    spec:
      securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}
      containers:
        - name: actor
          image: ghcr.io/fantasia-hpo/e2e:%s
          imagePullPolicy: IfNotPresent
          command: [/usr/local/bin/actor]
          args: [%s]
          resources: {limits: {memory: 64Mi}, requests: {cpu: 10m, memory: 16Mi}}
          securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
`, c.tag, strings.Join(quoted, ", "))
}

// runner starts one; it ends with the test or by the function.
func (c *cluster) runner(t *testing.T, o Options) (*Runner, func()) {
	t.Helper()
	r, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	end := sync.OnceFunc(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(end)
	return r, end
}

func trial(n int) *messaging.Assignment {
	return &messaging.Assignment{
		Version: messaging.SchemaVersion, AttemptID: messaging.AttemptID{Study: "id", Trial: n, Attempt: 1, Nonce: fmt.Sprintf("nonce%d", n)},
		StudyName: "e2e", Pool: "jobs", Parameters: study.Point{"x": 3.0}, ParameterOrder: []string{"x"}, Seed: 7,
		Objective: study.Objective{Metric: "error", Direction: study.Minimize},
		Run:       study.TrialTemplate{Grace: study.Duration(5 * time.Second)},
	}
}

// job is an attempt's, or nil.
func (c *cluster) job(a *messaging.Assignment) *batchv1.Job {
	c.t.Helper()
	j, err := c.kube.BatchV1().Jobs(c.o.Namespace).Get(c.t.Context(), JobName(a), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return j
}

// pod waits for the attempt's pod to run.
func (c *cluster) pod(ctx context.Context, a *messaging.Assignment) (*corev1.Pod, error) {
	for ctx.Err() == nil {
		list, err := c.kube.CoreV1().Pods(c.o.Namespace).List(ctx, metav1.ListOptions{LabelSelector: LabelJob + "=" + JobName(a)})
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			if list.Items[i].Status.Phase == corev1.PodRunning {
				return &list.Items[i], nil
			}
		}
		backoff.Sleep(ctx, 100*time.Millisecond)
	}
	return nil, ctx.Err()
}

// TestEndings has Jobs end in every way that one node can bring about.
func TestEndings(t *testing.T) {
	c := newCluster(t)
	evict := func(ctx context.Context, a *messaging.Assignment) error {
		p, err := c.pod(ctx, a)
		if err != nil {
			return err
		}
		return c.kube.PolicyV1().Evictions(p.Namespace).Evict(ctx,
			&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace}})
	}
	remove := func(ctx context.Context, a *messaging.Assignment) error {
		p, err := c.pod(ctx, a)
		if err != nil {
			return err
		}
		return c.kube.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{})
	}
	sidecar := "ghcr.io/fantasia-hpo/worker:" + c.tag
	long := []string{"--steps=1000", "--pause=200ms"}
	for i, tt := range []struct {
		name     string
		template string
		sidecar  string
		meddle   func(ctx context.Context, a *messaging.Assignment) error
		cancel   error // of the attempt, once its pod runs
		start    time.Duration
		timeout  time.Duration

		outcome messaging.Outcome
		reason  string
		message string
		waits   string // what it is said to wait for before
		kept    bool   // the Job is there after its end
	}{
		{name: "completed by its log", template: c.jobTemplate("--steps=3"), outcome: messaging.OutcomeCompleted, kept: true},
		{name: "completed by the report file", template: c.jobTemplate("--report=file", "--steps=3"), sidecar: sidecar,
			outcome: messaging.OutcomeCompleted, kept: true},
		{name: "completed over HTTP", template: c.jobTemplate("--report=http", "--steps=3"), sidecar: sidecar,
			outcome: messaging.OutcomeCompleted, kept: true},
		{name: "no value", template: c.jobTemplate("--report=none"), outcome: messaging.OutcomeFailed, reason: messaging.ReasonNoValue,
			message: "played with 0 MiB", kept: true},
		{name: "exit 1", template: c.jobTemplate("--exit=1"), outcome: messaging.OutcomeFailed, reason: messaging.ReasonExit,
			message: "exit code 1", kept: true},
		{name: "exit 75", template: c.jobTemplate("--exit=75"), outcome: messaging.OutcomeHandedBack, reason: messaging.ReasonRetry, kept: true},
		{name: "out of memory", template: c.jobTemplate("--memory=256"), outcome: messaging.OutcomeFailed, reason: messaging.ReasonMemory,
			message: "its limit is 64Mi", kept: true},
		{name: "evicted", template: c.jobTemplate(long...), meddle: evict, outcome: messaging.OutcomeHandedBack,
			reason: messaging.ReasonPreempted, message: "Evict"},
		{name: "pod deleted", template: c.jobTemplate(long...), meddle: remove, outcome: messaging.OutcomeHandedBack,
			reason: messaging.ReasonPreempted, message: "deleted"},
		{name: "cancelled", template: c.jobTemplate(long...), cancel: evaluation.ErrCancelled, outcome: messaging.OutcomeCancelled,
			reason: messaging.ReasonCancelled},
		{name: "pruned", template: c.jobTemplate(long...), cancel: evaluation.ErrPruned, outcome: messaging.OutcomePruned},
		{name: "leaving", template: c.jobTemplate(long...), cancel: evaluation.ErrLeaving, outcome: messaging.OutcomeHandedBack,
			reason: messaging.ReasonLeaving},
		{name: "too long", template: c.jobTemplate(long...), cancel: evaluation.ErrTimeout, outcome: messaging.OutcomeTimeout,
			reason: messaging.ReasonTimeout},
		{name: "deadline of the Job", template: strings.Replace(c.jobTemplate(long...), "spec:\n", "spec:\n  activeDeadlineSeconds: 2\n", 1),
			outcome: messaging.OutcomeTimeout, reason: messaging.ReasonTimeout, kept: true},
		{name: "no such program", template: strings.Replace(c.jobTemplate(), "bin/actor", "bin/nobody", 1), outcome: messaging.OutcomeFailed,
			reason: messaging.ReasonCommand, message: "nobody", kept: true},
		{name: "no such image", template: strings.Replace(c.jobTemplate(), "/e2e:", "/none:", 1), start: 30 * time.Second,
			outcome: messaging.OutcomeFailed, reason: messaging.ReasonStart, message: "/none:"},
		{name: "no such image, within its timeout", template: strings.Replace(c.jobTemplate(), "/e2e:", "/none:", 1), start: 30 * time.Second,
			timeout: 2 * time.Second,
			outcome: messaging.OutcomeFailed, reason: messaging.ReasonStart, message: "/none:", waits: "/none:"},
		{name: "longer than its timeout", template: c.jobTemplate(long...), timeout: 5 * time.Second, outcome: messaging.OutcomeTimeout,
			reason: messaging.ReasonTimeout, message: "its timeout of 5s"},
		{name: "no such node", template: strings.Replace(c.jobTemplate(), "      containers:", "      nodeSelector: {none: such}\n      "+
			"containers:", 1),
			start: 30 * time.Second, outcome: messaging.OutcomeFailed, reason: messaging.ReasonStart, message: "no node",
			waits: "node affinity/selector"},
		{name: "not of this level", template: strings.Replace(c.jobTemplate(), "allowPrivilegeEscalation: false, ", "", 1),
			outcome: messaging.OutcomeFailed, reason: messaging.ReasonStart, message: "violates PodSecurity"}, // at once: no start timeout
		{name: "no Job", template: strings.Replace(c.jobTemplate(), "      containers:", "      containers: []\n      initContainers:", 1) +
			"\n          ports: [{containerPort: -1}]\n",
			outcome: messaging.OutcomeFailed, reason: messaging.ReasonCommand},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := c.o
			o.Template, o.Sidecar, o.Worker = []byte(tt.template), tt.sidecar, fmt.Sprintf("w%d", i)
			if tt.start > 0 {
				o.StartTimeout = tt.start
			}
			if tt.name == "no Job" { // its template is refused before
				if _, err := New(t.Context(), o); err == nil {
					t.Error("a template without a container was taken")
				}
				return
			}
			r, _ := c.runner(t, o)
			a := trial(i + 1)
			a.Run.Timeout = study.Duration(tt.timeout)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			var meddling sync.WaitGroup
			meddling.Go(func() {
				if tt.meddle != nil {
					if err := tt.meddle(ctx, a); err != nil && ctx.Err() == nil {
						t.Error(err)
					}
				}
				if tt.cancel != nil {
					_, err := c.pod(ctx, a)
					if err != nil && ctx.Err() == nil {
						t.Error(err)
					}
					backoff.Sleep(ctx, time.Second)
					cancel(tt.cancel)
				}
			})
			meddling.Go(func() { c.record(ctx, tt.name, a) })
			e, waited := evaluateOnce(ctx, t, r, a)
			cancel(nil)
			meddling.Wait()
			if !strings.Contains(waited, tt.waits) || strings.Contains(waited, JobName(a)) {
				t.Errorf("it was said to wait for %q, want …%s… and no name of a Job", waited, tt.waits)
			}
			check(t, e, tt.outcome, tt.reason, tt.message)
			if j := c.job(a); (j != nil && j.DeletionTimestamp == nil) != tt.kept {
				t.Errorf("the Job is kept: %v, want %v", j != nil, tt.kept)
			}
		})
	}
}

// evaluateOnce evaluates an attempt, and returns what it was said to wait for.
func evaluateOnce(ctx context.Context, t *testing.T, r *Runner, a *messaging.Assignment) (_ evaluation.Ending, waited string) {
	t.Helper()
	ev, err := r.Evaluator(0)
	if err != nil {
		t.Fatal(err)
	}
	e := ev.Evaluate(ctx, evaluation.Task{Assignment: a, Waiting: func(cause string) { waited += cause + "\n" }})
	return e, waited
}

func check(t *testing.T, e evaluation.Ending, outcome messaging.Outcome, reason, message string) {
	t.Helper()
	var f messaging.Failure
	if e.Failure != nil {
		f = *e.Failure
	}
	t.Logf("%s %s: %s; %v; checkpoint %q; %s", e.Outcome, f.Reason, f.Message, e.Metrics, e.Checkpoint, e.Logs)
	if e.Outcome != outcome || f.Reason != reason || !strings.Contains(f.Message, message) {
		t.Errorf("the attempt is %s (%s: %s), want %s (%s: …%s…)", e.Outcome, f.Reason, f.Message, outcome, reason, message)
	}
	if outcome == messaging.OutcomeCompleted && (len(e.Values) == 0 || math.Abs(e.Values.First()-9) > 0) {
		t.Errorf("the value is %v, want 3²", e.Values)
	}
	if outcome == messaging.OutcomePruned && len(e.Values) != 1 {
		t.Errorf("the values reached are %v, want one", e.Values)
	}
}

// TestARestartedWorkerGoesOn has one runner make a Job and another, as a process
// that is started after the first was killed, find it and bring it to its end:
// one pod evaluates the attempt, and nothing of it is lost.
func TestARestartedWorkerGoesOn(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	o := c.o
	o.Template, o.TTL = []byte(c.jobTemplate("--steps=20", "--pause=300ms")), 5*time.Second
	first, end := c.runner(t, o)
	a := trial(1)
	if _, err := first.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The first process dies once it has made the Job.
	p, object, err := first.prepare(evaluation.Task{Assignment: a})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.ensure(t.Context(), object, a, func(string) {}); err != nil {
		t.Fatal(err)
	}
	before, err := c.pod(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	end()

	second, _ := c.runner(t, o)
	found, err := second.Recover(t.Context())
	if err != nil || len(found) != 1 || found[0].Assignment.AttemptID != a.AttemptID {
		t.Fatalf("found %v (%v), want the attempt", found, err)
	}
	var mu sync.Mutex
	steps := map[int64]bool{}
	ev, err := second.Evaluator(0)
	if err != nil {
		t.Fatal(err)
	}
	e := ev.Evaluate(t.Context(), evaluation.Task{Assignment: found[0].Assignment, Measure: func(step int64, _ map[string]float64) {
		mu.Lock()
		defer mu.Unlock()
		steps[step] = true
	}})
	check(t, e, messaging.OutcomeCompleted, "", "")
	if len(steps) != 20 {
		t.Errorf("measured the steps %v, want 1 to 20", steps)
	}
	pods, err := c.kube.CoreV1().Pods(o.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: LabelJob})
	if err != nil || len(pods.Items) != 1 || pods.Items[0].UID != before.UID {
		t.Errorf("there are %d pods (%v), want the one of before", len(pods.Items), err)
	}
	if err := second.MarkEnded(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if found, err := second.Recover(t.Context()); err != nil || len(found) != 0 {
		t.Errorf("found %v (%v) once the result was on disk, want nothing", found, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for c.job(a) != nil { // the TTL removes what is left
		backoff.Sleep(ctx, 500*time.Millisecond)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Fatal("the Job is there still")
		}
	}
}
