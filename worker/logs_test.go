package worker

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/internal/test/membus"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

// askLog asks the worker for a part of a log until it answers, which it does once it
// listens.
func (r *rig) askLog(parts <-chan messaging.LogPart, id messaging.AttemptID, request messaging.LogRequest) messaging.LogPart {
	r.t.Helper()
	request.ID = rand.Text()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		err := r.leader.Control(r.t.Context(), &messaging.Control{Kind: messaging.ControlLogs, Worker: testWorker, AttemptID: id, Logs: &request})
		if err != nil {
			r.t.Fatal(err)
		}
		again := time.After(time.Second)
		for waiting := true; waiting; {
			select {
			case p := <-parts:
				if p.Request == request.ID {
					return p
				}
			case <-again:
				waiting = false
			}
		}
	}
	r.t.Fatal("the worker does not answer")
	return messaging.LogPart{}
}

// shell is an assignment of a program in the shell.
func shell(trial int, mode study.Mode, script string) *messaging.Assignment {
	a := assigned(trial)
	a.Run = study.TrialTemplate{Command: []string{"/bin/sh", "-c", script}, Mode: mode}
	return a
}

// The log of a trial is sent while it runs and after its end, and nobody else's.
func TestLogsAreSent(t *testing.T) {
	release := filepath.Join(t.TempDir(), "release")
	r := newRig(t, nil, membus.Options{})
	r.options.AllowStudyCommands = true
	parts, err := r.leader.Logs(t.Context(), testWorker)
	if err != nil {
		t.Fatal(err)
	}
	leave := r.start()
	defer leave()
	a := shell(1, study.ModeProcess, fmt.Sprintf(`echo one; echo two; echo oops >&2; while [ ! -e %s ]; do sleep 0.01; done; echo three`,
		release))
	r.offer(a)
	var p messaging.LogPart
	for p.Size < int64(len("one\ntwo\n")) {
		p = r.askLog(parts, a.AttemptID, messaging.LogRequest{Stream: messaging.LogStdout, Lines: 1})
	}
	want := messaging.LogPart{
		Version: messaging.SchemaVersion, AttemptID: a.AttemptID, Worker: testWorker, Request: p.Request, Stream: messaging.LogStdout,
		Offset: 4, Size: 8, Data: []byte("two\n"), Running: true,
	}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("while it runs (-want +got):\n%s", diff)
	}
	if err := os.WriteFile(release, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.untilTold(1)
	for p.Running {
		p = r.askLog(parts, a.AttemptID, messaging.LogRequest{Stream: messaging.LogStdout, Offset: 8})
	}
	if string(p.Data) != "three\n" || p.Offset != 8 || p.Size != 14 {
		t.Errorf("after its end: %+v", p)
	}
	if p = r.askLog(parts, a.AttemptID, messaging.LogRequest{Stream: messaging.LogStderr, Lines: 9}); string(p.Data) != "oops\n" {
		t.Errorf("stderr: %+v", p)
	}
	other := a.AttemptID
	other.Trial = 2
	if p = r.askLog(parts, other, messaging.LogRequest{Stream: messaging.LogStdout}); !strings.Contains(p.Missing,
		"does not exist on worker "+testWorker) {
		t.Errorf("a trial that the worker has not run: %+v", p)
	}
}

// Each trial of a long-lived program has the lines that were written while it ran.
func TestLogsOfAStream(t *testing.T) {
	r := newRig(t, nil, membus.Options{})
	r.options.AllowStudyCommands = true
	parts, err := r.leader.Logs(t.Context(), testWorker)
	if err != nil {
		t.Fatal(err)
	}
	leave := r.start()
	defer leave()
	const script = `n=0; while read -r line; do n=$((n+1)); echo "line $n"; echo "{\"fantasia\": {\"trial\": $n, \"metrics\": {\"error\": $n}, \"done\": true}}"; done`
	for n := 1; n <= 2; n++ {
		a := shell(n, study.ModeStream, script)
		r.offer(a)
		r.untilTold(n)
		p := messaging.LogPart{Running: true}
		for p.Running {
			p = r.askLog(parts, a.AttemptID, messaging.LogRequest{Stream: messaging.LogStdout, Lines: 100})
		}
		first, _, _ := strings.Cut(string(p.Data), "\n")
		if want := fmt.Sprintf("line %d", n); first != want || strings.Count(string(p.Data), "\n") != 2 {
			t.Errorf("trial %d has the log %q, want two lines, the first %q", n, p.Data, want)
		}
	}
}

// A worker that keeps no logs says why.
func TestNoLogs(t *testing.T) {
	var c calls
	r := newRig(t, c.square, membus.Options{})
	r.options.NoLogs = "the training code keeps them"
	parts, err := r.leader.Logs(t.Context(), testWorker)
	if err != nil {
		t.Fatal(err)
	}
	leave := r.start()
	defer leave()
	r.offer(assigned(1))
	r.untilTold(1)
	if p := r.askLog(parts, assigned(1).AttemptID, messaging.LogRequest{Stream: messaging.LogStdout}); p.Missing != r.options.NoLogs {
		t.Errorf("the answer is %+v", p)
	}
}
