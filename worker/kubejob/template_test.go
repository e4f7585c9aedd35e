package kubejob

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/worker/evaluation"
)

const plainJob = `
apiVersion: batch/v1
kind: Job
metadata: {name: mine, labels: {team: vision}}
spec:
  template:
    spec:
      containers:
        - {name: main, image: train, args: ["--lr=${lr}", "${args}"], env: [{name: PYTHONUNBUFFERED, value: "0"}, {name: LR, value: $(FANTASIA_PARAM_LR)}]}
        - {name: proxy, image: proxy}
`

func assignment() *messaging.Assignment {
	return &messaging.Assignment{
		Version: messaging.SchemaVersion, AttemptID: messaging.AttemptID{Study: "01J", Trial: 7, Attempt: 2, Nonce: "n1"},
		StudyName: "digits", Pool: "jobs", Seed: 5, Configuration: 3, Checkpoint: "s3://here",
		Parameters: study.Point{"lr": 0.01, "layers": int64(3), "kind": "a $(b) $$"}, ParameterOrder: []string{"lr", "layers", "kind"},
		Objective: study.Objective{Metric: "error", Direction: study.Minimize},
		Run: study.TrialTemplate{
			Command: []string{"secret"}, Env: map[string]string{"TOKEN": "secret"},
			Timeout: study.Duration(10 * time.Minute), Grace: study.Duration(90 * time.Second),
		},
	}
}

func newTestRunner(t *testing.T, o Options) *Runner {
	t.Helper()
	o.Namespace, o.Worker, o.TTL = "ns", "w1", time.Hour
	r, err := newRunner(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func manifestOf(t *testing.T, r *Runner, a *messaging.Assignment) *unstructured.Unstructured {
	t.Helper()
	_, object, err := r.prepare(evaluation.Task{Assignment: a, Slot: 4, Trace: messaging.TraceContext{Traceparent: "00-1-2-01"}})
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// environment returns a container's env.
func environment(container map[string]any) map[string]string {
	env := map[string]string{}
	for _, v := range asList(container["env"]) {
		m := v.(map[string]any)
		env[m["name"].(string)] = m["value"].(string)
	}
	return env
}

func TestManifest(t *testing.T) {
	a := assignment()
	object := manifestOf(t, newTestRunner(t, Options{Template: []byte(plainJob), StartTimeout: 10 * time.Minute}), a)
	if object.GetName() != JobName(a) || object.GetNamespace() != "ns" {
		t.Errorf("it is %s/%s, want ns/%s", object.GetNamespace(), object.GetName(), JobName(a))
	}
	spec := object.Object["spec"].(map[string]any)
	template := spec["template"].(map[string]any)
	podSpec := template["spec"].(map[string]any)
	for what, pair := range map[string][2]any{
		"backoffLimit":    {spec["backoffLimit"], int64(0)},
		"TTL":             {spec["ttlSecondsAfterFinished"], int64(3600)},
		"deadline":        {spec["activeDeadlineSeconds"], int64(600 + 90 + 2*600 + 60)},
		"restart policy":  {podSpec["restartPolicy"], "Never"},
		"grace":           {podSpec["terminationGracePeriodSeconds"], int64(90)},
		"init containers": {podSpec["initContainers"], nil},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s is %v, want %v", what, pair[0], pair[1])
		}
	}
	labels := map[string]string{
		"app.kubernetes.io/managed-by": "fantasia", "fantasia.dev/job": JobName(a), "fantasia.dev/study": "digits", "fantasia.dev/trial": "7",
		"fantasia.dev/attempt": "2", "fantasia.dev/nonce": "n1", "fantasia.dev/pool": "jobs", "fantasia.dev/worker": "w1",
	}
	pod := unstructured.Unstructured{Object: template}
	if diff := cmp.Diff(labels, pod.GetLabels()); diff != "" {
		t.Errorf("the pods' labels differ (-want +got):\n%s", diff)
	}
	labels["team"] = "vision"
	if diff := cmp.Diff(labels, object.GetLabels()); diff != "" {
		t.Errorf("the labels differ (-want +got):\n%s", diff)
	}
	main, proxy := containerOf(template, "main"), containerOf(template, "proxy")
	if diff := cmp.Diff([]any{"--lr=0.01", "--layers=3", "--kind=a $(b) $$"}, main["args"]); diff != "" {
		t.Errorf("the arguments differ (-want +got):\n%s", diff)
	}
	want := map[string]string{
		"PYTHONUNBUFFERED": "0", "LR": "$(FANTASIA_PARAM_LR)", // its own
		"FANTASIA_PARAMETERS": `{"lr":0.01,"layers":3,"kind":"a $$(b) $$$$"}`, // as the cluster is to expand it
		"FANTASIA_PARAM_LR":   "0.01", "FANTASIA_PARAM_LAYERS": "3", "FANTASIA_PARAM_KIND": "a $$(b) $$$$",
		"FANTASIA_STUDY": "digits", "FANTASIA_TRIAL": "7", "FANTASIA_ATTEMPT": "2", "FANTASIA_SLOT": "4", "FANTASIA_SEED": "5",
		"FANTASIA_CHECKPOINT": "s3://here", "FANTASIA_CHECKPOINT_KEY": "01J/3", "TRACEPARENT": "00-1-2-01",
	}
	if diff := cmp.Diff(want, environment(main)); diff != "" {
		t.Errorf("the environment differs (-want +got):\n%s", diff)
	}
	// A reference works only to what comes before it.
	if env := asList(main["env"]); env[len(env)-1].(map[string]any)["name"] != "LR" {
		t.Error("the container's own variables do not come last")
	}
	if len(environment(proxy)) != 0 {
		t.Errorf("another container gets %v", environment(proxy))
	}
}

// TestManifestCarriesItsAttempt holds that a restarted worker finds it, without
// what a study's command would need.
func TestManifestCarriesItsAttempt(t *testing.T) {
	a := assignment()
	object := manifestOf(t, newTestRunner(t, Options{Template: []byte(plainJob)}), a)
	found, err := assignmentOf(object)
	if err != nil {
		t.Fatal(err)
	}
	want := *a
	want.Run.Command, want.Run.Env = nil, nil
	want.TraceContext = messaging.TraceContext{Traceparent: "00-1-2-01"}
	if diff := cmp.Diff(&want, found); diff != "" {
		t.Errorf("the attempt differs (-want +got):\n%s", diff)
	}
	object.SetName("another")
	if _, err := assignmentOf(object); err == nil {
		t.Error("an attempt was read from a resource that is not its own")
	}
}

func TestWhatTheTemplateSaysStays(t *testing.T) {
	text := strings.Replace(plainJob, "spec:\n  template:\n    spec:\n", `spec:
  backoffLimit: 0
  ttlSecondsAfterFinished: 5
  activeDeadlineSeconds: 30
  podFailurePolicy: {rules: []}
  parallelism: !!int ${layers}
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
`, 1)
	object := manifestOf(t, newTestRunner(t, Options{Template: []byte(text)}), assignment())
	data, err := json.Marshal(object.Object["spec"])
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"ttlSecondsAfterFinished":5`, `"activeDeadlineSeconds":30`, `"podFailurePolicy":{"rules":[]}`, `"parallelism":3`,
		`"terminationGracePeriodSeconds":1`,
	} {
		if !strings.Contains(string(data), want) {
			t.Errorf("the spec lacks %s: %s", want, data)
		}
	}
}

func TestSidecar(t *testing.T) {
	o := Options{Template: []byte(plainJob), Sidecar: "worker:1", SidecarPolicy: "Never"}
	object := manifestOf(t, newTestRunner(t, o), assignment())
	template := object.Object["spec"].(map[string]any)["template"].(map[string]any)
	spec := template["spec"].(map[string]any)
	first := asList(spec["initContainers"])[0].(map[string]any)
	if first["image"] != "worker:1" || first["restartPolicy"] != "Always" || first["imagePullPolicy"] != "Never" {
		t.Errorf("the sidecar is %v", first)
	}
	main := containerOf(template, "")
	if env := environment(main); env["FANTASIA_REPORT"] != "/var/run/fantasia/reports.jsonl" ||
		env["FANTASIA_SIDECAR"] != "http://127.0.0.1:7070" {
		t.Errorf("the program gets %v", env)
	}
	if diff := cmp.Diff(first["volumeMounts"], main["volumeMounts"]); diff != "" {
		t.Errorf("they do not share a folder:\n%s", diff)
	}
	if main["command"] != nil || main["image"] != "train" {
		t.Errorf("the program's container was altered: %v", main)
	}
}

// The program and the sidecar share the folder of metrics.events, wherever the program has it.
func TestSidecarReadsEvents(t *testing.T) {
	for events, at := range map[string]string{"/train": "/train", "logs/tb": "/var/run/fantasia/logs/tb"} {
		a := assignment()
		a.Run.Metrics = &study.Metrics{Events: events}
		object := manifestOf(t, newTestRunner(t, Options{Template: []byte(plainJob), Sidecar: "worker:1"}), a)
		template := object.Object["spec"].(map[string]any)["template"].(map[string]any)
		spec := template["spec"].(map[string]any)
		first := asList(spec["initContainers"])[0].(map[string]any)
		if diff := cmp.Diff([]any{
			map[string]any{"name": sidecarVolume, "mountPath": "/var/run/fantasia"}, map[string]any{"name": eventsVolume, "mountPath": at},
		}, containerOf(template, "")["volumeMounts"]); diff != "" {
			t.Errorf("%s: the program's mounts: %s", events, diff)
		}
		if diff := cmp.Diff([]any{
			map[string]any{"name": sidecarVolume, "mountPath": "/var/run/fantasia"},
			map[string]any{"name": eventsVolume, "mountPath": eventsMount, "readOnly": true},
		}, first["volumeMounts"]); diff != "" {
			t.Errorf("%s: the sidecar's mounts: %s", events, diff)
		}
		if diff := cmp.Diff([]any{"job-sidecar", "--dir", "/var/run/fantasia", "--events", eventsMount}, first["args"]); diff != "" ||
			len(asList(spec["volumes"])) != 2 {
			t.Errorf("%s: %s, volumes %v", events, diff, spec["volumes"])
		}
	}
}

// TestOtherKinds injects into the pod templates of other kinds, wherever they are.
func TestOtherKinds(t *testing.T) {
	const containers = `{spec: {containers: [{name: main, image: train, args: ["${args}"]}]}}`
	for name, tt := range map[string]struct {
		text string
		pods int
	}{
		"PyTorchJob": {`{apiVersion: kubeflow.org/v1, kind: PyTorchJob, spec: {pytorchReplicaSpecs: {Master: {template: ` + containers +
			`}, Worker: {replicas: 3, template: ` + containers + `}}}}`, 2},
		"JobSet": {`{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, spec: {replicatedJobs: [{name: a, template: {spec: {template: ` +
			containers + `}}}]}}`, 1},
		"RayJob": {`{apiVersion: ray.io/v1, kind: RayJob, spec: {entrypoint: "python train.py", rayClusterSpec: {headGroupSpec: {template: ` +
			containers + `}, workerGroupSpecs: [{template: ` + containers + `}]}}}`, 2},
		"Pod":  {strings.Replace(containers, "{spec", "{apiVersion: v1, kind: Pod, spec", 1), 1},
		"none": {`{apiVersion: example.org/v1, kind: Training, spec: {lr: "${lr}"}}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			object := manifestOf(t, newTestRunner(t, Options{Template: []byte(tt.text)}), assignment())
			pods := podTemplates(object.Object)
			if len(pods) != tt.pods {
				t.Fatalf("found %d pod templates, want %d", len(pods), tt.pods)
			}
			for _, p := range pods {
				c := containerOf(p, "")
				if environment(c)["FANTASIA_PARAM_LR"] != "0.01" || len(asList(c["args"])) != 3 {
					t.Errorf("the container is %v", c)
				}
				if (&unstructured.Unstructured{Object: p}).GetLabels()[LabelJob] != object.GetName() {
					t.Error("the pods cannot be found")
				}
			}
		})
	}
}

// Of several pod templates with the program's container, the one at the path reports: its pods are
// labelled, and only they get the sidecar. All of them get the parameters.
func TestReporter(t *testing.T) {
	const containers = `{spec: {containers: [{name: main, image: train}]}}`
	jobSet := `{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, spec: {replicatedJobs: [{name: w, template: {spec: {template: ` +
		containers + `}}}, {name: l, template: {spec: {template: ` + containers + `}}}]}}`
	pytorch := `{apiVersion: kubeflow.org/v1, kind: PyTorchJob, spec: {pytorchReplicaSpecs: {Master: {template: ` + containers +
		`}, Worker: {template: ` + containers + `}}}}`
	for _, tt := range []struct {
		text, path string
		chosen     int // of the pod templates in the order of their paths
	}{
		{jobSet, "spec.replicatedJobs.1.template.spec.template", 1},
		{pytorch, "spec.pytorchReplicaSpecs.Master.template", 0},
		{pytorch, "spec.pytorchReplicaSpecs.Worker.template", 1},
	} {
		object := manifestOf(t, newTestRunner(t, Options{Template: []byte(tt.text), Reporter: tt.path, Sidecar: "sidecar"}), assignment())
		for i, p := range podTemplates(object.Object) {
			pod := &unstructured.Unstructured{Object: p}
			sidecars := len(asList(child(p, "spec")["initContainers"]))
			if labelled := pod.GetLabels()[LabelReports] == "true"; labelled != (i == tt.chosen) || (sidecars == 1) != labelled {
				t.Errorf("%s: pod template %d is labelled: %v, and has %d sidecars", tt.path, i, labelled, sidecars)
			}
			if environment(containerOf(p, ""))["FANTASIA_PARAM_LR"] != "0.01" {
				t.Errorf("%s: pod template %d gets no parameters", tt.path, i)
			}
		}
	}
	for path, want := range map[string]string{
		"spec.pytorchReplicaSpecs.Launcher.template": "the template has no spec.pytorchReplicaSpecs.Launcher",
		"spec.pytorchReplicaSpecs":                   "it is no pod template",
		"spec.pytorchReplicaSpecs.Master":            "it is no pod template",
	} {
		if _, err := newRunner(Options{Template: []byte(pytorch), Reporter: path, Namespace: "ns", Worker: "w"}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want …%s…", path, err, want)
		}
	}
	if _, err := newRunner(Options{Template: []byte(jobSet), Reporter: "spec.replicatedJobs.2.template", Namespace: "ns",
		Worker: "w"}); err == nil || !strings.Contains(err.Error(), "spec.replicatedJobs is a list of 2") {
		t.Errorf("an index that is too large: %v", err)
	}
}

func TestRefused(t *testing.T) {
	job := func(replace ...string) string { return strings.NewReplacer(replace...).Replace(plainJob) }
	for name, tt := range map[string]struct {
		o    Options
		want string
	}{
		"nothing":       {Options{}, "template"},
		"no mapping":    {Options{Template: []byte("[1]")}, "no mapping"},
		"two documents": {Options{Template: []byte(plainJob + "\n---\n" + plainJob)}, "several documents"},
		"no kind":       {Options{Template: []byte("{spec: {}}")}, "ind"},
		"retries":       {Options{Template: []byte(job("spec:\n  template", "spec:\n  backoffLimit: 3\n  template"))}, "backoffLimit is 3"},
		"restarts": {Options{Template: []byte(job("      containers", "      restartPolicy: OnFailure\n      containers"))},
			"restartPolicy is OnFailure"},
		"unknown container": {Options{Template: []byte(plainJob), Container: "other"}, `container "other"`},
		"open brace":        {Options{Template: []byte(job("${lr}", "${lr"))}, "without its }"},
		"args inside":       {Options{Template: []byte(job("${lr}", "${args}"))}, "element of its own"},
		"no way in":         {Options{Template: []byte("{apiVersion: example.org/v1, kind: Training, spec: {lr: 1}}")}, "could not reach"},
		"condition":         {Options{Template: []byte(plainJob), Success: "1 +"}, "success"},
		"sidecar's name":    {Options{Template: []byte(job("name: proxy", "name: fantasia-report")), Sidecar: "w"}, "fantasia-report"},
	} {
		tt.o.Namespace, tt.o.Worker = "ns", "w"
		if _, err := newRunner(tt.o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: refused with %v, want …%s…", name, err, tt.want)
		}
	}
	for name, tt := range map[string]struct {
		template string
		change   func(a *messaging.Assignment)
		want     string
	}{
		"unknown parameter": {job("${lr}", "${rate}"), nil, `no parameter "rate"; it has lr, layers, kind`},
		"no number":         {job("spec:\n  template", "spec:\n  parallelism: !!int ${kind}\n  template"), nil, "int"},
		"args in a mapping": {job("image: proxy", `image: "${args}"`), nil, "element of a list"},
		"metrics.events":    {plainJob, func(a *messaging.Assignment) { a.Run.Metrics = &study.Metrics{Events: "/train"} }, "--sidecar"},
		"metrics.file":      {plainJob, func(a *messaging.Assignment) { a.Run.Metrics = &study.Metrics{File: "out.json"} }, "--sidecar"},
	} {
		a := assignment()
		if tt.change != nil {
			tt.change(a)
		}
		r := newTestRunner(t, Options{Template: []byte(tt.template)})
		if _, _, err := r.prepare(evaluation.Task{Assignment: a}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: refused with %v, want …%s…", name, err, tt.want)
		}
	}
}

// TestNamesAreValid holds that names and labels are what Kubernetes takes, and
// that attempts have names of their own.
func TestNamesAreValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[A-Za-z0-9_.-]{1,128}`)
		a := &messaging.Assignment{StudyName: text.Draw(t, "study"), Pool: text.Draw(t, "pool")}
		a.Study, a.Nonce = text.Draw(t, "id"), text.Draw(t, "nonce")
		a.Trial, a.Attempt = rapid.IntRange(1, 10_000_000).Draw(t, "trial"), rapid.IntRange(1, 1000).Draw(t, "attempt")
		name := JobName(a)
		// The labels of the objects that operators name so begin with a letter.
		if problems := validation.IsDNS1035Label(name); len(problems) > 0 || len(name) > maxJobName {
			t.Errorf("%q is no name: %v", name, problems)
		}
		for key, value := range labels(a, text.Draw(t, "worker")) {
			if problems := append(validation.IsValidLabelValue(value), validation.IsQualifiedName(key)...); len(problems) > 0 {
				t.Errorf("%s: %q is no label: %v", key, value, problems)
			}
		}
		other := *a
		other.Nonce += "x"
		if JobName(&other) == name {
			t.Errorf("two attempts are named %s", name)
		}
	})
}

// FuzzTemplate holds that whatever is taken as a template can be rendered or is
// refused with an error, and that values never change the document's shape.
func FuzzTemplate(f *testing.F) {
	f.Add(plainJob, "a: b\n- c")
	f.Add("{apiVersion: v1, kind: Pod, spec: {a: &x ['${v}', '${args}'], b: *x, c: !!int '${v}', d: '$${v}'}}", `"}`)
	f.Fuzz(func(t *testing.T, text, value string) {
		p, err := parseTemplate([]byte(text))
		if err != nil {
			return
		}
		render := func(v string) *unstructured.Unstructured {
			object, err := p.render([]string{"v"}, study.Point{"v": v}, nil)
			if err != nil {
				return nil
			}
			return object
		}
		a, b := render(value), render("plain")
		if a != nil && b != nil && shape(a.Object) != shape(b.Object) {
			t.Errorf("the value %q makes %s, another %s", value, shape(a.Object), shape(b.Object))
		}
	})
}

// shape is a value without its texts and numbers.
func shape(v any) string {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]string{}
		for k, e := range v {
			out[k] = shape(e)
		}
		data, err := json.Marshal(out)
		if err != nil {
			return err.Error()
		}
		return string(data)
	case []any:
		out := "["
		for _, e := range v {
			out += shape(e)
		}
		return out + "]"
	default:
		return "."
	}
}

// TestTheSampleIsTheManualPages holds that the template that the manual page shows
// is the sample's, that it is one, and that the page names every flag.
func TestTheSampleIsTheManualPages(t *testing.T) {
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	sample, page := read("deploy/samples/kubejob-template.yaml"), read("docs/operate/kubejob.md")
	if !strings.Contains(page, "\n"+sample) {
		t.Error("docs/operate/kubejob.md shows another template than deploy/samples/kubejob-template.yaml")
	}
	manifestOf(t, newTestRunner(t, Options{Template: []byte(sample)}), assignment())
	flags := regexp.MustCompile(`Var\(&[a-zA-Z.]+, "([a-z-]+)"`).FindAllStringSubmatch(read("internal/app/kubeworkercli/kubeworkercli.go"), -1)
	if len(flags) < 10 {
		t.Fatalf("found only the flags %q", flags)
	}
	for _, f := range flags {
		if !strings.Contains(page, "`--"+f[1]+"`") {
			t.Errorf("docs/operate/kubejob.md does not name the flag --%s", f[1])
		}
	}
}
