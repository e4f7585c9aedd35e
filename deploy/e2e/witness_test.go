//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// evaluation is what the witness recorded about the start or end of an evaluation.
type evaluation struct {
	Study   string    `json:"study"`
	Trial   int32     `json:"trial"`
	Attempt int32     `json:"attempt"`
	Ended   bool      `json:"ended"`
	Epoch   int32     `json:"epoch"` // the sidecar's example: how many had been trained
	Exit    int       `json:"exit"`
	Value   *float64  `json:"value"`
	Host    string    `json:"host"`
	Time    time.Time `json:"time"`
}

func pointer[T any](v T) *T { return &v }

// restricted is what the pod security standard of that name requires of a container.
func restricted() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: pointer(false), ReadOnlyRootFilesystem: pointer(true), RunAsNonRoot: pointer(true),
		Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// startWitness runs the list of evaluations, at http://witness:8080.
func (c *cluster) startWitness() {
	c.t.Helper()
	labels := map[string]string{"app": "witness"}
	_, err := c.kube.CoreV1().Pods(c.namespace).Create(c.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "witness", Labels: labels},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: pointer(false), TerminationGracePeriodSeconds: pointer(int64(1)),
			Containers: []corev1.Container{{Name: "witness", Image: repository + "e2e:" + c.tag, Args: []string{"serve"},
				SecurityContext: restricted()}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	_, err = c.kube.CoreV1().Services(c.namespace).Create(c.t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "witness"},
		Spec:       corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 8080}}},
	}, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
}

// evaluations returns what the witness has recorded about a study.
func (c *cluster) evaluations(study string) []evaluation {
	c.t.Helper()
	var text []byte
	c.await(time.Minute, func(ctx context.Context) (err error) {
		text, err = c.kube.CoreV1().Services(c.namespace).ProxyGet("http", "witness", "8080", "/", nil).DoRaw(ctx)
		return err
	})
	var all []evaluation
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		var e evaluation
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			c.t.Fatalf("the witness says %q: %v", lines.Text(), err)
		}
		if e.Study == study {
			all = append(all, e)
		}
	}
	return all
}

type attemptKey struct{ trial, attempt int32 }

// compare compares a study's trials, as the API shows them, with the evaluations that
// took place: nothing is lost, and nothing counts twice. It returns how many attempts
// ended in each way.
func (c *cluster) compare(name string, trials int, took []evaluation) map[fantasiav1.AttemptState]int {
	c.t.Helper()
	begun, finished := map[attemptKey]int{}, map[attemptKey][]evaluation{}
	for _, e := range took {
		k := attemptKey{e.Trial, e.Attempt}
		if !e.Ended {
			begun[k]++
		} else if e.Exit == 0 {
			finished[k] = append(finished[k], e)
		}
	}
	all := c.trials(name)
	if len(all) != trials {
		c.t.Errorf("%s has %d trials, want %d", name, len(all), trials)
	}
	ways, known := map[fantasiav1.AttemptState]int{}, map[attemptKey]bool{}
	for i, t := range all {
		if t.GetNumber() != int32(i+1) || t.GetState() != fantasiav1.TrialState_TRIAL_STATE_COMPLETED {
			c.t.Errorf("trial %d of %s has number %d and is %v, want it completed; its attempts: %v", i+1, name, t.GetNumber(), t.GetState(),
				t.GetAttempts())
		}
		succeeded := 0
		for _, a := range t.GetAttempts() {
			k := attemptKey{t.GetNumber(), a.GetNumber()}
			known[k] = true
			ways[a.GetState()]++
			if begun[k] > 1 {
				c.t.Errorf("%s: attempt %d of trial %d began %d times", name, k.attempt, k.trial, begun[k])
			}
			if a.GetState() != fantasiav1.AttemptState_ATTEMPT_STATE_SUCCEEDED {
				// A program may end just when it is asked to stop, or together with its
				// machine; the trial then runs again.
				if len(finished[k]) > 0 && a.GetState() != lost && a.GetState() != handedBack {
					c.t.Errorf("%s: attempt %d of trial %d finished and is %v", name, k.attempt, k.trial, a.GetState())
				}
				continue
			}
			succeeded++
			if err := same(t, finished[k]); err != nil {
				c.t.Errorf("%s: attempt %d of trial %d: %v", name, k.attempt, k.trial, err)
			}
		}
		if succeeded != 1 {
			c.t.Errorf("%s: %d attempts of trial %d succeeded, want 1", name, succeeded, t.GetNumber())
		}
	}
	for k := range begun {
		if !known[k] {
			c.t.Errorf("%s: attempt %d of trial %d was evaluated and is not in the study", name, k.attempt, k.trial)
		}
	}
	c.t.Logf("%s: %d trials, %d evaluations begun, attempts: %v", name, len(all), len(begun), ways)
	return ways
}

// same compares a trial with the evaluations of the attempt that succeeded.
func same(t *fantasiav1.Trial, finished []evaluation) error {
	if len(finished) != 1 {
		return fmt.Errorf("it finished %d times, want once", len(finished))
	}
	if v := finished[0].Value; v == nil || t.Value == nil || *v != t.GetValue() {
		return fmt.Errorf("the evaluation reported %v, the study has %v", v, t.Value)
	}
	return nil
}
