package migrate

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/jobshape"
)

// The program of a File collector stays as it is: its command is inside of a script that prints the file.
func TestKatibFileCollector(t *testing.T) {
	r, s := imported(t, source(t, "file.yaml"))
	want := []string{"sh", "-c", tailScript, "/katib/mnist.log", "sh", "-c", `echo "$0" "$@"`, "--log-path=/katib/mnist.log", "--lr=${lr}",
		"--namespace=kubeflow"}
	if diff := cmp.Diff(want, s.Spec.Trial.Command); diff != "" {
		t.Errorf("command (-want +got):\n%s", diff)
	}
	for _, piece := range []string{"- /katib/mnist.log", "--lr=${lr}", "args: []"} {
		if !strings.Contains(string(r.Template), piece) {
			t.Errorf("the template lacks %q:\n%s", piece, r.Template)
		}
	}
	notes := strings.Join(r.Notes, "\n")
	for _, piece := range []string{"prints the file /katib/mnist.log", "metadata.namespace kubeflow", "restartPolicy OnFailure stays"} {
		if !strings.Contains(notes, piece) {
			t.Errorf("the notes lack %q:\n%s", piece, notes)
		}
	}
}

// In a study's own Job the program runs once, and the study repeats failed trials as the Job would have.
func TestKatibRestartsBecomeRetries(t *testing.T) {
	r, s := importedWith(t, source(t, "file.yaml"), KatibOptions{Job: true})
	if err := jobshape.Check(s.Spec.Trial.Job); err != nil {
		t.Error(err)
	}
	if failed := s.Spec.Trial.Retries.Failed; failed == nil || *failed != 3 {
		t.Errorf("retries: %+v, want 3 after failures", s.Spec.Trial.Retries)
	}
	notes := strings.Join(r.Notes, "\n")
	for _, piece := range []string{"restartPolicy OnFailure became Never", "tried 3 more times by spec.trial.retries"} {
		if !strings.Contains(notes, piece) {
			t.Errorf("the notes lack %q:\n%s", piece, notes)
		}
	}
}

// tailed runs a program by the script, as a shell that the tests' machine has.
func tailed(t *testing.T, program string) (cmd *exec.Cmd, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "not yet", "metrics.log")
	return exec.CommandContext(t.Context(), "sh", "-c", tailScript, file, "sh", "-c", program, file), file
}

// The script prints each line of the file once, also a last one without a newline, and ends as the program does.
func TestTailScript(t *testing.T) {
	cmd, file := tailed(t, `echo out; echo loss=3 >> "$0"; echo loss=2 >> "$0"; sleep 1.5; printf 'loss=1' >> "$0"; exit 7`)
	out, err := cmd.Output()
	if code := cmd.ProcessState.ExitCode(); code != 7 {
		t.Errorf("exit code %d (%v), want the program's, 7", code, err)
	}
	got := strings.Fields(string(out))
	if diff := cmp.Diff([]string{"out", "loss=3", "loss=2", "loss=1"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := os.Stat(file + ".ended"); !os.IsNotExist(err) {
		t.Errorf("a file is left behind: %v", err)
	}
}

// A program that ends without its file, and one whose file an earlier trial has left.
func TestTailScriptWithoutFile(t *testing.T) {
	cmd, file := tailed(t, `test ! -e "$0"`)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("loss=9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%s (%v), want nothing of the earlier trial", out, err)
	}
}

// A trial that is stopped: the program gets SIGTERM, and what it then writes is printed.
func TestTailScriptPassesOnSIGTERM(t *testing.T) {
	cmd, file := tailed(t, `trap 'echo saved=1 >> "$0"; exit 3' TERM; : > "$0.begun"; while :; do sleep 0.1; done`)
	var out strings.Builder
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		if _, err := os.Stat(file + ".begun"); err == nil {
			break
		}
		if ctx.Err() != nil {
			t.Fatal("the program does not begin")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 3 || strings.TrimSpace(out.String()) != "saved=1" {
		t.Errorf("exit code %d, %q (%v); want 3 and what the program wrote at last", code, out.String(), err)
	}
}

// Hyperband's settings become those of asha (Li et al., JMLR 2018, table 1: R=9 and η=3 make brackets 2, 1 and 0).
func TestKatibHyperband(t *testing.T) {
	r, s := imported(t, source(t, "hyperband.yaml"))
	want := &study.EarlyStopping{Name: "asha", Metric: "accuracy", Settings: map[string]any{
		"reduction": int64(3), "brackets": int64(3), "maxSteps": int64(9), "minCompleted": int64(0), "minProgress": int64(0),
	}}
	if diff := cmp.Diff(want, s.Spec.EarlyStopping); diff != "" || s.Spec.Algorithm.Name != "random" {
		t.Errorf("%s with (-want +got):\n%s", s.Spec.Algorithm.Name, diff)
	}
	if p := s.Spec.Parameters[1]; p.Type != study.Fixed || p.Value != 9.0 {
		t.Errorf("the resource is %+v, want all of it, 9", p)
	}
	if notes := strings.Join(r.Notes, "\n"); !strings.Contains(notes, "num-epochs=9") || !strings.Contains(notes, "one report for each step") {
		t.Errorf("notes:\n%s", notes)
	}
	r, s = imported(t, strings.Replace(source(t, "hyperband.yaml"), `r_l, value: "9"`, `r_l, value: "9.5"`, 1))
	if notes := strings.Join(r.Notes, "\n"); s.Spec.EarlyStopping != nil || !strings.Contains(notes, `r_l is "9.5"`) {
		t.Errorf("a resource that is not whole: %+v\n%s", s.Spec.EarlyStopping, notes)
	}
}
