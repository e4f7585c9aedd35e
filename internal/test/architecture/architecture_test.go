// Package architecture holds the directions in which packages may import each
// other; docs/ARCHITECTURE.md draws them.
package architecture

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/fantasia-hpo/fantasia/"

// rule forbids imports: a package below one of from, but not below one of except, may not
// import, even through others, one below any of not, except those below but.
type rule struct {
	from, except, not, but []string
	why                    string
}

var rules = []rule{
	{from: []string{"study"}, not: []string{""}, but: []string{"study"}, why: "the vocabulary imports nothing internal"},
	{from: []string{"telemetry"}, not: []string{""}, but: []string{"telemetry"}, why: "telemetry is a leaf"},
	{from: []string{"optimizer/numeric", "optimizer/bayes", "optimizer/papers/mcmc", "optimizer/papers/pt/mixture",
		"optimizer/papers/pt/network", "optimizer/papers/pt/safetensors"},
		except: []string{"optimizer/bayes/loop", "optimizer/bayes/surrogate"},
		not:    []string{"study", "messaging", "coordinator", "worker", "internal"}, why: "the mathematics knows no study"},
	{from: []string{"optimizer"}, not: []string{"messaging", "coordinator", "worker", "api", "internal"},
		why: "an optimiser is a pure function"},
	{from: []string{"messaging"}, not: []string{"optimizer", "coordinator", "worker", "api", "internal"},
		but: []string{"internal/base/backoff"}, why: "the wire contract knows neither side"},
	{from: []string{"worker"}, not: []string{"coordinator", "optimizer", "api", "internal", "study/space", "study/file", "messaging/natsbus"},
		but: []string{"internal/base/backoff", "internal/base/httpserve", "internal/base/durable", "internal/base/failpoint",
			"internal/base/kubewatch", "internal/base/mutant"}, why: "a worker knows neither the coordinator nor the broker"},
	{from: []string{"coordinator"}, not: []string{"worker", "api", "internal", "messaging/natsbus"},
		but: []string{"internal/base/backoff", "internal/base/durable", "internal/base/each", "internal/base/failpoint",
			"internal/base/kubewatch", "internal/base/mutant", "internal/base/wal"}, why: "a coordinator knows neither workers nor the broker"},
	{from: []string{"coordinator/pruner"}, not: []string{""}, but: []string{"study", "optimizer"},
		why: "a pruner knows curves and settings only"},
	{from: []string{"coordinator/drive", "coordinator/journal"},
		not: []string{"coordinator/ledger", "coordinator/election", "telemetry", "internal"}, but: []string{"internal/base/wal"},
		why: "the library leads a study without etcd"},
	{from: []string{"coordinator/engine", "coordinator/record", "coordinator/curve"},
		not: []string{"coordinator/ledger", "coordinator/election", "telemetry", "internal"},
		why: "the engine does no I/O"},
	{from: []string{"api"}, not: []string{"worker", "internal", "messaging/natsbus"},
		but: []string{"internal/base/backoff", "internal/base/durable", "internal/base/each", "internal/base/failpoint",
			"internal/base/kubewatch", "internal/base/mutant"}, why: "the API serves what a backend gives it"},
	{from: []string{"remote"}, not: []string{"api", "worker", "internal", "messaging/natsbus", "telemetry"},
		but: []string{"internal/base/backoff", "internal/base/httpfault", "internal/base/tokenfile", "internal/base/wal", "internal/library"},
		why: "a client in a program of others is small"},
	{from: []string{"internal/library"}, not: []string{"api", "worker", "internal", "messaging/natsbus", "telemetry", "coordinator/ledger",
		"coordinator/election"}, but: []string{"internal/base/wal"},
		why: "the bindings are linked into programs of others"},
	{from: []string{"internal/base"}, not: []string{""}, why: "these tools know nothing of the project"},
	{from: []string{"internal/show"}, not: []string{"internal/app", "internal/exchange", "internal/assistant", "worker", "messaging/natsbus"},
		why: "what is shown does not know which program shows it"},
	{from: []string{"internal/exchange"}, not: []string{"internal/app", "internal/assistant", "worker", "messaging/natsbus"},
		but: []string{"worker/report"}, why: "what is exchanged does not know which program does it"},
	{from: []string{"cmd/worker", "internal/app/workercli", "internal/app/workernode"}, not: []string{"api", "coordinator", "optimizer"},
		why: "a worker is small: it is copied into training pods"},
}

// external forbids what the pure packages may not reach, directly.
var external = map[string][]string{
	"coordinator/engine": {"os", "net", "net/http", "io", "math/rand", "crypto/rand", "go.etcd.io/", "github.com/nats-io/"},
	"coordinator/pruner": {"os", "net", "net/http", "io", "time", "math/rand", "crypto/rand", "go.etcd.io/", "github.com/nats-io/"},
	"optimizer":          {"os", "net", "math/rand", "crypto/rand", "go.etcd.io/", "github.com/nats-io/"},
	"messaging":          {"github.com/nats-io/"},
	"worker":             {"github.com/nats-io/", "go.etcd.io/"},
	"coordinator":        {"github.com/nats-io/"},
}

type pkg struct {
	ImportPath    string
	Imports, Deps []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,Deps", "./...")
	cmd.Dir = path.Join("..", "..", "..")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var all []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func below(p string, dirs []string) bool {
	for _, d := range dirs {
		if d == "" || p == d || strings.HasPrefix(p, d+"/") {
			return true
		}
	}
	return false
}

func TestImportsPointOneWay(t *testing.T) {
	all := packages(t)
	if len(all) < 20 {
		t.Fatalf("go list found %d packages, want all of the project's", len(all))
	}
	for _, p := range all {
		name := strings.TrimPrefix(p.ImportPath, module)
		for _, r := range rules {
			// The suites and binaries of tests may look at more.
			if !below(name, r.from) || below(name, r.except) || strings.HasSuffix(name, "test") {
				continue
			}
			for _, dep := range p.Deps {
				inner, ours := strings.CutPrefix(dep, module)
				if ours && below(inner, r.not) && !below(inner, r.but) && !below(inner, r.from) {
					t.Errorf("%s depends on %s: %s", name, inner, r.why)
				}
			}
		}
	}
}

// The plain worker is copied into training pods, so it links nothing large that it
// does not need.
func TestWorkerIsSmall(t *testing.T) {
	large := []string{"k8s.io/", "cel.dev/", "go.yaml.in/", "github.com/invopop/", "go.etcd.io/", "connectrpc.com/"}
	for _, p := range packages(t) {
		if p.ImportPath != module+"cmd/worker" {
			continue
		}
		for _, dep := range p.Deps {
			for _, l := range large {
				if strings.HasPrefix(dep, l) {
					t.Errorf("worker links %s", dep)
				}
			}
		}
	}
}

// library is the package that other programs import, and remote its client of a server.
const (
	library = "github.com/fantasia-hpo/fantasia"
	remote  = library + "/remote"
)

// The library brings a program no server, no client of one, no SDK of telemetry and no optimiser that
// repeats a paper. Only those who use a server get Go's HTTP client, and nothing else.
func TestLibraryIsSmall(t *testing.T) {
	large := []string{
		"k8s.io/", "sigs.k8s.io/", "cel.dev/", "go.etcd.io/", "github.com/nats-io/", "go.opentelemetry.io/otel/sdk",
		"go.opentelemetry.io/otel/exporters",
		"connectrpc.com/", "google.golang.org/", "go.yaml.in/", "net/http", "testing",
		library + "/optimizer/papers", // a program has these only if it imports them itself
	}
	found := 0
	for _, p := range packages(t) {
		if p.ImportPath != library && p.ImportPath != remote {
			continue
		}
		found++
		for _, dep := range p.Deps {
			for _, l := range large {
				if l == "net/http" && p.ImportPath == remote {
					continue
				}
				if dep == l || strings.HasPrefix(dep, l) && l != "testing" {
					t.Errorf("package %s links %s", p.ImportPath, dep)
				}
			}
		}
	}
	if found != 2 {
		t.Errorf("go list names %d of %s and %s", found, library, remote)
	}
}

// A program that uses the library grows by 6.6 MB, and one that uses it with a server by 11.0: most
// of the difference is Go's HTTP client. With debug information it is 7.7 and 12.9.
func TestLibraryGrowsProgramsLittle(t *testing.T) {
	without := programSize(t, "empty")
	for program, most := range map[string]float64{"uses": 9, "shares": 14} {
		grown := float64(programSize(t, program)-without) / 1e6
		t.Logf("%s, which uses the library, is %.1f MB larger than an empty program", program, grown)
		if grown > most || grown < 1 {
			t.Errorf("%s, which uses the library, is %.1f MB larger than an empty program, want at most %g", program, grown, most)
		}
	}
}

// programSize builds a program of testdata and returns its size in bytes.
func programSize(t *testing.T, name string) int64 {
	t.Helper()
	program := filepath.Join(t.TempDir(), name)
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./testdata/"+name).CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	info, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// The vocabulary is linked into everything, so it imports the standard library only.
func TestVocabularyIsPlain(t *testing.T) {
	for _, p := range packages(t) {
		if p.ImportPath != module+"study" {
			continue
		}
		for _, i := range p.Imports {
			if first, _, _ := strings.Cut(i, "/"); strings.Contains(first, ".") {
				t.Errorf("study imports %s, which is not of the standard library", i)
			}
		}
	}
}

func TestPurePackagesReachNothingOutside(t *testing.T) {
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		for dir, forbidden := range external {
			adapter := strings.HasSuffix(name, "bus") || strings.HasSuffix(name, "test") ||
				below(name, []string{"coordinator/ledger", "coordinator/election"}) || (dir == "coordinator" && name == "coordinator")
			if !below(name, []string{dir}) || adapter {
				continue
			}
			for _, i := range p.Imports {
				for _, f := range forbidden {
					if i == f || strings.HasSuffix(f, "/") && strings.HasPrefix(i, f) {
						t.Errorf("%s imports %s, which is not for %s", name, i, dir)
					}
				}
			}
		}
	}
}
