//go:build e2e

package kubejob

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fantasia-hpo/fantasia/internal/base/backoff"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/jobpolicy"
)

// kind is another kind than Jobs, with what its real controller does in short: it makes a pod of
// each pod template, and sets a condition when the leading pod has ended or one has failed.
type kind struct {
	resource schema.GroupVersionResource
	name     string
	// leader is the pod template that decides; done the condition of success.
	leader int
	done   string
	// template has two %s: the containers of the leader and of another pod.
	template, reporter string
	// pods are the paths of its pod templates, as an operator writes them.
	pods string
}

var kinds = []kind{
	{
		resource: schema.GroupVersionResource{Group: "jobset.x-k8s.io", Version: "v1alpha2", Resource: "jobsets"}, name: "JobSet",
		done: "Completed",
		template: "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nspec:\n  replicatedJobs:\n    - {name: leader, template: {spec: " +
			"{template: %s}}}\n    - {name: other, template: {spec: {template: %s}}}\n",
		reporter: "spec.replicatedJobs.0.template.spec.template", pods: "spec.replicatedJobs.*.template.spec.template",
	},
	{
		resource: schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "pytorchjobs"}, name: "PyTorchJob",
		done: "Succeeded",
		template: "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nspec:\n  pytorchReplicaSpecs:\n    Master: {template: %s}\n    Worker: " +
			"{template: %s}\n",
		reporter: "spec.pytorchReplicaSpecs.Master.template", pods: "spec.pytorchReplicaSpecs.*.template",
	},
}

// define makes the cluster know the kind for the length of the test, unless it does already.
func (c *cluster) define(k kind) {
	c.t.Helper()
	definitions := c.o.Client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions"})
	name := k.resource.Resource + "." + k.resource.Group
	anything := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	_, err := definitions.Create(c.t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"group": k.resource.Group, "scope": "Namespaced",
			"names": map[string]any{"kind": k.name, "plural": k.resource.Resource, "singular": strings.ToLower(k.name)},
			"versions": []any{map[string]any{
				"name": k.resource.Version, "served": true, "storage": true, "subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object",
					"properties": map[string]any{"spec": anything, "status": anything}}},
			}},
		},
	}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return
	}
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		if err := definitions.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			c.t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	for {
		if _, err := c.o.Client.Resource(k.resource).Namespace(c.o.Namespace).List(ctx, metav1.ListOptions{}); err == nil {
			return
		}
		if !backoff.Sleep(ctx, 200*time.Millisecond) {
			c.t.Fatalf("the cluster does not know %s", name)
		}
	}
}

// control is the kind's controller until ctx ends.
func (c *cluster) control(ctx context.Context, k kind) {
	resources := c.o.Client.Resource(k.resource).Namespace(c.o.Namespace)
	for backoff.Sleep(ctx, 200*time.Millisecond) {
		list, err := resources.List(ctx, metav1.ListOptions{})
		for i := 0; err == nil && i < len(list.Items); i++ {
			err = c.reconcile(ctx, k, &list.Items[i])
		}
		if err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			c.t.Error(err)
			return
		}
	}
}

// reconcile makes the pods of a resource, and sets its condition.
func (c *cluster) reconcile(ctx context.Context, k kind, u *unstructured.Unstructured) error {
	if u.GetDeletionTimestamp() != nil || u.Object["status"] != nil {
		return nil
	}
	condition := ""
	for i, template := range podTemplates(u.Object) {
		name := fmt.Sprintf("%s-%d", u.GetName(), i)
		p, err := c.kube.CoreV1().Pods(c.o.Namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			p = &corev1.Pod{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(template, p); err != nil {
				return err
			}
			p.Name, p.Spec.RestartPolicy = name, corev1.RestartPolicyNever
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Name: u.GetName(), UID: u.GetUID()}}
			_, err = c.kube.CoreV1().Pods(c.o.Namespace).Create(ctx, p, metav1.CreateOptions{})
		}
		switch {
		case err != nil:
			return err
		case p.Status.Phase == corev1.PodFailed:
			condition = "Failed"
		case p.Status.Phase == corev1.PodSucceeded && i == k.leader && condition == "":
			condition = k.done
		}
	}
	if condition == "" {
		return nil
	}
	u.Object["status"] = map[string]any{
		"conditions": []any{map[string]any{"type": condition, "status": "True", "reason": "StandIn", "message": "one pod has ended"}}}
	_, err := c.o.Client.Resource(k.resource).Namespace(c.o.Namespace).UpdateStatus(ctx, u, metav1.UpdateOptions{})
	return err
}

// jobOfYAML returns a template as a study brings it.
func jobOfYAML(t *testing.T, text string) *study.Job {
	t.Helper()
	var content map[string]any
	if err := yaml.Unmarshal([]byte(text), &content); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(content)
	j := &study.Job{}
	if err := errors.Join(err, json.Unmarshal(data, j)); err != nil {
		t.Fatal(err)
	}
	return j
}

// TestOtherKindsOnACluster evaluates attempts by resources of other kinds, whose definitions are in
// the cluster and whose controllers are small stand-ins: by the operator's template, and by one that
// the study brings. Only the chosen pod reports.
func TestOtherKindsOnACluster(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	pod := func(flags ...string) string {
		return fmt.Sprintf(
			`{spec: {securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}, containers: [{name: actor, image: "ghcr.io/fantasia-hpo/e2e:%s", imagePullPolicy: IfNotPresent,
  command: [/usr/local/bin/actor], args: ["%s"], resources: {limits: {memory: 64Mi}, requests: {cpu: 10m, memory: 16Mi}}, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]}}`, c.tag, strings.Join(flags, `", "`))
	}
	other := pod("--report=none", "--steps=1")
	for _, k := range kinds {
		c.define(k)
	}
	studies := schema.GroupVersionResource{Group: "fantasia.dev", Version: "v1", Resource: "studies"}
	c.define(kind{resource: studies, name: "Study"})
	owner := &unstructured.Unstructured{Object: map[string]any{ // a whole study, since the cluster may have the chart's definition
		"apiVersion": "fantasia.dev/v1", "kind": "Study", "metadata": map[string]any{"name": "e2e"},
		"spec": map[string]any{
			"objective":  map[string]any{"metric": "error", "direction": "minimize"},
			"parameters": []any{map[string]any{"name": "x", "type": "float", "min": int64(0), "max": int64(1)}},
			"budget":     map[string]any{"maxTrials": int64(1)},
			"trial":      map[string]any{"command": []any{"true"}},
		},
	}}
	if _, err := c.o.Client.Resource(studies).Namespace(c.o.Namespace).Create(t.Context(), owner, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for i, k := range kinds {
		ctx, cancel := context.WithCancel(t.Context())
		var controlling sync.WaitGroup
		controlling.Go(func() { c.control(ctx, k) })
		t.Cleanup(func() { cancel(); controlling.Wait() })
		for n, tt := range []struct {
			leader          string
			outcome         messaging.Outcome
			reason, message string
			brought         bool // by the study, not by the operator's template
		}{
			{pod("--steps=3"), messaging.OutcomeCompleted, "", "", false},
			{pod("--exit=3"), messaging.OutcomeFailed, messaging.ReasonExit, "exit code 3", false},
			{pod("--steps=3"), messaging.OutcomeCompleted, "", "", true},
			{pod("--exit=3"), messaging.OutcomeFailed, messaging.ReasonExit, "exit code 3", true},
		} {
			o := c.o
			o.Template, o.Reporter, o.Worker = fmt.Appendf(nil, k.template, tt.leader, other), k.reporter,
				fmt.Sprintf("%s-%d", strings.ToLower(k.name), n)
			a := trial(100 + 10*i + n)
			if tt.brought {
				o.Template, o.Reporter = nil, ""
				o.StudyJobs = jobpolicy.Policies{o.Namespace: {PodSecurity: "restricted", Kinds: map[string]jobpolicy.Kind{k.name: {
					APIVersion: k.resource.GroupVersion().String(), Resource: k.resource.Resource, Pods: []string{k.pods}, Reporter: k.reporter,
				}}}}
				a.StudyName, a.Run.Job = o.Namespace+".e2e", jobOfYAML(t, fmt.Sprintf(k.template, tt.leader, other))
			}
			r, _ := c.runner(t, o)
			e, _ := evaluateOnce(t.Context(), t, r, a)
			check(t, e, tt.outcome, tt.reason, tt.message)
			pods, err := c.kube.CoreV1().Pods(c.o.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: LabelJob + "=" + JobName(a)})
			if err != nil {
				t.Fatal(err)
			}
			reporters := slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return p.Labels[LabelReports] != "true" })
			if len(reporters) != 1 || reporters[0].Name != JobName(a)+"-0" {
				t.Errorf("%s: %d pods report, want the leader's", k.name, len(reporters))
			}
			if err := r.MarkEnded(t.Context(), a); err != nil {
				t.Error(err)
			}
		}
	}
}
