//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// sample returns a sample's Deployment, with the images under test.
func (c *cluster) sample(name string) *appsv1.Deployment {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "deploy/samples", name))
	if err != nil {
		c.t.Fatal(err)
	}
	var d appsv1.Deployment
	if err := yaml.UnmarshalStrict(text, &d); err != nil {
		c.t.Fatalf("%s: %v", name, err)
	}
	for _, containers := range [][]corev1.Container{d.Spec.Template.Spec.InitContainers, d.Spec.Template.Spec.Containers} {
		for i := range containers {
			image, _, _ := strings.Cut(containers[i].Image, ":")
			containers[i].Image = image + ":" + c.tag
		}
	}
	return &d
}

// warnings collects the API server's warnings.
type warnings struct {
	mu   sync.Mutex
	seen []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, text)
}

// apply creates a sample's Deployment. The server must not warn: for a Deployment whose
// pods would violate the restricted standard, it only warns.
func (c *cluster) apply(d *appsv1.Deployment) {
	c.t.Helper()
	var w warnings
	config := rest.CopyConfig(c.config)
	config.WarningHandler = &w
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := kube.AppsV1().Deployments(c.namespace).Create(c.t.Context(), d, metav1.CreateOptions{FieldValidation: "Strict"}); err != nil {
		c.t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.seen) > 0 {
		c.t.Errorf("the server warns of %s: %q", d.Name, w.seen)
	}
}

// TestSamples runs the samples of deploy/samples with a release: each is one way to
// attach training jobs.
func TestSamples(t *testing.T) {
	inTurn(t)
	c := newCluster(t)
	labels := `{"metadata": {"labels": {"pod-security.kubernetes.io/warn": "restricted", "pod-security.kubernetes.io/warn-version": "latest"}}}`
	if _, err := c.kube.CoreV1().Namespaces().Patch(t.Context(), c.namespace, types.MergePatchType, []byte(labels),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	c.chart("install", fmt.Sprintf(`
image: {tag: %q}
nats: {bundled: {accounts: true, persistence: {enabled: false}}}
etcd: {bundled: {persistence: {enabled: false}}}
coordinator: {replicas: 1, resources: {requests: {cpu: 50m, memory: 64Mi}}}
poolDefaults: {replicas: 0, allowStudyCommands: true, resources: {requests: {cpu: 50m, memory: 64Mi}}}
pools: {default: {}, loops: {}, images: {}}
`, c.tag))
	t.Run("pool with your image", func(t *testing.T) { c.in(t).testImageSample() })
	t.Run("sidecar", func(t *testing.T) { c.in(t).testSidecarSample("spirals") })
	// The program dies silently. Its trial is still handed back, before the study's
	// grace is over: the hook came first, so the sidecar's SIGTERM means that nobody
	// can end the trial.
	t.Run("sidecar of an abrupt program", func(t *testing.T) { c.in(t).testSidecarSample("abrupt", "-abrupt") })
}

func (c *cluster) testImageSample() {
	c.apply(c.sample("pool-with-your-image.yaml"))
	c.create(strings.Replace(studyFile("images", "images", 6, 2, 0), "[witness, linger, 0s, digits,", "[digits,", 1))
	c.completed(5*time.Minute, "images")
	for _, t := range c.trials("images") {
		if v := t.GetValue(); t.Value == nil || v <= 0 || v >= 0.9 { // guessing errs in 90 %
			c.t.Errorf("trial %d of the digits has the error %v", t.GetNumber(), t.Value)
		}
	}
	err := c.kube.AppsV1().Deployments(c.namespace).Delete(c.t.Context(), "your-image", metav1.DeleteOptions{})
	if err != nil {
		c.t.Error(err)
	}
}

// loops are the training loops of the sidecar's sample, with what they log.
type loops struct {
	*cluster
	following sync.WaitGroup
	mu        sync.Mutex
	logged    map[string][]evaluation // by pod
}

func (l *loops) pods(ctx context.Context) ([]corev1.Pod, error) {
	list, err := l.kube.CoreV1().Pods(l.namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=training-loop"})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// follow reads the whole log of each training container until ctx ends: a pod's log is
// deleted with the pod.
func (l *loops) follow(ctx context.Context) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		pods, err := l.pods(ctx)
		for _, p := range pods {
			started := len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].Started != nil && *p.Status.ContainerStatuses[0].Started
			l.mu.Lock()
			_, known := l.logged[p.Name]
			if err == nil && started && !known {
				l.logged[p.Name] = nil
				l.following.Go(func() { l.read(ctx, p.Name) })
			}
			l.mu.Unlock()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (l *loops) read(ctx context.Context, pod string) {
	log, err := l.kube.CoreV1().Pods(l.namespace).GetLogs(pod, &corev1.PodLogOptions{Container: "training", Follow: true}).Stream(ctx)
	if err != nil {
		l.t.Errorf("follow %s: %v", pod, err)
		return
	}
	defer log.Close()
	for lines := bufio.NewScanner(log); lines.Scan(); {
		var e evaluation
		if json.Unmarshal(lines.Bytes(), &e) == nil && e.Trial > 0 {
			l.mu.Lock()
			e.Host, e.Time = pod, time.Now()
			l.logged[pod] = append(l.logged[pod], e)
			l.mu.Unlock()
		}
	}
}

// remove deletes the loops and waits until they are gone.
func (l *loops) remove() {
	l.t.Helper()
	if err := l.kube.AppsV1().Deployments(l.namespace).Delete(l.t.Context(), "training-loop", metav1.DeleteOptions{}); err != nil {
		l.t.Error(err)
	}
	l.await(2*time.Minute, func(ctx context.Context) error {
		pods, err := l.pods(ctx)
		if err == nil && len(pods) > 0 {
			err = fmt.Errorf("%d training loops are still there", len(pods))
		}
		return err
	})
}

// busy returns a pod whose loop has just started a trial.
func (l *loops) busy() (pod string, trial attemptKey) {
	l.t.Helper()
	l.await(2*time.Minute, func(context.Context) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		for name, events := range l.logged {
			if n := len(events); n > 0 && !events[n-1].Ended && time.Since(events[n-1].Time) < time.Second {
				pod, trial = name, attemptKey{events[n-1].Trial, events[n-1].Attempt}
				return nil
			}
		}
		return errors.New("no loop is busy")
	})
	return pod, trial
}

// testSidecarSample evicts the pod of a busy loop, as a drain does: its hook hands the
// trial back within the grace, another loop runs it, and nothing is lost.
func (c *cluster) testSidecarSample(name string, args ...string) {
	l := &loops{cluster: c, logged: map[string][]evaluation{}}
	d := c.sample("sidecar.yaml")
	d.Spec.Template.Spec.Containers[0].Args = append(args, "-slow", "250ms") // 5 s a trial
	c.apply(d)
	ctx, cancel := context.WithCancel(c.t.Context())
	defer l.remove()
	defer l.following.Wait()
	defer cancel()
	l.following.Go(func() { l.follow(ctx) })
	study, err := os.ReadFile(filepath.Join(root, "examples/sidecar/study.yaml"))
	if err != nil {
		c.t.Fatal(err)
	}
	c.create(strings.NewReplacer("name: spirals", "name: "+name, "grace: 10s", "grace: 30s", "maxTrials: 16",
		"maxTrials: 8").Replace(string(study)))
	c.ended(5*time.Minute, name, 2)
	pod, evicted := l.busy()
	began := time.Now()
	if err := c.evict(c.t.Context(), pod); err != nil {
		c.t.Fatal(err)
	}
	c.await(time.Minute, func(context.Context) error {
		for _, t := range c.trials(name) {
			for _, a := range t.GetAttempts() {
				if (attemptKey{t.GetNumber(), a.GetNumber()}) == evicted && a.GetState() != fantasiav1.AttemptState_ATTEMPT_STATE_OPEN {
					c.t.Logf("trial %d was %v %.1f s after the eviction", t.GetNumber(), a.GetState(), time.Since(began).Seconds())
					return nil
				}
			}
		}
		return errors.New("the attempt of the evicted pod is open")
	})
	if took := time.Since(began); took > 20*time.Second {
		c.t.Errorf("the attempt ended %s after the eviction, want it handed back by the hook", took)
	}
	c.await(time.Minute, func(ctx context.Context) error {
		pods, err := l.pods(ctx)
		for _, p := range pods {
			if p.Name == pod {
				return errors.Join(err, fmt.Errorf("%s is still there", pod))
			}
		}
		return err
	})
	c.t.Logf("the pod was gone %.1f s after the eviction", time.Since(began).Seconds())
	c.completed(5*time.Minute, name)
	// The last lines of the logs may take a while.
	c.await(10*time.Second, func(context.Context) error { return l.compare(name) })
}

// compare compares the trials with what the loops have logged.
func (l *loops) compare(study string) error {
	l.t.Helper()
	var problems []error
	complain := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	l.mu.Lock()
	defer l.mu.Unlock()
	finished := map[attemptKey][]evaluation{}
	begun := map[attemptKey]int{}
	for events := range maps.Values(l.logged) {
		for _, e := range events {
			k := attemptKey{e.Trial, e.Attempt}
			if e.Ended {
				finished[k] = append(finished[k], e)
			} else {
				begun[k]++
			}
		}
	}
	ways := map[fantasiav1.AttemptState]int{}
	for _, t := range l.trials(study) {
		if t.GetState() != fantasiav1.TrialState_TRIAL_STATE_COMPLETED {
			complain("trial %d is %v", t.GetNumber(), t.GetState())
			continue
		}
		for _, a := range t.GetAttempts() {
			ways[a.GetState()]++
			k := attemptKey{t.GetNumber(), a.GetNumber()}
			if begun[k] != 1 {
				complain("attempt %d of trial %d began %d times", k.attempt, k.trial, begun[k])
			}
			if a.GetState() != fantasiav1.AttemptState_ATTEMPT_STATE_SUCCEEDED {
				continue
			}
			if err := same(t, finished[k]); err != nil {
				complain("attempt %d of trial %d: %w", k.attempt, k.trial, err)
			}
		}
	}
	if n := ways[fantasiav1.AttemptState_ATTEMPT_STATE_HANDED_BACK]; n != 1 || len(ways) != 2 {
		complain("the attempts ended as %v, want the evicted one handed back and the others to succeed", ways)
	}
	if len(problems) == 0 {
		l.t.Logf("%s: attempts: %v, on %d pods", study, ways, len(l.logged))
	}
	return errors.Join(problems...)
}
