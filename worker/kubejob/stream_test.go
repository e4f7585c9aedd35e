package kubejob

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/fantasia-hpo/fantasia/internal/base/kubewatch"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
	"github.com/fantasia-hpo/fantasia/worker/kubejob/kubecore"
	"github.com/fantasia-hpo/fantasia/worker/logfile"
)

// player is a cluster in memory, whose Jobs have one pod each. The pod's program reads its
// standard input and writes its log. The cluster closes the input when whoever attached to it
// goes, as it does for containers with stdinOnce.
type player struct {
	program func(ctx context.Context, lines <-chan string, print func(string)) (code int)
	// refuse makes attaching fail so many times.
	refuse int
	// breaks breaks the connection after a line of the trial.
	breaks string
	hub    *hub

	mu      sync.Mutex
	jobs    []string // all that were created
	pods    map[string]*playedPod
	running sync.WaitGroup
}

// playedPod is a pod that runs.
type playedPod struct {
	name    string
	lines   chan string
	kill    context.CancelFunc
	ended   chan struct{}
	mu      sync.Mutex
	log     bytes.Buffer
	written chan struct{} // closed when the log grows
	state   corev1.ContainerState
}

func (p *player) pod(name string) *playedPod {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pods[name]
}

// start runs the pod of a Job.
func (p *player) start(job *unstructured.Unstructured) {
	ctx, kill := context.WithCancel(context.Background())
	pod := &playedPod{
		name: job.GetName() + "-p", lines: make(chan string), kill: kill, ended: make(chan struct{}), written: make(chan struct{}),
		state: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(1)}},
	}
	p.mu.Lock()
	p.jobs = append(p.jobs, job.GetName())
	p.pods[pod.name] = pod
	p.mu.Unlock()
	p.tell(job, "")
	p.tell(pod.object(), job.GetName())
	p.running.Go(func() {
		code := p.program(ctx, pod.lines, pod.print)
		condition := "Complete"
		if code != 0 {
			condition = "Failed"
		}
		pod.mu.Lock()
		pod.state = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: int32(code), StartedAt: at(1),
			FinishedAt: at(2)}}
		close(pod.written)
		pod.written = make(chan struct{})
		pod.mu.Unlock()
		close(pod.ended)
		p.tell(pod.object(), job.GetName())
		if ctx.Err() != nil {
			return // its Job is gone
		}
		over := job.DeepCopy()
		over.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": condition, "status": "True"}}}
		p.tell(over, "")
	})
}

// tell has the hub see an object.
func (p *player) tell(obj runtime.Object, job string) {
	if pod, ok := obj.(*corev1.Pod); ok {
		pod.Labels = map[string]string{LabelJob: job}
	}
	p.hub.update(obj, false)
}

func (pod *playedPod) object() *corev1.Pod {
	pod.mu.Lock()
	defer pod.mu.Unlock()
	o := &corev1.Pod{}
	o.Name, o.UID, o.Spec.Containers = pod.name, types.UID(pod.name), []corev1.Container{{Name: "main"}}
	o.CreationTimestamp, o.Status.Phase = at(0), corev1.PodRunning
	if t := pod.state.Terminated; t != nil {
		o.Status.Phase = corev1.PodSucceeded
		if t.ExitCode != 0 {
			o.Status.Phase = corev1.PodFailed
		}
	}
	o.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: pod.state}}
	return o
}

func (pod *playedPod) print(line string) {
	pod.mu.Lock()
	defer pod.mu.Unlock()
	fmt.Fprintf(&pod.log, "%s %s\n", time.Now().UTC().Format(time.RFC3339Nano), line)
	close(pod.written)
	pod.written = make(chan struct{})
}

// attach implements Attach.
func (p *player) attach(ctx context.Context, _, name, _ string, stdin io.Reader) error {
	p.mu.Lock()
	pod := p.pods[name]
	if p.refuse > 0 {
		p.refuse--
		pod = nil
	}
	p.mu.Unlock()
	if pod == nil {
		return errors.New("the API does not answer")
	}
	read := make(chan string)
	go func() {
		defer close(read)
		for s := bufio.NewScanner(stdin); s.Scan(); {
			read <- s.Text()
		}
	}()
	defer func() {
		go func() {
			for range read {
			}
		}()
	}()
	var broke time.Duration
	// The program, and so the watch of its pod, can know that the connection is over before this side does.
	defer func() { time.Sleep(broke) }()
	defer close(pod.lines)
	for {
		select {
		case line, ok := <-read:
			if !ok {
				return nil
			}
			select {
			case pod.lines <- line:
				if p.breaks != "" && strings.Contains(line, p.breaks) {
					broke = 100 * time.Millisecond
					return errors.New("connection reset")
				}
			case <-pod.ended:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		case <-pod.ended:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// RoundTrip implements the API of pods.
func (p *player) RoundTrip(r *http.Request) (*http.Response, error) {
	name, isLog := strings.CutSuffix(r.URL.Path, "/log")
	pod := p.pod(filepath.Base(name))
	if pod == nil {
		return answer(http.StatusNotFound, strings.NewReader("")), nil
	}
	if isLog {
		return answer(http.StatusOK, &follower{ctx: r.Context(), pod: pod, follow: r.URL.Query().Get("follow") == "true"}), nil
	}
	data, err := json.Marshal(pod.object())
	return answer(http.StatusOK, bytes.NewReader(data)), err
}

// follower reads a pod's log.
type follower struct {
	ctx    context.Context
	pod    *playedPod
	follow bool
	at     int
}

func (f *follower) Read(b []byte) (int, error) {
	for {
		f.pod.mu.Lock()
		n := copy(b, f.pod.log.Bytes()[f.at:])
		f.at += n
		over, written := f.pod.state.Terminated != nil || !f.follow, f.pod.written
		f.pod.mu.Unlock()
		if n > 0 {
			return n, nil
		}
		if over {
			return 0, io.EOF
		}
		select {
		case <-written:
		case <-f.ctx.Done():
			return 0, f.ctx.Err()
		}
	}
}

// play returns an evaluator whose Jobs the cluster runs.
func (p *player) play(t *testing.T) *evaluator {
	t.Helper()
	core, err := kubecore.New(&rest.Config{Host: "http://cluster", Transport: p, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	o := DefaultOptions()
	o.Template, o.StateDir, o.Core, o.Attach, o.Logger = []byte(streamJobTemplate), t.TempDir(), core, p.attach, slog.New(slog.DiscardHandler)
	r := newTestRunner(t, o)
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{{Group: "batch", Version: "v1", Resource: "jobs"}: "JobList"})
	client.PrependReactor("create", "jobs", func(action clienttesting.Action) (bool, runtime.Object, error) {
		p.start(action.(clienttesting.CreateAction).GetObject().(*unstructured.Unstructured).DeepCopy())
		return false, nil, nil
	})
	client.PrependReactor("delete", "jobs", func(action clienttesting.Action) (bool, runtime.Object, error) {
		name := action.(clienttesting.DeleteAction).GetName()
		p.pod(name + "-p").kill()
		gone := &unstructured.Unstructured{Object: map[string]any{}}
		gone.SetName(name)
		gone.SetLabels(map[string]string{LabelJob: name})
		p.hub.update(gone, true)
		return false, nil, nil
	})
	s, jobs := r.home.site, schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	s.client = client.Resource(jobs).Namespace("ns")
	p.pods = map[string]*playedPod{}
	p.hub = &hub{
		namespace: "ns", subs: map[string]*subscription{}, resources: kubewatch.Resources(client, jobs, "ns", "", cache.Indexers{}),
		// it never runs
		pods: kubewatch.Informer(core, nil, nil, &corev1.Pod{}, "pods", "",
			cache.Indexers{LabelJob: func(any) ([]string, error) { return nil, nil }}),
	}
	s.hub = p.hub
	return &evaluator{runner: r, slot: 2}
}

const streamJobTemplate = `
apiVersion: batch/v1
kind: Job
spec: {template: {spec: {containers: [{name: main, image: train, args: ["${FANTASIA_STUDY}"]}]}}}
`

// sent is what a program reads of a line.
type sent struct {
	Fantasia struct {
		Stop       bool
		Trial      int
		Parameters struct{ X float64 }
	}
}

// squares is a program that evaluates trials until its input ends. before is called for each, and
// may end it with an exit code.
func squares(before func(ctx context.Context, trial int, lines <-chan string, print func(string)) (code int, ends bool)) func(
	context.Context, <-chan string, func(string)) int {
	return func(ctx context.Context, lines <-chan string, print func(string)) int {
		for {
			select {
			case line, ok := <-lines:
				if !ok {
					return 0
				}
				var s sent
				if err := json.Unmarshal([]byte(line), &s); err != nil {
					return 2
				}
				if s.Fantasia.Stop {
					continue
				}
				print(fmt.Sprintf("trial %d begins", s.Fantasia.Trial))
				if code, ends := before(ctx, s.Fantasia.Trial, lines, print); ends {
					return code
				}
				print(fmt.Sprintf(`{"fantasia": {"trial": %d, "metrics": {"error": %v}, "done": true}}`, s.Fantasia.Trial,
					s.Fantasia.Parameters.X*s.Fantasia.Parameters.X))
			case <-ctx.Done():
				return 143
			}
		}
	}
}

func streamed(n int) evaluation.Task {
	a := assignment()
	a.Trial, a.Parameters, a.ParameterOrder = n, study.Point{"x": float64(n)}, []string{"x"}
	a.Run.Mode = study.ModeStream
	return evaluation.Task{Assignment: a}
}

// A Job evaluates one trial after another. What ends its program costs the current trial only, and
// a trial that the program has not read goes to the next Job.
func TestStream(t *testing.T) {
	type before = func(ctx context.Context, trial int, lines <-chan string, print func(string)) (code int, ends bool)
	goOn := func(context.Context, int, <-chan string, func(string)) (int, bool) { return 0, false }
	second := func(code int) before {
		return func(_ context.Context, trial int, _ <-chan string, _ func(string)) (int, bool) {
			return code, trial == 2
		}
	}
	hang := func(ctx context.Context, trial int, lines <-chan string, print func(string)) (int, bool) {
		if trial != 2 {
			return 0, false
		}
		for {
			select {
			case <-ctx.Done():
				return 143, true
			case line, ok := <-lines:
				if !ok {
					lines = nil
				} else if strings.Contains(line, `"stop":true`) {
					return 0, false
				}
			}
		}
	}
	readsStops := func(ctx context.Context, trial int, lines <-chan string, print func(string)) (int, bool) {
		print(`{"fantasia": {"stoppable": true}}`)
		return hang(ctx, trial, lines, print)
	}
	served := 0
	for _, tt := range []struct {
		name   string
		before before
		refuse int
		breaks string
		cancel error // of the second trial
		// what the second trial comes to, and how many Jobs three trials take
		outcome         messaging.Outcome
		reason, message string
		jobs            int
	}{
		{name: "completed", before: goOn, outcome: messaging.OutcomeCompleted, jobs: 1},
		{name: "the API does not answer at first", before: goOn, refuse: 3, outcome: messaging.OutcomeCompleted, jobs: 1},
		{name: "fails", before: second(3), outcome: messaging.OutcomeFailed, reason: messaging.ReasonExit,
			message: "exit code 3\nIts last output:\ntrial 2 begins", jobs: 2},
		{name: "asks for a retry", before: second(75), outcome: messaging.OutcomeHandedBack, reason: messaging.ReasonRetry, jobs: 2},
		{name: "ends with 0 without a report, twice", before: second(0), outcome: messaging.OutcomeFailed, reason: messaging.ReasonExit,
			message: "before it was done with the trial", jobs: 3},
		{name: "its connection breaks", before: goOn, breaks: `"trial":2`, outcome: messaging.OutcomeCompleted, jobs: 2},
		{name: "its connection breaks, and it ends at once", breaks: `"trial":2`, outcome: messaging.OutcomeHandedBack,
			reason: messaging.ReasonPreempted, jobs: 3,
			before: func(_ context.Context, trial int, lines <-chan string, _ func(string)) (int, bool) {
				if trial != 2 {
					return 0, false
				}
				for range lines {
				}
				return 0, true
			}},
		{name: "ends after each trial", outcome: messaging.OutcomeCompleted, jobs: 3,
			before: func(context.Context, int, <-chan string, func(string)) (int, bool) {
				served++
				return 0, served%2 == 0
			}},
		{name: "too long", before: hang, outcome: messaging.OutcomeTimeout, reason: messaging.ReasonTimeout,
			message: "ran longer than its timeout of 10m", jobs: 2},
		{name: "pruned", before: hang, cancel: evaluation.ErrPruned, outcome: messaging.OutcomePruned, jobs: 2},
		{name: "leaving", before: hang, cancel: evaluation.ErrLeaving, outcome: messaging.OutcomeHandedBack, reason: messaging.ReasonLeaving,
			jobs: 2},
		{name: "pruned by a line", before: readsStops, cancel: evaluation.ErrPruned, outcome: messaging.OutcomePruned, jobs: 1},
		{name: "cancelled by a line", before: readsStops, cancel: evaluation.ErrCancelled, outcome: messaging.OutcomeCancelled,
			reason: messaging.ReasonCancelled, jobs: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				served = 0
				p := &player{program: squares(tt.before), refuse: tt.refuse, breaks: tt.breaks}
				e := p.play(t)
				for n := 1; n <= 3; n++ {
					ctx, cancel := context.WithCancelCause(t.Context())
					if n == 2 && tt.cancel != nil {
						time.AfterFunc(time.Minute, func() { cancel(tt.cancel) })
					}
					task := streamed(n)
					end := e.Evaluate(ctx, task)
					cancel(nil)
					want, reason, message := messaging.OutcomeCompleted, "", ""
					if n == 2 {
						want, reason, message = tt.outcome, tt.reason, tt.message
					}
					failure := messaging.Failure{}
					if end.Failure != nil {
						failure = *end.Failure
					}
					if end.Outcome != want || failure.Reason != reason || !strings.Contains(failure.Message, message) {
						t.Errorf("trial %d ends as %s, %+v; want %s %s …%s…", n, end.Outcome, failure, want, reason, message)
					}
					if want == messaging.OutcomeCompleted && (len(end.Values) != 1 || end.Values.First() != float64(n*n)) {
						t.Errorf("the value of trial %d is %v, want %d", n, end.Values, n*n)
					}
					text, err := os.ReadFile(filepath.Join(e.runner.options.StateDir, logfile.Dir(task.Assignment.AttemptID),
						logfile.File(messaging.LogStdout)))
					if first, _, _ := strings.Cut(string(text), "\n"); err != nil || first != fmt.Sprintf("trial %d begins", n) ||
						strings.Count(string(text), "begins") > 2 {
						t.Errorf("the log of trial %d is %q, %v", n, text, err)
					}
				}
				if err := e.Close(t.Context()); err != nil {
					t.Error(err)
				}
				p.running.Wait()
				if n := len(slices.Compact(slices.Sorted(slices.Values(p.jobs)))); n != tt.jobs || len(p.jobs) != n {
					t.Errorf("the trials took the Jobs %q, want %d", p.jobs, tt.jobs)
				}
			})
		})
	}
}

// A Job that gets no trial for a while ends, and so does one whose study's program is another.
func TestAnIdleStreamEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &player{program: squares(func(context.Context, int, <-chan string, func(string)) (int, bool) { return 0, false })}
		e := p.play(t)
		ended := func(n int) bool {
			synctest.Wait()
			select {
			case <-p.pod(p.jobs[n] + "-p").ended:
				return true
			default:
				return false
			}
		}
		e.Evaluate(t.Context(), streamed(1))
		time.Sleep(e.runner.options.StreamIdle - time.Second)
		e.Evaluate(t.Context(), streamed(2))
		time.Sleep(e.runner.options.StreamIdle - time.Second)
		if len(p.jobs) != 1 || ended(0) {
			t.Errorf("%d Jobs after two trials, ended: %v; want one that stays", len(p.jobs), ended(0))
		}
		time.Sleep(2 * time.Second)
		if !ended(0) {
			t.Error("an idle Job stays")
		}
		e.Evaluate(t.Context(), streamed(3))
		other := streamed(4)
		other.Assignment.Study = "another"
		if end := e.Evaluate(t.Context(), other); end.Outcome != messaging.OutcomeCompleted || len(p.jobs) != 3 || !ended(1) {
			t.Errorf("a trial of another study: %s after %d Jobs, the one before it ended: %v", end.Outcome, len(p.jobs), ended(1))
		}
		if err := e.Close(t.Context()); err != nil || !ended(2) {
			t.Errorf("closing the slot: %v, its Job ended: %v", err, ended(2))
		}
	})
}

// The Job of mode stream has a standard input, and only what is the same for all trials of its slot.
func TestStreamManifest(t *testing.T) {
	attach := func(context.Context, string, string, string, io.Reader) error { return nil }
	r := newTestRunner(t, Options{Template: []byte(streamJobTemplate), Attach: attach})
	task := streamed(7)
	task.Slot = 3
	first, err := r.home.streamManifest(task)
	if err != nil {
		t.Fatal(err)
	}
	second, err := r.home.streamManifest(task)
	if err != nil || first.GetName() == second.GetName() || !strings.HasPrefix(first.GetName(), "digits-s3-") {
		t.Errorf("the Jobs are %q and %q, %v; want digits-s3-… with different ends", first.GetName(), second.GetName(), err)
	}
	container := containerOf(podTemplates(first.Object)[0], "")
	if container["stdin"] != true || container["stdinOnce"] != true || container["args"].([]any)[0] != "digits" {
		t.Errorf("the container is %v", container)
	}
	for name := range environment(container) {
		if strings.Contains(name, "PARAM") || name == "FANTASIA_TRIAL" {
			t.Errorf("the program of all trials gets %s", name)
		}
	}
	labels := first.GetLabels()
	if labels[LabelSlot] != "3" || labels[LabelStudy] != "digits" || labels[LabelTrial] != "" || labels[LabelJob] != first.GetName() {
		t.Errorf("the labels are %v", labels)
	}
	for name, tt := range map[string]struct{ template, want string }{
		"a parameter": {strings.Replace(streamJobTemplate, "${FANTASIA_STUDY}", "${x}", 1), "can only contain the words FANTASIA_STUDY"},
		"parallelism": {strings.Replace(streamJobTemplate, "template:", "parallelism: 2, template:", 1), "spec.parallelism is 2, must be 1"},
		"restarts":    {strings.Replace(streamJobTemplate, "template:", "backoffLimit: 2, template:", 1), "backoffLimit is 2"},
		"no container": {strings.Replace(streamJobTemplate, "[{name: main, image: train, args: [\"${FANTASIA_STUDY}\"]}]",
			"[], x: \"${FANTASIA_STUDY}\"", 1), "container"},
	} {
		r := newTestRunner(t, Options{Template: []byte(streamJobTemplate), Attach: attach})
		var err error
		if r.home.template, err = parseTemplate([]byte(tt.template)); err != nil {
			t.Fatal(err)
		}
		if _, err := r.home.streamManifest(task); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want …%s…", name, err, tt.want)
		}
	}
	pod := newTestRunner(t, Options{Template: []byte("apiVersion: v1\nkind: Pod\nspec: {containers: [{name: main}]}\n"), Attach: attach})
	if err := (&evaluator{runner: pod}).Accept(task.Assignment); err == nil ||
		!strings.Contains(err.Error(), "needs a template of kind Job, not Pod") {
		t.Errorf("a Pod: %v", err)
	}
}

// A worker that was restarted deletes the Jobs of its earlier process that wait for trials.
func TestAStreamIsNotRecovered(t *testing.T) {
	r := newTestRunner(t,
		Options{Template: []byte(streamJobTemplate), Attach: func(context.Context, string, string, string, io.Reader) error { return nil }})
	r.options.Logger = slog.New(slog.DiscardHandler)
	job, err := r.home.streamManifest(streamed(1))
	if err != nil {
		t.Fatal(err)
	}
	jobs := schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	s := r.home.site
	s.client = fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{jobs: "JobList"},
		job).Resource(jobs).Namespace("ns")
	found, err := r.Recover(t.Context())
	if err != nil || len(found) != 0 {
		t.Errorf("recovered %v, %v; want nothing", found, err)
	}
	if there, err := s.exists(t.Context(), job.GetName()); err != nil || there {
		t.Errorf("the Job exists: %v, %v", there, err)
	}
}
