package docs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
)

const runTimeout = 5 * time.Minute

// programs builds every program that the documents name, and returns the PATH
// on which they are found.
func programs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	const cmd = "github.com/fantasia-hpo/fantasia/cmd/"
	for name, pkg := range map[string]string{
		"nats-server": "github.com/nats-io/nats-server/v2", "etcd": "go.etcd.io/etcd/server/v3",
		"fantasia": cmd + "fantasia", "coordinator": cmd + "coordinator", "worker": cmd + "worker", "kubeworker": cmd + "kubeworker",
	} {
		if err := os.Symlink(testenv.Build(t, pkg), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	linkStandIns(t, dir)
	return dir + string(os.PathListSeparator) + os.Getenv("PATH")
}

// ports are those that the documents name.
var ports = regexp.MustCompile(`\b(4222|2379|8080|8081|7070|7071)\b`)

// reader follows one document as a person would, in a directory of its own that
// has the repository's examples, and optuna.db, a storage of Optuna.
type reader struct {
	t     *testing.T
	dir   string
	env   []string
	ports map[string]string
}

func newReader(t *testing.T, path string) *reader {
	t.Helper()
	r := &reader{t: t, dir: t.TempDir(), ports: map[string]string{}}
	for _, port := range []string{"4222", "2379", "8080", "8081", "7070", "7071"} {
		r.ports[port] = strconv.Itoa(testenv.FreePort(t))
	}
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "FANTASIA_") && !strings.HasPrefix(entry, "PATH=") {
			r.env = append(r.env, entry)
		}
	}
	client, peer := "http://localhost:"+r.ports["2379"], "http://localhost:"+strconv.Itoa(testenv.FreePort(t))
	r.env = append(r.env, "PATH="+path,
		"ETCD_LISTEN_CLIENT_URLS="+client, "ETCD_ADVERTISE_CLIENT_URLS="+client, "ETCD_LISTEN_PEER_URLS="+peer,
		"ETCD_INITIAL_ADVERTISE_PEER_URLS="+peer, "ETCD_INITIAL_CLUSTER=default="+peer)
	if err := os.WriteFile(filepath.Join(r.dir, "optuna.db"), []byte(readPage(t, "internal/exchange/migrate/testdata/optuna.db")),
		0o600); err != nil {
		t.Fatal(err)
	}
	for _, example := range []string{"sklearn", "sidecar", "promotion"} {
		if err := os.CopyFS(filepath.Join(r.dir, "examples", example), os.DirFS(filepath.Join(root, "examples", example))); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// follow does what the blocks say. With python it runs those that need it too.
func (r *reader) follow(blocks []block, python bool) {
	var output string
	ran := false
	for i := range blocks {
		b := &blocks[i]
		wanted := python || !b.is("python")
		switch {
		case b.options["file"] != "":
			if err := os.WriteFile(filepath.Join(r.dir, b.options["file"]), []byte(b.text), 0o600); err != nil {
				r.t.Fatal(err)
			}
		case b.options["same"] != "":
			if b.text != readPage(r.t, b.options["same"]) {
				r.t.Errorf("%s:%d is not the text of %s", b.document, b.line, b.options["same"])
			}
		case b.is("serve"):
			if wanted {
				r.serve(b)
			}
		case b.is("run"), b.is("python"):
			if ran = wanted; ran {
				output = r.run(b)
			}
		case b.is("output") && ran:
			r.compare(b, output)
		}
	}
}

// text is a block's with free ports.
func (r *reader) text(b *block) string {
	return ports.ReplaceAllStringFunc(b.text, func(port string) string { return r.ports[port] })
}

// run runs a block and returns what it wrote.
func (r *reader) run(b *block) string {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), runTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-ec", r.text(b))
	cmd.Dir, cmd.Env, cmd.WaitDelay = r.dir, r.env, time.Second
	output, err := cmd.CombinedOutput()
	code := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else if err != nil {
		r.t.Fatalf("%s:%d: %v", b.document, b.line, err)
	}
	if want, _ := strconv.Atoi(b.options["exit"]); code != want { // 0 where it says nothing
		r.t.Fatalf("%s:%d exits with %d, want %d:\n%s", b.document, b.line, code, want, output)
	}
	return string(output)
}

// serve starts a block and waits until it serves.
func (r *reader) serve(b *block) {
	r.t.Helper()
	var ready func(context.Context) error
	if at := b.options["ready"]; at != "" {
		port, path, _ := strings.Cut(at, "/")
		ready = answers("localhost:"+r.ports[port], path)
	}
	testenv.Start(r.t, "/bin/sh", []string{"-ec", "cd '" + r.dir + "'; exec " + r.text(b)}, r.env, ready)
}

// answers returns a check that a server takes connections, and answers with 200
// at a path if one is given.
func answers(address, path string) func(context.Context) error {
	return func(ctx context.Context) error {
		if path == "" {
			c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
			if err == nil {
				err = c.Close()
			}
			return err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/"+path, nil)
		if err != nil {
			return err
		}
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s answers %s", address, resp.Status)
		}
		return errors.Join(err, resp.Body.Close())
	}
}

// The parts of a quoted line that a loose comparison takes others for: numbers,
// bars and the spaces that align them.
var (
	numbers = regexp.MustCompile(`(\\\+|-)?[0-9]+(\\\.[0-9]+)?(e-[0-9]+)?`)
	bars    = regexp.MustCompile(`[█▉▊▋▌▍▎▏]+`)
	spaces  = regexp.MustCompile(` +`)
)

// loosely turns a pattern into one that takes any numbers and bars.
func loosely(pattern string) string {
	pattern = numbers.ReplaceAllString(pattern, `[-+]?[0-9.]+(e[-+][0-9]+)?`)
	pattern = bars.ReplaceAllString(pattern, `[█▉▊▋▌▍▎▏]*`)
	return spaces.ReplaceAllString(pattern, ` +`)
}

// compare looks for each line of the block in the output, in order.
func (r *reader) compare(b *block, output string) {
	r.t.Helper()
	lines := strings.Split(output, "\n")
	next := 0
	for i, want := range strings.Split(strings.TrimRight(b.text, "\n"), "\n") {
		text := strings.ReplaceAll(regexp.QuoteMeta(want), "…", ".*")
		if b.is("loose") {
			text = loosely(text)
		}
		pattern := regexp.MustCompile("^" + text + `\s*$`)
		for ; next < len(lines) && !pattern.MatchString(lines[next]); next++ {
		}
		if next == len(lines) {
			r.t.Errorf("%s:%d: no line is %q, in this order, in\n%s", b.document, b.line+1+i, want, output)
			return
		}
		next++
	}
}

// trialEnvironment runs a study's trial, which is handed back once and leaves a
// checkpoint, and returns the names of the program's variables that begin with
// FANTASIA_.
func (r *reader) trialEnvironment() map[string]bool {
	r.t.Helper()
	const study = `
apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: environment}
spec:
  objective: {metric: loss, direction: minimize}
  parameters: [{name: name, type: float, min: 0, max: 1}]
  budget: {maxTrials: 1}
  trial: {command: [sh, environment.sh]}
`
	const script = `
if [ "$FANTASIA_ATTEMPT" = 1 ]; then
  echo '{"fantasia": {"checkpoint": "here"}}'
  exit 75
fi
env > environment.txt
echo '{"fantasia": {"metrics": {"loss": 1}}}'
`
	for name, text := range map[string]string{"environment.yaml": study, "environment.sh": script} {
		if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
	r.run(&block{document: "a trial", text: "fantasia run environment.yaml"})
	content, err := fs.ReadFile(os.DirFS(r.dir), "environment.txt")
	if err != nil {
		r.t.Fatal(err)
	}
	names := map[string]bool{}
	for line := range strings.SplitSeq(string(content), "\n") {
		if name, _, ok := strings.Cut(line, "="); ok && strings.HasPrefix(name, "FANTASIA_") {
			names[name] = true
		}
	}
	return names
}
