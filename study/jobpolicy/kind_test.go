package jobpolicy_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	yaml "go.yaml.in/yaml/v4"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/jobpolicy"
)

const pytorch = `
apiVersion: kubeflow.org/v1
kind: PyTorchJob
container: pytorch
metadata: {labels: {queue: a}}
spec:
  runPolicy: {backoffLimit: 0}
  pytorchReplicaSpecs:
    Master: {replicas: 1, template: {spec: {containers: [{name: pytorch, image: train:1}]}}}
    Worker: {replicas: 3, template: {spec: {containers: [{name: pytorch, image: train:1}]}}}
`

const kinds = `
team-a:
  kinds:
    PyTorchJob: {apiVersion: kubeflow.org/v1, resource: pytorchjobs, pods: [spec.pytorchReplicaSpecs.*.template], reporter: spec.pytorchReplicaSpecs.Master.template}
    JobSet: {apiVersion: jobset.x-k8s.io/v1alpha2, resource: jobsets, pods: [spec.replicatedJobs.*.template.spec.template]}
team-b: {}
`

func readKinds(t *testing.T, text string) (jobpolicy.Policies, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jobs.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return jobpolicy.Read(path)
}

// A kind that the operator allows is checked like a Job: every pod in it, and no pod elsewhere.
func TestCheckKind(t *testing.T) {
	policies, err := readKinds(t, kinds)
	if err != nil {
		t.Fatal(err)
	}
	const of = "spec.trial.job"
	const master, worker = of + ".spec.pytorchReplicaSpecs.Master.template", of + ".spec.pytorchReplicaSpecs.Worker.template"
	for _, test := range []struct {
		name, namespace, old, with string
		path, says                 string
	}{
		{"plain", "team-a", "", "", "", ""},
		{"in a namespace that allows none", "team-b", "", "", of + ".kind",
			"the studies of namespace team-b may not bring kubeflow.org/v1 PyTorchJob; they may bring batch/v1 Job"},
		{"in a namespace without a policy", "team-c", "", "", of, "namespace team-c may not bring Job templates"},
		{"another kind", "team-a", "kind: PyTorchJob", "kind: MPIJob", of + ".kind",
			"may not bring kubeflow.org/v1 MPIJob; they may bring batch/v1 Job, jobset.x-k8s.io/v1alpha2 JobSet, kubeflow.org/v1 PyTorchJob"},
		{"another version", "team-a", "org/v1\n", "org/v2\n", of + ".kind", "kubeflow.org/v2 PyTorchJob"},
		{"a pod that is privileged", "team-a", "image: train:1}]}}}\n", "image: train:1, securityContext: {privileged: true}}]}}}\n", worker,
			"privileged"},
		{"a node", "team-a", "Master: {replicas: 1, template: {spec: {", "Master: {replicas: 1, template: {spec: {nodeName: n, ",
			master + ".spec.nodeName", "is not accepted"},
		{"an account", "team-a", "Master: {replicas: 1, template: {spec: {",
			"Master: {replicas: 1, template: {spec: {serviceAccountName: admin, ", master + ".spec.serviceAccountName", `"admin"`},
		{"a field that no version knows", "team-a", "Master: {replicas: 1, template: {spec: {",
			"Master: {replicas: 1, template: {spec: {hostnetwork: true, ", master + ".spec.hostnetwork",
			`unknown field "hostnetwork" (did you mean "hostNetwork"?)`},
		{"a pod elsewhere", "team-a", "runPolicy: {backoffLimit: 0}", "launcher: {spec: {containers: [{name: a}]}}", of + ".spec.launcher",
			"may not be a pod template: those of this kind are at spec.pytorchReplicaSpecs.*.template"},
		{"a reserved label", "team-a", "queue: a", "fantasia.dev/job: a", of + ".metadata.labels", "reserved for workers"},
	} {
		text := pytorch
		if i := strings.LastIndex(text, test.old); test.old != "" {
			text = text[:i] + test.with + text[i+len(test.old):]
		}
		var content map[string]any
		if err := yaml.Unmarshal([]byte(text), &content); err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(content)
		j := &study.Job{}
		if err := errors.Join(err, json.Unmarshal(data, j)); err != nil {
			t.Fatal(err)
		}
		says(t, test.name, policies.Check(test.namespace, j), test.path, test.says)
	}
	none := &study.Job{APIVersion: "kubeflow.org/v1", Kind: "PyTorchJob", Spec: map[string]any{"pytorchReplicaSpecs": map[string]any{}}}
	says(t, "no pod", policies.Check("team-a", none), of, "has no pod template; want one at spec.pytorchReplicaSpecs.*.template")
}

func TestReadKinds(t *testing.T) {
	for text, want := range map[string]string{
		"a: {kinds: {X: {apiVersion: v1, resource: xs, pods: [spec]}}}":                                  `a.kinds.X: apiVersion: "v1" is not accepted; want GROUP/VERSION`,
		"a: {kinds: {X: {apiVersion: a.b/v1, pods: [spec]}}}":                                            "a.kinds.X: resource is missing",
		"a: {kinds: {X: {apiVersion: a.b/v1, resource: xs}}}":                                            "a.kinds.X: pods is missing",
		"a: {kinds: {X: {apiVersion: a.b/v1, resource: xs, pods: [spec], success: 'status.phase = 1'}}}": `a.kinds.X: success: condition "status.phase = 1": ERROR: <input>:1:14`,
		"a: {kinds: {X: {apiVersion: a.b/v1, resource: xs, pods: [spec], failure: 'phase == 1'}}}":       `a.kinds.X: failure: condition "phase == 1": ERROR: <input>:1:1: undeclared reference to 'phase'`,
		"a: {kinds: {X: {apiVersion: a.b/v1, resource: xs, pods: [spec], success: '\"Succeeded\"'}}}":    `success: condition "\"Succeeded\"" is string, must be true or false`,
		"a: {kinds: {X: {apiVersion: a.b/v1, resource: xs, paths: []}}}":                                 "paths",
	} {
		if _, err := readKinds(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want …%s…", text, err, want)
		}
	}
}
