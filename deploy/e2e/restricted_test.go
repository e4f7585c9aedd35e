//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// onlyRestricted are the labels of a namespace whose pods must meet the Pod Security
// Standard "restricted".
func onlyRestricted() map[string]string {
	return map[string]string{"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/enforce-version": "latest"}
}

// harmless returns a pod that the standard "restricted" admits.
func harmless() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "pod-"},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: pointer(false),
			Containers:                   []corev1.Container{{Name: "main", Image: "localhost/none", SecurityContext: restricted()}},
		},
	}
}

// forbidden are pods that the standard does not admit
// (https://kubernetes.io/docs/concepts/security/pod-security-standards), each by one
// difference to a harmless one, with what the refusal says of it.
var forbidden = map[string]struct {
	change func(*corev1.PodSpec)
	says   string
}{
	"privileged": {func(p *corev1.PodSpec) {
		p.Containers[0].SecurityContext.Privileged, p.Containers[0].SecurityContext.AllowPrivilegeEscalation = pointer(true), nil
	}, "privileged"},
	"root": {func(p *corev1.PodSpec) {
		p.Containers[0].SecurityContext.RunAsUser, p.Containers[0].SecurityContext.RunAsNonRoot = pointer(int64(0)), pointer(false)
	}, "runAsNonRoot"},
	"on the host's network": {func(p *corev1.PodSpec) { p.HostNetwork = true }, "hostNetwork=true"},
	"with a path of the host": {func(p *corev1.PodSpec) {
		p.Volumes = []corev1.Volume{{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
	}, "hostPath"},
	"with a capability": {func(p *corev1.PodSpec) {
		p.Containers[0].SecurityContext.Capabilities.Add = []corev1.Capability{"NET_ADMIN"}
	}, "NET_ADMIN"},
}

// refuses checks that the namespace admits a harmless pod and refuses the forbidden ones.
// So whatever runs in it meets the standard.
func (c *cluster) refuses() {
	c.t.Helper()
	dry := func(ctx context.Context, pod *corev1.Pod) error {
		_, err := c.kube.CoreV1().Pods(c.namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	// A new namespace admits no pod before it has its service account.
	c.await(time.Minute, func(ctx context.Context) error { return dry(ctx, harmless()) })
	for name, bad := range forbidden {
		pod := harmless()
		bad.change(&pod.Spec)
		switch err := dry(c.t.Context(), pod); {
		case err == nil:
			c.t.Errorf("the namespace admits a pod that is %s", name)
		case !strings.Contains(err.Error(), `violates PodSecurity "restricted`) || !strings.Contains(err.Error(), bad.says):
			c.t.Errorf("a pod that is %s is refused because %v, want it to violate the standard by %s", name, err, bad.says)
		}
	}
}

// allRun waits until every pod of the release runs and is ready, so that none waits for a
// pod that the namespace refuses.
func (c *cluster) allRun(within time.Duration) {
	c.t.Helper()
	c.await(within, func(ctx context.Context) error {
		var problems []error
		check := func(name string, ready, want int32) {
			if ready != want {
				problems = append(problems, fmt.Errorf("%s has %d of %d pods", name, ready, want))
			}
		}
		sets, err := c.kube.AppsV1().StatefulSets(c.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, s := range sets.Items {
			check(s.Name, s.Status.ReadyReplicas, *s.Spec.Replicas)
		}
		deployments, err := c.kube.AppsV1().Deployments(c.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, d := range deployments.Items {
			check(d.Name, d.Status.ReadyReplicas, *d.Spec.Replicas)
		}
		if len(sets.Items) == 0 || len(deployments.Items) == 0 {
			problems = append(problems, errors.New("the release has no pods"))
		}
		return errors.Join(problems...)
	})
}
