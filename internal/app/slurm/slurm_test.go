package slurm

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestScript(t *testing.T) {
	j := Job{
		Study: "digits", Program: "/opt/my tools/fantasia", Shared: "/home/me/.fantasia/digits/slurm", Slots: 4, GPUs: "auto",
		Time: "4:00:00", Partition: "gpu", Gres: "gpu:4", CPUs: 8, Memory: "16G", Options: []string{"--account=vision"}, Drain: 25 * time.Second,
	}
	got, err := j.Script(40)
	if err != nil {
		t.Fatal(err)
	}
	// The options are those of sbatch(1).
	want := `#!/bin/bash
#SBATCH --array=0-39
#SBATCH --job-name=fantasia-digits
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --time=4:00:00
#SBATCH --partition=gpu
#SBATCH --gres=gpu:4
#SBATCH --cpus-per-task=8
#SBATCH --mem=16G
#SBATCH --signal=B:TERM@30
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=/home/me/.fantasia/digits/slurm/logs/%A_%a.log
#SBATCH --account=vision
# The shell becomes the worker, so that Slurm's signals reach it.
exec '/opt/my tools/fantasia' slurm worker --shared /home/me/.fantasia/digits/slurm --slots 4 --drain 25s --gpus auto
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, option := range []string{"--comment=two words", "--account=a\n#SBATCH --uid=0"} {
		j.Options = []string{option}
		if _, err := j.Script(1); err == nil {
			t.Errorf("%q was written into a script", option)
		}
	}
}

func TestParseTime(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "4h": "4:00:00", "90m": "1:30:00", "100s": "0:02:00", "2-00:00:00": "2-00:00:00", "30": "30", "12:30": "12:30", "36h": "36:00:00",
	} {
		if got, err := ParseTime(text, 30*time.Second); err != nil || got != want {
			t.Errorf("%q: %q (%v), want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"1m", "tomorrow", "4 h", "-1h", "1:2:3:4"} {
		if got, err := ParseTime(text, 30*time.Second); err == nil {
			t.Errorf("%q was read as %q", text, got)
		}
	}
}

func TestTally(t *testing.T) {
	tasks := []task{
		{ID: "7_0", State: "RUNNING"}, {ID: "7_1", State: "PENDING"}, {ID: "7_2", State: "CANCELLED"}, {ID: "7_3", State: "CANCELLED"},
		{ID: "7_4", State: "COMPLETED"}, {ID: "7_5", State: "FAILED"}, {ID: "7_6", State: "TIMEOUT"}, {ID: "7_10", State: "PENDING"},
		{ID: "7_8", State: "PREEMPTED"}, {ID: "11_0", State: "CONFIGURING"}, {ID: "7_9", State: "RUNNING"}, {ID: "7_7", State: "COMPLETING"},
	}
	c := tally(tasks, map[string]bool{"7_3": true})
	if len(c.waiting) != 3 || len(c.active) != 2 || c.cancelled != 1 || len(c.broken) != 1 || c.broken[0].ID != "7_5" {
		t.Errorf("%+v", c)
	}
	idle := func(t task) bool { return t.ID == "7_9" }
	for n, want := range [][]string{{}, {"11_0"}, {"11_0", "7_10"}, {"11_0", "7_10", "7_1"}, {"11_0", "7_10", "7_1", "7_9"},
		{"11_0", "7_10", "7_1", "7_9"}} {
		if got := c.surplus(n, idle); !slices.Equal(got, want) {
			t.Errorf("the first %d to go are %v, want %v", n, got, want)
		}
	}
}

func TestTaskID(t *testing.T) {
	environ := map[string]string{}
	getenv := func(name string) string { return environ[name] }
	if id, err := taskID(getenv); err == nil {
		t.Errorf("outside of Slurm: %s", id)
	}
	environ["SLURM_JOB_ID"] = "4713"
	if id, err := taskID(getenv); err != nil || id != "4713" {
		t.Errorf("of a job: %s (%v)", id, err)
	}
	environ["SLURM_ARRAY_JOB_ID"], environ["SLURM_ARRAY_TASK_ID"] = "4711", "2"
	if id, err := taskID(getenv); err != nil || id != "4711_2" || workerName("gpu", id) != "gpu.slurm-4711_2" {
		t.Errorf("of an element of an array: %s (%v), the worker %s", id, err, workerName("gpu", id))
	}
}

// A worker whose run has not told where it is, or in another directory, says which directory it looked at.
func TestWorkerWithoutRun(t *testing.T) {
	shared := t.TempDir()
	err := Worker(t.Context(), shared, nil, func(string) string { return "1" })
	if err == nil || !strings.Contains(err.Error(), filepath.Join(shared, recordFile)) {
		t.Error(err)
	}
}

// Where there is no Slurm, the error says what is missing.
func TestWithoutSlurm(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := queue{&Job{Study: "s", Shared: "/tmp"}}.submit(t.Context(), 1)
	if err == nil || !strings.Contains(err.Error(), "sbatch is not on this machine") {
		t.Error(err)
	}
}

func TestAddress(t *testing.T) {
	own, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ listen, last, want string }{
		{"", "", own + ":0"},
		{"", "nats://login1:4222", own + ":4222"}, // the workers know the port
		{"login2:0", "nats://login1:4222", "login2:0"},
		{"10.0.0.1:4333", "", "10.0.0.1:4333"},
		{":4333", "", own + ":4333"},
	} {
		host, port, err := address(test.listen, test.last)
		if got := net.JoinHostPort(host, port); err != nil || got != test.want {
			t.Errorf("--listen %q after %q: %s (%v), want %s", test.listen, test.last, got, err, test.want)
		}
	}
	if _, _, err := address("login1", ""); err == nil || !strings.Contains(err.Error(), "HOST:PORT") {
		t.Errorf("an address without a port: %v", err)
	}
}

func TestStateOnNFSIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "yet")
	if err := CheckState(dir); err != nil {
		t.Errorf("a local directory: %v", err)
	}
	err := checkState(dir, func(string) (string, error) { return "NFS", nil })
	if err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "local disk") {
		t.Errorf("a directory on NFS: %v", err)
	}
}

// The shared directory keeps its key, so that workers of an interrupted run can still connect.
func TestSharedDirectory(t *testing.T) {
	shared := filepath.Join(t.TempDir(), "shared")
	first, err := makeShared(shared)
	if err != nil {
		t.Fatal(err)
	}
	again, err := makeShared(shared)
	if err != nil || again != first {
		t.Errorf("the key became %s (%v), was %s", again, err, first)
	}
	info, err := os.Stat(filepath.Join(shared, seedFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file: %v (%v)", info, err)
	}
	want := record{NATS: "nats://login1:4222", Pool: "gpu", Jobs: []string{"4", "7"}}
	if err := want.write(shared); err != nil {
		t.Fatal(err)
	}
	got, err := readRecord(shared)
	if err != nil || got.NATS != want.NATS || got.Pool != want.Pool || !slices.Equal(got.Jobs, want.Jobs) {
		t.Errorf("read %+v (%v), want %+v", got, err, want)
	}
}
