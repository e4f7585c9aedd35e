package damage

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia"
	"github.com/fantasia-hpo/fantasia/coordinator/journal"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/app/local"
	"github.com/fantasia-hpo/fantasia/internal/base/wal"
	"github.com/fantasia-hpo/fantasia/study"
)

// programTrials is how many trials the study of a program has.
const programTrials = 12

// program is the study of a Go program.
type program struct {
	space *fantasia.Space
	x     fantasia.Param[float64]
	seen  map[float64]bool // the points that were evaluated
}

func (p *program) open(path string) (*fantasia.Study, error) {
	p.space, p.seen = fantasia.NewSpace(), map[float64]bool{}
	p.x = p.space.Float("x", 0, 1)
	return fantasia.Minimize(p.space, fantasia.Options{
		State: path, Trials: programTrials, Algorithm: fantasia.Algorithm{Name: "random"}, Seed: 3,
	})
}

func (p *program) evaluate(_ context.Context, t *fantasia.Trial) (float64, error) {
	p.seen[p.x.Of(t)] = true
	if p.x.Of(t) > 0.8 {
		return 0, errors.New("it fails here")
	}
	return p.x.Of(t), t.Report(1, p.x.Of(t))
}

// contents returns the state file of a study that has ended, and of one whose program was killed.
func contents(t *testing.T) (ended, killed []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "state")
	var p program
	u, err := p.open(path)
	if err != nil {
		t.Fatal(err)
	}
	err = u.Run(t.Context(), func(ctx context.Context, trial *fantasia.Trial) (float64, error) {
		if trial.Number() == programTrials*3/4 {
			killed, err = os.ReadFile(path)
		}
		value, failed := p.evaluate(ctx, trial)
		return value, errors.Join(failed, err)
	})
	if err = errors.Join(err, u.Close()); err != nil {
		t.Fatal(err)
	}
	if ended, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	return ended, killed
}

// hurt damages a file's content.
func hurt(random *rand.Rand, content []byte) (damaged []byte, h hit) {
	h.group, h.path = "program", "state"
	from := random.IntN(len(content))
	to := min(len(content), from+1+random.IntN(2048))
	h.where = fmt.Sprintf("at byte %d to %d", from, to)
	damaged = slices.Clone(content)
	switch random.IntN(6) {
	case 0, 1:
		h.kind = "flipped byte"
		damaged[from] ^= byte(1 + random.IntN(255))
	case 2:
		h.kind = "cut"
		damaged = damaged[:from]
	case 3:
		h.kind = "zeroed block"
		clear(damaged[from:to])
	case 4:
		h.kind = "block that is there twice"
		damaged = slices.Insert(damaged, to, content[from:to]...)
	case 5:
		h.kind = "block over another"
		copy(damaged[random.IntN(len(damaged)):], content[from:to])
	}
	return damaged, h
}

// soundTrials returns the ended trials of the records of a file that its damaged content still has, each with its last
// record, and the numbers of all ended trials.
func soundTrials(t *testing.T, content, damaged []byte) (sound map[int]record.Trial, ended map[int]bool) {
	t.Helper()
	sound, ended = map[int]record.Trial{}, map[int]bool{}
	for _, p := range wal.Salvage(content, "fantasia journal 1") {
		var e struct{ Trials []record.Trial }
		if err := json.Unmarshal(p.Data, &e); err != nil || !p.Record {
			t.Fatal(err)
		}
		frame := content[p.At : p.At+12+len(p.Data)]
		for _, trial := range e.Trials {
			if !trial.State.Terminal() {
				continue
			}
			if ended[trial.Number] = true; bytes.Contains(damaged, frame) {
				sound[trial.Number] = trial
			}
		}
	}
	return sound, ended
}

// TestDamageOfPrograms damages the state files of Go programs, by single bytes and by blocks. A check names what
// is damaged, a repair keeps each sound record and says which trials are lost, and the program goes on with them. If
// a check finds nothing, nothing was lost.
func TestDamageOfPrograms(t *testing.T) {
	ended, killed := contents(t)
	t.Logf("%d damages with -damage.seed %d", *count, *seed)
	dir := t.TempDir()
	var done table
	for i := *first; i < *first+*count; i++ {
		random := rand.New(rand.NewPCG(*seed, uint64(i)))
		content, name := ended, "ended"
		if i%2 == 1 {
			content, name = killed, "killed"
		}
		damaged, h := hurt(random, content)
		l := damagedProgram{t: t, content: content, damaged: damaged, path: filepath.Join(dir, fmt.Sprint(i))}
		outcome, err := l.try()
		done.add(h, outcome)
		if err != nil {
			t.Errorf("damage %d of seed %d (-damage.first %d) to the %s study, %v: %v", i, *seed, i, name, h, err)
		}
	}
	t.Log("\n" + done.String())
	if *output != "" {
		if err := os.WriteFile(strings.TrimSuffix(*output, ".md")+"-programs.md", []byte(done.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// damagedProgram is a program's state file before and after it was damaged.
type damagedProgram struct {
	t                *testing.T
	content, damaged []byte
	path             string
}

// try checks and repairs the file. The error says what should not have come of that.
func (d *damagedProgram) try() (outcome string, err error) {
	if err := os.WriteFile(d.path, d.damaged, 0o600); err != nil {
		return "wrong", err
	}
	sound, ended := soundTrials(d.t, d.content, d.damaged)
	_, damage := local.CheckState(d.t.Context(), d.path)
	if damage == nil {
		return d.same(sound)
	}
	if !strings.Contains(damage.Error(), d.path) {
		return "unclear", fmt.Errorf("the error names no file: %w", damage)
	}
	into := d.path + ".new"
	r, err := local.Repair(d.t.Context(), d.path, into, "test")
	if errors.Is(err, local.ErrNoState) && len(sound) == 0 {
		return "error", nil
	}
	if err != nil {
		return "wrong", err
	}
	if after, err := os.ReadFile(d.path); err != nil || !bytes.Equal(after, d.damaged) {
		return "wrong", fmt.Errorf("the damaged file was changed: %w", err)
	}
	lost := strings.Join(r.Lost, "\n") + "\n" + damage.Error()
	for number := range ended {
		if _, ok := sound[number]; !ok && !names(lost, number) && !strings.Contains(lost, "the end of the file") {
			return "wrong", fmt.Errorf("trial %d is lost, which is not said: %s", number, lost)
		}
	}
	if r.Table != "" {
		table, err := os.ReadFile(r.Table)
		for number, trial := range sound {
			if !bytes.Contains(table, fmt.Appendf(nil, `"state":"%s","trial":%d`, trial.State, number)) {
				return "wrong", errors.Join(err, fmt.Errorf("the table lacks trial %d:\n%s", number, table))
			}
		}
		return "error", err
	}
	return "error", d.goesOn(into, sound)
}

// names reports whether a text names a trial.
func names(text string, number int) bool {
	return regexp.MustCompile(fmt.Sprintf(`trials?[ ,0-9]* %d\b`, number)).MatchString(text)
}

// same checks a file in which nothing was found: it has what it had, or what it had a moment earlier.
func (d *damagedProgram) same(sound map[int]record.Trial) (string, error) {
	stored, err := journal.Read(d.damaged)
	if err != nil {
		return "wrong", err
	}
	if len(d.damaged) < len(d.content) && bytes.HasPrefix(d.content, d.damaged) {
		return "same", nil // it was cut between two records
	}
	if err := keeps(stored.Trials, sound); err != nil {
		return "wrong", err
	}
	before, err := journal.Read(d.content)
	if err != nil || len(stored.Trials) != len(before.Trials) || stored.Status.Counts != before.Status.Counts {
		return "wrong", fmt.Errorf("nothing was found, but it has %d trials, want %d: %w", len(stored.Trials), len(before.Trials), err)
	}
	return "same", nil
}

// keeps reports a sound record that is not among the trials.
func keeps(trials []record.Trial, sound map[int]record.Trial) error {
	for number, want := range sound {
		if number > len(trials) {
			return fmt.Errorf("trial %d is missing", number)
		}
		got, err1 := json.Marshal(trials[number-1])
		text, err2 := json.Marshal(want)
		if err := errors.Join(err1, err2); err != nil || !bytes.Equal(got, text) {
			return fmt.Errorf("trial %d is %s, want %s: %w", number, got, text, err)
		}
	}
	return nil
}

// goesOn runs the program with a repaired file.
func (d *damagedProgram) goesOn(path string, sound map[int]record.Trial) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	stored, err := journal.Read(content)
	if err != nil {
		return err
	}
	if err := keeps(stored.Trials, sound); err != nil {
		return err
	}
	if _, err := local.CheckState(d.t.Context(), path); err != nil {
		return fmt.Errorf("the repaired file: %w", err)
	}
	var p program
	u, err := p.open(path)
	if err != nil {
		return fmt.Errorf("open the repaired file: %w", err)
	}
	if err := errors.Join(u.Run(d.t.Context(), p.evaluate), u.Close()); err != nil {
		return err
	}
	finished := 0
	if content, err = os.ReadFile(path); err == nil {
		stored, err = journal.Read(content)
	}
	if err != nil {
		return err
	}
	for _, trial := range stored.Trials {
		if trial.State == study.TrialCompleted || trial.State == study.TrialFailed {
			finished++
		}
		if x, ok := trial.Point["x"].(float64); ok && p.seen[x] && sound[trial.Number].Number > 0 {
			return fmt.Errorf("trial %d was sound, and was evaluated again", trial.Number)
		}
	}
	if finished != programTrials {
		return fmt.Errorf("the program went on to %d trials, want %d", finished, programTrials)
	}
	return keeps(stored.Trials, sound)
}
