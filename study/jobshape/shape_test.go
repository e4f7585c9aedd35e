package jobshape_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	yaml "go.yaml.in/yaml/v4"
	batchv1 "k8s.io/api/batch/v1"
	"pgregory.net/rapid"
	strict "sigs.k8s.io/json"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/jobshape"
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
          resources: {limits: {cpu: 2, memory: 4Gi}}
          livenessProbe: {httpGet: {port: http}}
      volumes: [{name: w, hostPath: {path: /}}]
`

func TestCheck(t *testing.T) {
	const of, container = "spec.trial.job.spec", "spec.trial.job.spec.template.spec.containers[0]"
	for _, test := range []struct{ name, old, with, path, says string }{
		{"plain", "", "", "", ""},
		{"unknown field", "image: train:1", "imagee: train:1", container + ".imagee", `unknown field "imagee" (did you mean "image"?)`},
		{"a field like no other", "parallelism: 1", "shards: 1", of + ".shards",
			`unknown field "shards"; known are activeDeadlineSeconds, backoffLimit,`},
		{"other capitals", "image: train:1", "Image: train:1", container + ".Image", `did you mean "image"?`},
		{"a word where a number must be", "parallelism: 1", `parallelism: "${n}"`, of + ".parallelism",
			`expected a whole number of 32 bits, got "${n}": ${words} can only be in fields of text`},
		{"a fraction", "parallelism: 1", "parallelism: 1.5", of + ".parallelism", "expected a whole number of 32 bits, got 1.5"},
		{"a number too large", "parallelism: 1", "parallelism: 2147483648", of + ".parallelism", "got 2147483648"},
		{"a number for text", "image: train:1", "image: 5", container + ".image", "expected text, got 5"},
		{"text for a list", `["--lr=${lr}", "${args}"]`, "--all", container + ".args", `expected a list, got "--all"`},
		{"a number in a list", `"${args}"`, "7", container + ".args[1]", "expected text, got 7"},
		{"a list for a mapping", "{httpGet: {port: http}}", "[1]", container + ".livenessProbe", "expected a mapping, got a list"},
		{"a quantity", "4Gi", "4 GB", container + ".resources.limits.memory", `expected a quantity such as 2, 500m or "4Gi", got "4 GB"`},
		{"a quantity that takes minutes to compute", "4Gi", `"1e-99999999"`, container + ".resources.limits.memory", "expected a quantity"},
		{"a truth value for a port", "port: http", "port: true", container + ".livenessProbe.httpGet.port",
			"expected text or a whole number of 32 bits, got true"},
		{"text for a truth value", "image: train:1", "image: train:1\n          stdin: \"yes\"", container + ".stdin",
			`expected true or false, got "yes"`},
		{"a time", "{annotations: {note: a}}", "{creationTimestamp: now}", of + ".template.metadata.creationTimestamp",
			`expected a time such as 2026-01-31T12:00:00Z, got "now"`},
		{"restarts", "      containers:\n", "      restartPolicy: OnFailure\n      containers:\n", of + ".template.spec.restartPolicy",
			`"OnFailure" is not accepted; want Never`},
		{"tries", "parallelism: 1", "backoffLimit: 2", of + ".backoffLimit", "2 is not accepted; want 0"},
		{"another container", "container: main", "container: mian", "spec.trial.job.container", `"mian" is not the name of a container`},
	} {
		text := strings.Replace(plain, test.old, test.with, 1)
		j := &study.Job{}
		if err := yaml.Unmarshal([]byte(text), j); err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		err := jobshape.Check(j)
		if test.path == "" {
			if err != nil {
				t.Errorf("%s: %v, want no error", test.name, err)
			}
			continue
		}
		problems, ok := errors.AsType[*study.Problems](err)
		if !ok || len(problems.List) != 1 || problems.List[0].Path != test.path || !strings.Contains(problems.List[0].Message, test.says) {
			t.Errorf("%s: %v, want one problem %s: …%s…", test.name, err, test.path, test.says)
		}
	}
}

// A pod without containers, one whose problems are many, and another kind than a Job.
func TestCheckOthers(t *testing.T) {
	many := map[string]any{}
	for i := range 200 {
		many[fmt.Sprint("field", i)] = 1
	}
	for name, test := range map[string]struct {
		job  study.Job
		want string
	}{
		"no containers": {study.Job{Spec: map[string]any{"template": map[string]any{}}},
			"containers: is missing: a pod has at least one container"},
		"many problems": {study.Job{Spec: many}, "and more: these are the first 100 problems"},
		"a kind without pods": {study.Job{APIVersion: "kubeflow.org/v1", Kind: "PyTorchJob",
			Spec: map[string]any{"pytorchReplicaSpecs": map[string]any{}}}, "spec.trial.job.spec: has no pod template"},
	} {
		if err := jobshape.Check(&test.job); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want …%s…", name, err, test.want)
		}
	}
}

// samples are values of every kind, right and wrong, in JSON. Quantities are those of
// https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity and their like.
var samples = []string{
	`null`, `true`, `0`, `-1`, `2147483648`, `9223372036854775807`, `9223372036854775808`, `1.5`, `1e3`, `1E-2`, `-0`, `""`, `"a"`, `"${n}"`,
	`"0"`, `"500m"`, `"4Gi"`,
	`"4gi"`, `"4KB"`, `"4K"`, `"-1.5e3"`, `"1e+3"`, `"1e"`, `"1E"`, `"2Ei"`, `".5"`, `"5."`, `"1.G"`, `"1..5"`, `" 1 "`, `"\t1"`, `"1 Gi"`,
	`"0x1"`, `"100000000000000000000Gi"`,
	`"2026-01-31T12:00:00Z"`, `"2026-01-31T12:00:00.5+01:00"`, `"2026-01-31"`, `[]`, `["a"]`, `[1]`, `[null]`, `[{}]`, `[[]]`, `{}`,
	`{"a": "b"}`, `{"a": 1}`, `{"a": null}`, `{"a": {}}`,
}

// same checks that a manifest is accepted or refused as Kubernetes' own strict decoder does.
func same(t interface{ Errorf(string, ...any) }, manifest string) {
	unknown, err := strict.UnmarshalStrict([]byte(manifest), &batchv1.Job{})
	_, got := jobshape.ReadJob([]byte(manifest))
	if got != nil && strings.Contains(got.Error(), "spec.trial.retries") {
		return // refused for what it says, not for its shape
	}
	if (got == nil) != (err == nil && len(unknown) == 0) {
		t.Errorf("%s\n  is accepted here: %v\n  by Kubernetes' decoder: %v, %v", manifest, got, err, unknown)
	}
}

// Each field of each struct gets each sample, at a place where a Job has that struct. The oracle is
// the strict decoder of sigs.k8s.io/json with the Go types, which API servers use.
func TestEveryFieldAsKubernetes(t *testing.T) {
	places := 0
	met := map[reflect.Type]bool{}
	var visit func(of reflect.Type, before, after string)
	visit = func(of reflect.Type, before, after string) {
		switch of.Kind() {
		case reflect.Pointer:
			visit(of.Elem(), before, after)
			return
		case reflect.Slice:
			visit(of.Elem(), before+"[", "]"+after)
			return
		case reflect.Map:
			visit(of.Elem(), before+`{"key": `, "}"+after)
			return
		case reflect.Struct:
		default:
			return
		}
		if met[of] {
			return
		}
		met[of] = true
		for f := range of.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.Anonymous && name == "" {
				visit(f.Type, before, after)
				continue
			}
			if name == "" {
				continue // what reads JSON in a way of its own has fields without names
			}
			opening, closing := before+fmt.Sprintf("{%q: ", name), "}"+after
			for _, sample := range samples {
				same(t, opening+sample+closing)
				places++
			}
			same(t, before+fmt.Sprintf("{%q: null}", strings.ToUpper(name))+after)
			visit(f.Type, opening, closing)
		}
	}
	visit(reflect.TypeFor[batchv1.Job](), "", "")
	if places < 500*len(samples) {
		t.Errorf("only %d values were compared; want those of at least 500 fields", places)
	}
}

// A whole manifest with random changes: values in the place of others, and fields with other names.
func TestRandomChangesAsKubernetes(t *testing.T) {
	var job struct {
		Metadata map[string]any
		Spec     map[string]any
	}
	if err := yaml.Unmarshal([]byte(plain), &job); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]any{"apiVersion": "batch/v1", "kind": "Job", "metadata": job.Metadata, "spec": job.Spec})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		var manifest any
		if err := json.Unmarshal(text, &manifest); err != nil {
			t.Fatalf("%v", err)
		}
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			manifest = change(t, manifest)
		}
		changed, err := json.Marshal(manifest)
		if err != nil {
			t.Fatalf("%v", err)
		}
		same(t, string(changed))
	})
}

// change changes something in a value.
func change(t *rapid.T, value any) any {
	switch v := value.(type) {
	case map[string]any:
		if len(v) == 0 {
			break
		}
		name := rapid.SampledFrom(slices.Sorted(maps.Keys(v))).Draw(t, "name")
		if rapid.IntRange(0, 9).Draw(t, "rename") == 0 {
			v[rapid.SampledFrom([]string{strings.ToUpper(name), name + "s", "spec", "containers", "image", "labels", "port"}).Draw(t, "as")] =
				v[name]
			delete(v, name)
			return v
		}
		v[name] = change(t, v[name])
		return v
	case []any:
		if len(v) > 0 && rapid.Bool().Draw(t, "inside") {
			i := rapid.IntRange(0, len(v)-1).Draw(t, "element")
			v[i] = change(t, v[i])
			return v
		}
	}
	return json.RawMessage(rapid.SampledFrom(samples).Draw(t, "sample"))
}
