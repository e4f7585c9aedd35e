package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	library "github.com/fantasia-hpo/fantasia"
	"github.com/fantasia-hpo/fantasia/internal/app/cli"
)

// The commands that read a study read the state file of a Go program, too, while the program has it
// open.
func TestStateOfAGoProgram(t *testing.T) {
	dir := t.TempDir()
	state := filepath.Join(dir, "batches.study")
	space := library.NewSpace()
	x := space.Float("x", 0, 1)
	u, err := library.Minimize(space, library.Options{Name: "batches", State: state, Trials: 6, Algorithm: library.Algorithm{Name: "random"}})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	for n := range 3 {
		trial, err := u.Ask(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		value, failed := 0.25*float64(n+1), error(nil)
		if n == 1 {
			failed = errors.New("no such batch")
		}
		if err := errors.Join(trial.Report(1, x.Of(trial)), u.Tell(trial, value, failed)); err != nil {
			t.Fatal(err)
		}
	}
	page := filepath.Join(dir, "report.html")
	for _, test := range []struct {
		args []string
		want []string
	}{
		{[]string{"study", "list"}, []string{"batches", "RUNNING"}},
		{[]string{"study", "get"}, []string{"batches", "minimize", "0.25"}},
		{[]string{"study", "get", "batches", "-o", "json"}, []string{`"study": "batches"`}},
		{[]string{"trial", "list"}, []string{"COMPLETED", "FAILED"}},
		{[]string{"trial", "get", "2"}, []string{"no such batch"}},
		{[]string{"study", "export", "--format", "csv"}, []string{"0.25", "0.75"}},
		{[]string{"report", "-o", page}, []string{"written"}},
	} {
		code, out := fantasia(t, append(test.args, "--state", state)...)
		for _, want := range test.want {
			if code != cli.ExitOK || !strings.Contains(out, want) {
				t.Errorf("fantasia %s: exit code %d, want 0 and %q in\n%s", strings.Join(test.args, " "), code, want, out)
			}
		}
	}
	if html, err := os.ReadFile(page); err != nil || !bytes.Contains(html, []byte("batches")) {
		t.Errorf("the report: %v", err)
	}
	content, err := os.ReadFile(state)
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)/2] ^= 1
	if err := os.WriteFile(page, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out := fantasia(t, "study", "get", "--state", page); code != cli.ExitError ||
		!strings.Contains(out, page+": the file is damaged") {
		t.Errorf("a damaged file: exit code %d with %s", code, out)
	}
	if code, out := fantasia(t, "trial", "logs", "1", "--state", state); code == cli.ExitOK || !strings.Contains(out, "no logs") {
		t.Errorf("logs: exit code %d with %s", code, out)
	}
}

// A damaged state file is checked, repaired into a new file and exported as far as it can be read. It is never changed.
func TestDamagedStateOfAGoProgram(t *testing.T) {
	dir := t.TempDir()
	state, into := filepath.Join(dir, "batches.study"), filepath.Join(dir, "new.study")
	open := func(path string) *library.Study {
		t.Helper()
		space := library.NewSpace()
		space.Float("x", 0, 1)
		u, err := library.Minimize(space, library.Options{Name: "batches", State: path, Trials: 6, Algorithm: library.Algorithm{Name: "random"}})
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	n := 0
	evaluate := func(context.Context, *library.Trial) (float64, error) { n++; return float64(n) / 8, nil }
	u := open(state)
	if code, out := fantasia(t, "state", "check", state); code != cli.ExitInUse || !strings.Contains(out, "its program must end first") {
		t.Errorf("check of a file that is open: exit code %d with %s", code, out)
	}
	if err := errors.Join(u.Run(t.Context(), evaluate), u.Close()); err != nil {
		t.Fatal(err)
	}
	if code, out := fantasia(t, "state", "check", state); code != cli.ExitOK || !strings.Contains(out, "is sound: 1 study, 6 trials") {
		t.Errorf("check of a sound file: exit code %d with %s", code, out)
	}
	content, err := os.ReadFile(state)
	if err != nil {
		t.Fatal(err)
	}
	content[bytes.Index(content, []byte(`"number":3,"state":"COMPLETED"`))+3] ^= 1
	if err := os.WriteFile(state, content, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args []string
		code int
		want []string
	}{
		{[]string{"state", "check", state}, cli.ExitError, []string{state + " is damaged: ", "lost: how trial 3 went on", "state repair"}},
		{[]string{"study", "get", "--state", state}, cli.ExitError, []string{"the file is damaged", "state repair"}},
		{[]string{"study", "export", "--state", state, "--format", "jsonl"}, cli.ExitError,
			[]string{`"value":0.75`, "only what can be read", "trial 3"}},
		{[]string{"state", "repair", state, "--into", into}, cli.ExitOK, []string{"lost: how trial 3", "saved: all sound records, in " + into}},
		{[]string{"state", "repair", state, "--into", into}, cli.ExitError, []string{"exists", "want a new"}},
		{[]string{"state", "check", into}, cli.ExitOK, []string{"6 trials"}},
		{[]string{"state", "check", filepath.Join(dir, "none")}, cli.ExitUsage, []string{"no study is kept there"}},
	} {
		code, out := fantasia(t, test.args...)
		for _, want := range test.want {
			if code != test.code || !strings.Contains(out, want) {
				t.Errorf("fantasia %s: exit code %d, want %d and %q in\n%s", strings.Join(test.args, " "), code, test.code, want, out)
			}
		}
	}
	if after, err := os.ReadFile(state); err != nil || !bytes.Equal(after, content) {
		t.Errorf("the damaged file was changed: %v", err)
	}
	u = open(into)
	if err := errors.Join(u.Run(t.Context(), evaluate), u.Close()); err != nil || n != 7 {
		t.Errorf("%d evaluations, %v; want trial 3 evaluated again", n, err)
	}
}

// The dashboard of a Go program's study shows what the program has written since it was started.
func TestDashboardOfAGoProgram(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	state := filepath.Join(t.TempDir(), "batches.study")
	space := library.NewSpace()
	space.Float("x", 0, 1)
	u, err := library.Minimize(space, library.Options{Name: "batches", State: state, Trials: 2, Algorithm: library.Algorithm{Name: "random"}})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	output, stdout := io.Pipe()
	var stderr bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Main(ctx, []string{"dashboard", "--state", state, "--listen", "127.0.0.1:0"}, cli.Options{Stdout: stdout, Stderr: &stderr})
		_ = stdout.Close()
	}()
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatal(err, &stderr)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	page := func(path string) string {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSpace(line)+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	shows := func(path string, texts ...string) {
		t.Helper()
		for began, text := time.Now(), ""; ; time.Sleep(20 * time.Millisecond) {
			text = page(path)
			if !slices.ContainsFunc(texts, func(want string) bool { return !strings.Contains(text, want) }) {
				return
			}
			if time.Since(began) > time.Minute {
				t.Fatalf("%s does not show %q, but\n%s", path, texts, text)
			}
		}
	}
	shows("", "batches", "running", "No trial")
	for n := range 2 {
		trial, err := u.Ask(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(trial.Report(1, 7.5), u.Tell(trial, 0.125*float64(n+1), nil)); err != nil {
			t.Fatal(err)
		}
		shows("", fmt.Sprintf("/trials/%d", n+1))
		shows(fmt.Sprintf("/trials/%d", n+1), "completed", fmt.Sprint(0.125*float64(n+1)))
	}
	shows("", "completed", "0.125")
	interrupt()
	if code := <-ended; code != cli.ExitOK {
		t.Errorf("exit code %d, stderr %s", code, &stderr)
	}
}

// What has no dashboard, or an address for others, is refused.
func TestDashboardIsRefused(t *testing.T) {
	dir := t.TempDir()
	begun := filepath.Join(dir, "begun")
	if err := os.WriteFile(begun, []byte("fantasia journal 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"state file of a Go program": {"--state", dir},
		"no study is kept there":     {"--state", begun, "--listen", "127.0.0.1:0"},
		"--listen is":                {"--state", begun, "--listen", "0.0.0.0:0"},
	} {
		if code, out := fantasia(t, append([]string{"dashboard"}, args...)...); code != cli.ExitUsage || !strings.Contains(out, want) {
			t.Errorf("%q: exit code %d, want 2 with %q in\n%s", args, code, want, out)
		}
	}
}

// A file that is something else is refused, and so is one that holds no study yet.
func TestFileThatIsNoState(t *testing.T) {
	dir := t.TempDir()
	for name, test := range map[string]struct {
		content, want string
		code          int
	}{
		"text":  {"name: batches\n", "neither a directory nor the state file of a Go program", cli.ExitUsage},
		"empty": {"", "neither a directory nor the state file of a Go program", cli.ExitUsage},
		"begun": {"fantasia journal 1\n", "no study is kept there", cli.ExitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, []byte(test.content), 0o600); err != nil {
				t.Fatal(err)
			}
			code, out := fantasia(t, "study", "get", "--state", path)
			if code != test.code || !strings.Contains(out, test.want) || !strings.Contains(out, path) {
				t.Errorf("exit code %d, want %d with %q and the file's name in\n%s", code, test.code, test.want, out)
			}
		})
	}
}
