package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// program is what an image holds.
type program struct {
	name        string // of the image
	binary      string // in /usr/local/bin, the entry point
	pkg         string // what is built
	module      string // folder of the module whose build list it is built from, or empty for the main one
	title       string
	description string
	licence     string   // SPDX
	source      string   // address of the sources
	state       string   // a directory of its own, to mount a volume on, or empty
	with        []string // further packages of ours beside the program, which link the standard library alone
	tags        string   // of the build, separated by commas
	asked       bool     // made only when asked for by name
}

const ourSource = "https://github.com/fantasia-hpo/fantasia"

// programs are all images. Those from nats on are for evaluation and tests: NATS
// and etcd of the versions that Fantasia is tested with, training examples, and
// what the end-to-end tests observe them with. The last are what autoscaling is
// tested with; they take long to build.
var programs = []program{
	{name: "coordinator", binary: "coordinator", pkg: "./cmd/coordinator", title: "Fantasia coordinator",
		description: "Leads studies: suggests trials, publishes them to workers, folds their results", licence: "Apache-2.0", source: ourSource},
	{name: "worker", binary: "worker", pkg: "./cmd/worker", title: "Fantasia worker",
		description: "Evaluates trials", licence: "Apache-2.0", source: ourSource, state: "/var/lib/fantasia"},
	{name: "kubeworker", binary: "kubeworker", pkg: "./cmd/kubeworker", title: "Fantasia worker for Kubernetes",
		description: "Evaluates each trial by a Job, or by another resource of a Kubernetes cluster", licence: "Apache-2.0", source: ourSource,
		state: "/var/lib/fantasia"},
	{name: "fantasia", binary: "fantasia", pkg: "./cmd/fantasia", title: "Fantasia",
		description: "The command line", licence: "Apache-2.0", source: ourSource, state: "/var/lib/fantasia"},
	{name: "nats", binary: "nats-server", pkg: "github.com/nats-io/nats-server/v2", title: "NATS server",
		description: "NATS with JetStream, for the evaluation of Fantasia", licence: "Apache-2.0",
		source: "https://github.com/nats-io/nats-server", state: "/var/lib/nats"},
	{name: "etcd", binary: "etcd", pkg: "go.etcd.io/etcd/server/v3", title: "etcd",
		description: "etcd, for the evaluation of Fantasia", licence: "Apache-2.0", source: "https://github.com/etcd-io/etcd",
		state: "/var/lib/etcd"},
	{name: "digits", binary: "digits", pkg: "./examples/digits", title: "Handwritten digits",
		description: "A training job to tune: a small neural network on handwritten digits", licence: "Apache-2.0", source: ourSource,
		state: "/var/lib/fantasia"},
	{name: "sidecar-example", binary: "sidecar-example", pkg: "./examples/sidecar", title: "Training loop",
		description: "Training code that keeps its own loop, and asks for trials over HTTP", licence: "Apache-2.0", source: ourSource},
	{name: "e2e", binary: "witness", pkg: "./deploy/e2e/witness", title: "Witness",
		description: "Observes evaluations in end-to-end tests", licence: "Apache-2.0", source: ourSource,
		with: []string{"./examples/digits", "./deploy/e2e/actor", "./deploy/e2e/peer"}},
	{name: "keda", binary: "keda", pkg: "github.com/kedacore/keda/v2/cmd/operator", module: "tools/keda", asked: true, title: "KEDA",
		description: "KEDA's operator, for end-to-end tests", licence: "Apache-2.0", source: "https://github.com/kedacore/keda"},
	{name: "keda-metrics-apiserver", binary: "keda-adapter", pkg: "github.com/kedacore/keda/v2/cmd/adapter", module: "tools/keda", asked: true,
		title:       "KEDA metrics server",
		description: "KEDA's server of external metrics, for end-to-end tests", licence: "Apache-2.0",
		source: "https://github.com/kedacore/keda"},
	{name: "prometheus", binary: "prometheus", pkg: "github.com/prometheus/prometheus/cmd/prometheus", module: "tools/prometheus", asked: true,
		title:       "Prometheus",
		description: "Prometheus, for end-to-end tests", licence: "Apache-2.0", source: "https://github.com/prometheus/prometheus",
		state: "/prometheus", tags: "remove_all_sd,enable_kubernetes_sd"}, // the SDKs of all clouds take long to build
}

// choose returns the programs that have the names or, without any, all but those
// that must be asked for.
func choose(names []string) ([]program, error) {
	var chosen []program
	if len(names) == 0 {
		for _, p := range programs {
			if !p.asked {
				chosen = append(chosen, p)
			}
		}
	}
	for _, name := range names {
		i := slices.IndexFunc(programs, func(p program) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no image %q, only %s", name, nameList())
		}
		chosen = append(chosen, programs[i])
	}
	return chosen, nil
}

func nameList() string {
	names := make([]string, len(programs))
	for i, p := range programs {
		names[i] = p.name
	}
	return strings.Join(names, ", ")
}

// build links a package of a program's image, static and without paths of this
// machine, and returns its file and what it was built from.
func (o *options) build(ctx context.Context, p program, pkg, dir string) (string, *buildinfo.BuildInfo, error) {
	out := filepath.Join(dir, p.binary)
	if pkg != p.pkg {
		out = filepath.Join(dir, path.Base(pkg))
	}
	flags := "-s -w"
	if p.source == ourSource {
		flags += " -X main.version=" + o.version
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-gcflags=all=-dwarf=false", "-buildvcs=false", "-tags", p.tags,
		"-ldflags", flags, "-o", out, pkg)
	cmd.Dir = filepath.Join(o.root, p.module)
	// What would change the bytes is set, whatever the caller has.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+o.arch, "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=",
		"GOFLAGS=-mod=readonly", "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return "", nil, fmt.Errorf("go build %s: %w\n%s", pkg, err, bytes.TrimSpace(stderr.Bytes()))
	}
	info, err := buildinfo.ReadFile(out)
	if err != nil {
		return "", nil, fmt.Errorf("read what %s was built from: %w", pkg, err)
	}
	return out, info, nil
}

// softwareVersion is that of the program in the image: a module's for one of
// another project, else what is being released.
func (o *options) softwareVersion(p program, info *buildinfo.BuildInfo) string {
	if p.source == ourSource {
		return o.version
	}
	return strings.TrimPrefix(info.Main.Version, "v")
}
