// Package damage damages the files of fantasia run, one at a time, and runs the same command again.
// It flips bits, cuts files and zeroes pages: of etcd's database and write-ahead log, of NATS's files,
// of the results, and of the other small files. Half of the states are of a study of 50 trials that
// has ended, the other half of one that was killed after 40. Either all 50 trials are completed, and
// those that had been completed have the same points and values; or the command fails within 5 s,
// with an error that names the file.
//
// It does not reach snapshots of etcd, which are made only after 2,000 commits. A log that was cut
// exactly at its last records, before the database had them, looks like a program that was killed a
// moment earlier.
package damage

import (
	"bytes"
	"context"
	"encoding/csv"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
	"github.com/fantasia-hpo/fantasia/internal/test/testseed"
)

var (
	count  = flag.Int("damage.count", 20, "how many damages")
	first  = flag.Int("damage.first", 0, "the number of the first damage, to repeat one")
	seed   = flag.Uint64("damage.seed", testseed.Get(), "the seed of the damages")
	output = flag.String("damage.report", "", "the file for the table as Markdown")
)

// limit is how long a command may take to say that a file is damaged. Continuing a study may take longer.
const limit = 5 * time.Second

const (
	trials    = 50
	studyFile = `apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: q}
spec:
  objective: {metric: loss, direction: minimize}
  parameters: [{name: x, type: float, min: -1, max: 1}]
  algorithm: {name: sobol}
  budget: {maxTrials: 50}
  parallelism: 4
  trial: {command: [sh, -c, 'echo x >>"$DONE"; sleep 0.02; echo "{\"fantasia\": {\"metrics\": {\"loss\": ${x}}}}"']}
`
)

// files are the contents of a state directory, by path.
type files map[string][]byte

// TestDamage opens states of which one file is damaged. Either the result is the same, or the command
// names a file that is damaged; it never crashes, waits, or shows another result.
func TestDamage(t *testing.T) {
	l := newLab(t)
	ended, killed := l.ended(), l.killed()
	t.Logf("%d damages with -damage.seed %d", *count, *seed)
	var done table
	for i := *first; i < *first+*count; i++ {
		random := rand.New(rand.NewPCG(*seed, uint64(i)))
		s := ended
		if i%2 == 1 {
			s = killed
		}
		damaged := maps.Clone(s.files)
		d := l.damage(random, damaged)
		outcome, problem := l.open(s, damaged)
		done.add(d, outcome)
		if problem != "" {
			t.Errorf("damage %d of seed %d (-damage.first %d) to the %s study, %v: %s", i, *seed, i, s.name, d, problem)
		}
	}
	t.Log("\n" + done.String())
	if *output != "" {
		if err := os.WriteFile(*output, []byte(done.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// lab is where states are made and opened.
type lab struct {
	t       *testing.T
	program string
	dir     string
}

func newLab(t *testing.T) *lab {
	l := &lab{t: t, program: testenv.Build(t, "github.com/fantasia-hpo/fantasia/cmd/fantasia"), dir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(l.dir, "q.yaml"), []byte(studyFile), 0o600); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *lab) state() string { return filepath.Join(l.dir, "state") }

// command returns a command that runs the study.
func (l *lab) command(ctx context.Context) *exec.Cmd {
	cmd := exec.CommandContext(ctx, l.program, "run", "q.yaml", "--state", l.state())
	cmd.Dir, cmd.Env = l.dir, append(os.Environ(), "DONE="+filepath.Join(l.dir, "done"))
	return cmd
}

// sample is a state and what it shows.
type sample struct {
	name  string
	files files
	// rows are the rows of trials.csv that any continuation must have, by the trial's number.
	rows map[string]string
}

// ended makes the state of a study that has ended.
func (l *lab) ended() sample {
	if out, err := l.command(l.t.Context()).CombinedOutput(); err != nil {
		l.t.Fatalf("%v\n%s", err, out)
	}
	return sample{"ended", l.read(), l.rows()}
}

// killed makes the state of a study whose process was killed.
func (l *lab) killed() sample {
	l.clean()
	cmd := l.command(l.t.Context())
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	for l.t.Context().Err() == nil {
		text, _ := os.ReadFile(filepath.Join(l.dir, "done")) // not there at first
		if bytes.Count(text, []byte("\n")) >= trials*4/5 {
			break
		}
		time.Sleep(time.Millisecond) // a shell counts, and tells nobody
	}
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		l.t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	s := sample{"killed", l.read(), nil}
	// What an undamaged state tells before it goes on.
	list := exec.CommandContext(l.t.Context(), l.program, "study", "export", "--state", l.state(), "--format", "csv")
	out, err := list.Output()
	if err != nil {
		l.t.Fatalf("%v: %s", err, out)
	}
	s.rows = completed(l.t, out)
	if len(s.rows) < trials/2 {
		l.t.Fatalf("%d trials had completed, want at least %d", len(s.rows), trials/2)
	}
	return s
}

func (l *lab) clean() {
	for _, name := range []string{"state", "done"} {
		if err := os.RemoveAll(filepath.Join(l.dir, name)); err != nil {
			l.t.Fatal(err)
		}
	}
}

// read reads the state's files.
func (l *lab) read() files {
	all := files{}
	err := filepath.WalkDir(l.state(), func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		name, _ := filepath.Rel(l.state(), path) // never fails below it
		all[name], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return all
}

// put writes a state; zeros become holes.
func (l *lab) put(all files) {
	l.clean()
	const block = 4096
	zeros := make([]byte, block)
	for name, content := range all {
		path := filepath.Join(l.state(), name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			l.t.Fatal(err)
		}
		f, err := os.Create(path)
		if err != nil {
			l.t.Fatal(err)
		}
		at := int64(0)
		for part := range slices.Chunk(content, block) {
			if !bytes.Equal(part, zeros[:len(part)]) {
				_, err = f.WriteAt(part, at)
			}
			if err != nil {
				l.t.Fatal(err)
			}
			at += int64(len(part))
		}
		if err := f.Truncate(at); err != nil {
			l.t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			l.t.Fatal(err)
		}
	}
}

// rows reads the completed trials in the results.
func (l *lab) rows() map[string]string {
	text, err := os.ReadFile(filepath.Join(l.state(), "trials.csv"))
	if err != nil {
		l.t.Fatal(err)
	}
	return completed(l.t, text)
}

// completed returns the number, the parameter and the value of the completed trials in a CSV file.
func completed(t *testing.T, text []byte) map[string]string {
	t.Helper()
	lines, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil || len(lines) == 0 {
		t.Fatal(lines, err)
	}
	column := func(name string) int { return slices.Index(lines[0], name) }
	number, state, x, loss := column("trial"), column("state"), column("parameter:x"), column("value")
	if min(number, state, x, loss) < 0 {
		t.Fatalf("trials.csv has the columns %q", lines[0])
	}
	rows := map[string]string{}
	for _, line := range lines[1:] {
		if line[state] == "COMPLETED" {
			rows[line[number]] = line[x] + " " + line[loss]
		}
	}
	return rows
}

// open continues a damaged study, and says what came of it, and what should not have.
func (l *lab) open(s sample, damaged files) (outcome, problem string) {
	l.put(damaged)
	ctx, cancel := context.WithTimeout(l.t.Context(), 3*time.Minute) // an attempt without a claim is published again after one
	defer cancel()
	cmd := l.command(ctx)
	var shown bytes.Buffer
	cmd.Stdout, cmd.Stderr = &shown, &shown
	began := time.Now()
	err := cmd.Run()
	took, text := time.Since(began), shown.String()
	switch {
	case strings.Contains(text, "goroutine ") || strings.Contains(text, "panic"):
		return "crash", text
	case err == nil:
		return l.compare(s)
	case took > limit:
		return "slow", fmt.Sprintf("it took %v to fail: %s", took, text)
	case !strings.Contains(text, l.state()+"/etcd/") && !strings.Contains(text, l.state()+"/nats") &&
		!strings.Contains(text, l.state()+"/worker"):
		return "unclear", "the error names no file: " + text
	}
	return "error", ""
}

// compare tells whether the results are the same as before the damage.
func (l *lab) compare(s sample) (outcome, problem string) {
	got := l.rows()
	if len(got) != trials {
		return "wrong", fmt.Sprintf("%d trials are completed, want %d", len(got), trials)
	}
	for number, want := range s.rows {
		if got[number] != want {
			return "wrong", fmt.Sprintf("trial %s is %q, want %q", number, got[number], want)
		}
	}
	return "same", ""
}
