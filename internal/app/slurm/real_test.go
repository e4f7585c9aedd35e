//go:build slurm

package slurm_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
)

const (
	trials   = 60
	patience = 5 * time.Minute
)

// program appends a line when a trial begins and one when it has reported.
const program = `echo "begin $FANTASIA_TRIAL $FANTASIA_ATTEMPT $CUDA_VISIBLE_DEVICES" >> "$1"
sleep 4
echo "{\"fantasia\": {\"metrics\": {\"loss\": $2}}}"
echo "end $FANTASIA_TRIAL $FANTASIA_ATTEMPT $CUDA_VISIBLE_DEVICES" >> "$1"
`

const studyFile = `
apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: real}
spec:
  objective: {metric: loss, direction: minimize}
  parameters: [{name: x, type: float, min: 0, max: 1}]
  algorithm: {name: random}
  budget: {maxTrials: %d}
  parallelism: 4
  trial:
    command: [sh, program.sh, %s, "${x}"]
    retries: {failed: 0, lost: 0, timeout: 0}
`

// command runs a command of Slurm and returns what it prints.
func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// states returns the states of the workers by task.
func states(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for line := range strings.Lines(command(t, "squeue", "--me", "-h", "-r", "-t", "all", "-n", "fantasia-real", "-o", "%F_%K %T")) {
		id, state, _ := strings.Cut(strings.TrimSpace(line), " ")
		found[id] = state
	}
	return found
}

// await waits until one of these workers, or any if there are none, is in a state, and returns it.
func await(t *testing.T, state string, of ...string) (id string) {
	t.Helper()
	testenv.Eventually(t, patience, func(context.Context) error {
		all := states(t)
		for id = range all {
			if all[id] == state && (len(of) == 0 || slices.Contains(of, id)) {
				return nil
			}
		}
		return fmt.Errorf("none of %v is %s: %v", of, state, all)
	})
	return id
}

// running returns the workers that run.
func running(t *testing.T) (ids []string) {
	t.Helper()
	for id, state := range states(t) {
		if state == "RUNNING" {
			ids = append(ids, id)
		}
	}
	return ids
}

// Sixty trials on a real Slurm: one worker is cancelled, the others are preempted and queued again, and later
// ones reach their time limit. No trial is lost, none is evaluated twice, and nothing costs a retry,
// because the study has none.
func TestNothingIsLostInSlurm(t *testing.T) {
	if os.Getenv("SLURM_CONF") == "" {
		t.Fatal("SLURM_CONF is not set: run make test-slurm, which starts a Slurm")
	}
	dir := t.TempDir()
	lines := filepath.Join(dir, "lines")
	for name, text := range map[string]string{"program.sh": program, "study.yaml": fmt.Sprintf(studyFile, trials, lines), "lines": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	state := filepath.Join(dir, "state")
	run := exec.CommandContext(t.Context(), testenv.Build(t, "./cmd/fantasia"), "slurm", filepath.Join(dir, "study.yaml"),
		"--workers", "4", "--gres", "gpu:1", "--time", "1", "--partition", "low", "--drain", "5s", "--poll", "1s",
		"--state", state, "--shared", filepath.Join(dir, "shared"), "--listen", "127.0.0.1:0", "-o", "json")
	var said strings.Builder
	run.Stderr = &said
	type ending struct {
		out []byte
		err error
	}
	ended := make(chan ending, 1)
	go func() {
		out, err := run.Output()
		ended <- ending{out, err}
	}()
	t.Cleanup(func() { _ = exec.CommandContext(context.WithoutCancel(t.Context()), "scancel", "--me").Run() })

	cancelled := await(t, "RUNNING")
	testenv.Eventually(t, patience, func(context.Context) error {
		text, err := os.ReadFile(lines)
		if err == nil && !strings.Contains(string(text), "end") {
			err = fmt.Errorf("no trial has ended: %s", text)
		}
		return err
	})
	command(t, "scancel", cancelled)
	await(t, "CANCELLED", cancelled)

	// A job of the other partition that wants all four GPUs preempts all workers.
	victims := running(t)
	if len(victims) == 0 {
		t.Fatal("no worker runs that could be preempted")
	}
	command(t, "sbatch", "--parsable", "-p", "high", "--gres=gpu:4", "-o", "/dev/null", "--wrap", "sleep 1")
	preempted := await(t, "PENDING", victims...)
	for _, id := range victims { // Slurm holds what it queues again for two minutes
		command(t, "scontrol", "update", "JobId="+id, "StartTime=now")
	}

	e := <-ended
	if e.err != nil {
		t.Fatalf("%v\n%s", e.err, said.String())
	}
	var result struct {
		State  string         `json:"state"`
		Trials map[string]int `json:"trials"`
	}
	if err := json.Unmarshal(e.out, &result); err != nil || result.State != "COMPLETED" || result.Trials["completed"] != trials {
		t.Fatalf("%s (%v)\n%s", e.out, err, said.String())
	}
	for id, state := range states(t) {
		if state == "RUNNING" || state == "PENDING" {
			t.Errorf("worker %s is still %s", id, state)
		}
	}
	arrays := strings.Count(said.String(), "submitted")
	if arrays < 2 {
		t.Errorf("no workers were submitted in place of those that reached their time limit:\n%s", said.String())
	}
	log, err := os.ReadFile(filepath.Join(dir, "shared", "logs", preempted+".log"))
	if err != nil || !strings.Contains(string(log), "DUE TO PREEMPTION") {
		t.Errorf("worker %s was not preempted: %s (%v)", preempted, log, err)
	}
	again := evaluations(t, lines, placed(t, filepath.Join(state, "trials.csv")))
	if again == 0 {
		t.Error("no trial was handed back")
	}
	t.Logf("%d trials, %d arrays of workers, %d evaluations that were handed back", trials, arrays, again)
}

// placed checks that each trial says its element of an array, the node and its one device. It returns the
// number of attempts of each trial.
func placed(t *testing.T, path string) (attempts map[string]string) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil || len(rows) != 1+trials {
		t.Fatalf("%s has %d lines (%v)", path, len(rows), err)
	}
	attempts = map[string]string{}
	count, job, node, devices := slices.Index(rows[0], "attempts"), slices.Index(rows[0], "job"), slices.Index(rows[0], "node"),
		slices.Index(rows[0], "devices")
	if count < 0 || job < 0 || node < 0 || devices < 0 {
		t.Fatalf("the columns are %v", rows[0])
	}
	for _, row := range rows[1:] {
		attempts[row[0]] = row[count]
		if !regexp.MustCompile(`^\d+_\d+$`).MatchString(row[job]) || row[node] == "" || !regexp.MustCompile(`^[0-3]$`).MatchString(row[devices]) {
			t.Errorf("trial %s ran in job %q on node %q with devices %q", row[0], row[job], row[node], row[devices])
		}
	}
	return attempts
}

// evaluations checks what the programs of all trials wrote: the last attempt of each trial, whose result counts, has
// run to its end, no attempt has begun twice, and none while another one of its trial ran. It returns how many
// evaluations were handed back. One of these may have reported: until a program has exited, a worker that is
// told to end hands its trial back.
func evaluations(t *testing.T, path string, attempts map[string]string) (again int) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	type attempt struct{ trial, number string }
	seen := map[attempt][]string{}
	latest := map[string]string{} // attempt of each trial that has begun
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) != 4 || !regexp.MustCompile(`^[0-3]$`).MatchString(words[3]) {
			t.Fatalf("%q: want begin or end, a trial, its attempt and its one device", line)
		}
		a := attempt{words[1], words[2]}
		if words[0] == "begin" {
			latest[a.trial] = a.number
		} else if latest[a.trial] != a.number {
			t.Errorf("attempt %s of trial %s ends after attempt %s has begun", a.number, a.trial, latest[a.trial])
		}
		seen[a] = append(seen[a], words[0])
	}
	for a, lines := range seen {
		counts := attempts[a.trial] == a.number
		if whole := slices.Equal(lines, []string{"begin", "end"}); !whole && (counts || !slices.Equal(lines, []string{"begin"})) {
			t.Errorf("attempt %s of %s of trial %s: %q", a.number, attempts[a.trial], a.trial, lines)
		}
		if !counts {
			again++
		}
	}
	for trial, number := range attempts {
		if seen[attempt{trial, number}] == nil {
			t.Errorf("attempt %s of trial %s, which counts, has not begun", number, trial)
		}
	}
	return again
}
