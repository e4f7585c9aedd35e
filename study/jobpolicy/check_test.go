package jobpolicy_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	yaml "go.yaml.in/yaml/v4"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/jobpolicy"
)

const plain = `
container: main
metadata: {labels: {queue: a}}
spec:
  parallelism: 1
  template:
    metadata: {annotations: {note: a}}
    spec:
      containers:
        - name: main
          image: train:1
          args: ["--lr=${lr}", "${args}"]
          env: [{name: KEY, valueFrom: {secretKeyRef: {name: data, key: key}}}]
      volumes: [{name: v, persistentVolumeClaim: {claimName: data}}, {name: w, emptyDir: {}}]
`

// job returns the template with changes of its text, in pairs of old and new.
func job(t *testing.T, change ...string) *study.Job {
	t.Helper()
	for i := 0; i < len(change); i += 2 {
		if !strings.Contains(plain, change[i]) {
			t.Fatalf("the template does not contain %q", change[i])
		}
	}
	j := &study.Job{}
	if err := yaml.Unmarshal([]byte(strings.NewReplacer(change...).Replace(plain)), j); err != nil {
		t.Fatal(err)
	}
	return j
}

// pod returns a change that adds a field to the pod.
func pod(field string) []string {
	return []string{"      containers:\n", "      " + field + "\n      containers:\n"}
}

// container returns a change that adds a field to the container.
func container(field string) []string {
	return []string{"          image: train:1\n", "          image: train:1\n          " + field + "\n"}
}

// says checks that an error is a *study.Problems of one problem, with a path and a part
// of a message; no path means no error.
func says(t *testing.T, name string, err error, path, message string) {
	t.Helper()
	if path == "" {
		if err != nil {
			t.Errorf("%s: %v, want no error", name, err)
		}
		return
	}
	problems, ok := errors.AsType[*study.Problems](err)
	if !ok || len(problems.List) != 1 || problems.List[0].Path != path || !strings.Contains(problems.List[0].Message, message) {
		t.Errorf("%s: %v, want one problem %s: …%s…", name, err, path, message)
	}
}

// What the standards forbid is in
// https://kubernetes.io/docs/concepts/security/pod-security-standards.
func TestCheck(t *testing.T) {
	const of, podPath = "spec.trial.job", "spec.trial.job.spec.template.spec"
	policies := jobpolicy.Policies{
		"team-a": {}, "open": {PodSecurity: "privileged", ServiceAccounts: []string{"*"}, PriorityClasses: []string{"*"}},
		"tight": {PodSecurity: "restricted"}, "named": {ServiceAccounts: []string{"training", "other"}, PriorityClasses: []string{"low"}},
	}
	for _, test := range []struct {
		name, namespace string
		change          []string
		path, says      string
	}{
		{"plain", "team-a", nil, "", ""},
		{"a namespace without a policy", "team-b", nil, of, "namespace team-b may not bring Job templates"},
		{"hostPath", "team-a", []string{"persistentVolumeClaim: {claimName: data}", "hostPath: {path: /}"}, of + ".spec.template",
			`hostPath volumes (volume "v"): the Jobs of namespace team-a must meet the Pod Security Standard "baseline"`},
		{"hostPath where it is allowed", "open", []string{"persistentVolumeClaim: {claimName: data}", "hostPath: {path: /}"}, "", ""},
		{"hostNetwork", "team-a", pod("hostNetwork: true"), of + ".spec.template", "host namespaces"},
		{"hostPID", "team-a", pod("hostPID: true"), of + ".spec.template", "host namespaces"},
		{"hostPort", "team-a", container("ports: [{containerPort: 1, hostPort: 1}]"), of + ".spec.template", "hostPort"},
		{"privileged", "team-a", container("securityContext: {privileged: true}"), of + ".spec.template",
			`container "main" must not set securityContext.privileged=true`},
		{"capabilities", "team-a", container("securityContext: {capabilities: {add: [SYS_ADMIN]}}"), of + ".spec.template", "SYS_ADMIN"},
		{"a capability by a word", "team-a", container(`securityContext: {capabilities: {add: ["${kind}"]}}`), of + ".spec.template", "${kind}"},
		{"an init container", "team-a", pod("initContainers: [{name: i, image: i, securityContext: {privileged: true}}]"), of + ".spec.template",
			`container "i"`},
		{"unconfined by an annotation", "team-a", []string{"note: a", "container.apparmor.security.beta.kubernetes.io/main: unconfined"},
			of + ".spec.template", "AppArmor"},
		{"another account", "team-a", pod("serviceAccountName: admin"), podPath + ".serviceAccountName",
			`may not run as service account "admin"; they may run as default`},
		{"another account by the old field", "team-a", pod("serviceAccount: admin"), podPath + ".serviceAccountName", `"admin"`},
		{"an account by a word", "team-a", pod("serviceAccountName: ${kind}"), podPath + ".serviceAccountName", `"${kind}"`},
		{"the account default, which is not listed", "named", nil, podPath + ".serviceAccountName", `"default"; they may run as training, other`},
		{"a listed account", "named", pod("serviceAccountName: other"), "", ""},
		{"any account", "open", pod("serviceAccountName: admin"), "", ""},
		{"a priority class", "team-a", pod("priorityClassName: high"), podPath + ".priorityClassName", `"high"; they may have none`},
		{"a listed priority class", "named", pod("serviceAccountName: other\n      priorityClassName: low"), "", ""},
		{"a priority", "team-a", pod("priority: 5"), podPath + ".priority", "leave it out"},
		{"a node", "open", pod("nodeName: n1"), podPath + ".nodeName", `"n1" is not accepted`},
		{"a selector", "open", []string{"parallelism: 1", "selector: {matchLabels: {a: b}}"}, of + ".spec.selector", "leave it out"},
		{"a selector by hand", "open", []string{"parallelism: 1", "manualSelector: true"}, of + ".spec.manualSelector", "leave it out"},
		{"another controller", "open", []string{"parallelism: 1", "managedBy: example.com/x"}, of + ".spec.managedBy", "leave it out"},
		{"a reserved label", "open", []string{"queue: a", "fantasia.dev/concluded: 'true'"}, of + ".metadata.labels", "reserved for workers"},
		{"a reserved annotation of the pod", "open", []string{"note: a", "fantasia.dev/attempt-json: a"},
			of + ".spec.template.metadata.annotations", "reserved for workers"},
		{"an owner", "open", []string{"annotations: {note: a}", "ownerReferences: [{apiVersion: v1, kind: Pod, name: a, uid: b}]"},
			of + ".spec.template.metadata", "may only have labels and annotations"},
		{"another namespace", "open", []string{"annotations: {note: a}", "namespace: kube-system"}, of + ".spec.template.metadata",
			"may only have labels and annotations"},
		{"a finalizer", "open", []string{"annotations: {note: a}", "finalizers: [a/b]"}, of + ".spec.template.metadata",
			"may only have labels and annotations"},
		{"a field that no version knows", "open", pod("hostnetwork: true"), podPath + ".hostnetwork",
			`unknown field "hostnetwork" (did you mean "hostNetwork"?)`},
		{"retries of its own", "open", []string{"parallelism: 1", "backoffLimit: 3"}, of + ".spec.backoffLimit", "want 0"},
	} {
		says(t, test.name, policies.Check(test.namespace, job(t, test.change...)), test.path, test.says)
	}
}

// The standard restricted demands more than baseline: all of it is reported at once.
func TestRestricted(t *testing.T) {
	policies := jobpolicy.Policies{"tight": {PodSecurity: "restricted"}}
	err := policies.Check("tight", job(t))
	for _, want := range []string{"allowPrivilegeEscalation", "unrestricted capabilities", "runAsNonRoot", "seccompProfile"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want …%s…", err, want)
		}
	}
	err = policies.Check("tight", job(t, append(
		container("securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}"),
		pod("securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}")...)...))
	if err != nil {
		t.Error(err)
	}
}

func TestRead(t *testing.T) {
	read := func(text string) (jobpolicy.Policies, error) {
		path := filepath.Join(t.TempDir(), "jobs.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return jobpolicy.Read(path)
	}
	p, err := read("team-b: {}\nteam-a: {podSecurity: restricted, serviceAccounts: [training], priorityClasses: ['*']}\n")
	if err != nil || len(p) != 2 || strings.Join(p.Namespaces(), " ") != "team-a team-b" || p["team-a"].PodSecurity != "restricted" ||
		p["team-a"].ServiceAccounts[0] != "training" {
		t.Errorf("%+v, %v", p, err)
	}
	for text, want := range map[string]string{
		"'*': {}":                `"*" is not the name of a namespace`,
		"a: {podSecurity: none}": `a.podSecurity: "none" is not accepted; want baseline, restricted or privileged`,
		"a: {accounts: [b]}":     "serviceAccounts: [default]", "- a": "want a map from namespaces",
	} {
		if _, err := read(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want …%s…", text, err, want)
		}
	}
	if p, err := read(""); err != nil || len(p) != 0 {
		t.Errorf("an empty file: %v, %v", p, err)
	}
}
