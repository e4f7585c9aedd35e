package helm

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
)

const (
	chart = "fantasia"
	root  = "../.."
)

// tools are the packages of the programs that run runs.
var tools = map[string]string{
	"helm":        helmProgram,
	"kubeconform": "github.com/yannh/kubeconform/cmd/kubeconform",
	"kustomize":   "sigs.k8s.io/kustomize/kustomize/v5",
}

// run runs a tool and returns what it prints.
func run(t testing.TB, name string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), testenv.Tool(t, "kube", tools[name]), args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if err != nil {
		err = errors.Join(err, errors.New(stderr.String()), errors.New(stdout.String()))
	}
	return stdout.String(), err
}

// rendered has a function for each set of arguments, which renders the chart with them once.
var rendered sync.Map

// render renders the chart for a release "f" in the namespace "tuning". The same arguments
// give the same text, also of what the chart draws.
func render(t testing.TB, args ...string) string {
	t.Helper()
	f, _ := rendered.LoadOrStore(strings.Join(args, "\n"), sync.OnceValues(func() (string, error) {
		return run(t, "helm", append([]string{"template", "f", chart, "--namespace=tuning"}, args...)...)
	}))
	out, err := f.(func() (string, error))()
	if err != nil {
		t.Fatalf("helm template %q: %v", args, err)
	}
	return out
}

// resource is an object of Kubernetes.
type resource map[string]any

// at is the value that a path of keys and indices leads to, nil where it does not.
func (o resource) at(path ...any) any {
	var v any = map[string]any(o)
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			l, _ := v.([]any)
			if p >= len(l) {
				return nil
			}
			v = l[p]
		}
	}
	return v
}

func (o resource) text(path ...any) string { s, _ := o.at(path...).(string); return s }
func (o resource) kind() string            { return o.text("kind") }
func (o resource) name() string            { return o.text("metadata", "name") }

// list is a list of mappings.
func (o resource) list(path ...any) []resource {
	var out []resource
	l, _ := o.at(path...).([]any)
	for _, e := range l {
		m, _ := e.(map[string]any)
		out = append(out, m)
	}
	return out
}

// objects takes a rendered chart apart.
func objects(t testing.TB, text string) []resource {
	t.Helper()
	var all []resource
	for d := yaml.NewDecoder(strings.NewReader(text)); ; {
		var o map[string]any
		if err := d.Decode(&o); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		if o != nil {
			all = append(all, o)
		}
	}
}

// find returns the resource of a kind and name, without the release's prefix.
func find(t testing.TB, all []resource, kind, name string) resource {
	t.Helper()
	for _, o := range all {
		if o.kind() == kind && (o.name() == name || o.name() == "f-fantasia-"+name) {
			return o
		}
	}
	t.Fatalf("there is no %s %s", kind, name)
	return nil
}

// pods are the templates of all pods among resources, by the owner's kind and name.
func pods(all []resource) map[string]resource {
	out := map[string]resource{}
	for _, o := range all {
		if o.kind() == "Pod" {
			out["Pod/"+o.name()] = o
		} else if m, ok := o.at("spec", "template").(map[string]any); ok && o.at("spec", "template", "spec", "containers") != nil {
			out[o.kind()+"/"+o.name()] = m
		}
	}
	return out
}

// combinations are the files of values that the chart is checked with.
func combinations(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(chart, "ci", "*-values.yaml"))
	if err != nil || len(files) < 5 {
		t.Fatalf("found the files of values %q: %v", files, err)
	}
	return files
}

// values are arguments of helm: a pool "default" and what else is set. Without accounts
// and tokens, which are drawn, two renderings are equal.
func values(set ...string) []string {
	args := []string{"--set-json=nats.bundled.accounts=false", "--set-json=coordinator.requireToken=false", "--set-json=pools.default={}",
		`--set-json=poolDefaults.image="train:1"`, "--set-json=poolDefaults.allowStudyCommands=true"}
	for _, s := range set {
		args = append(args, "--set-json="+s)
	}
	return args
}
