package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/test/testcluster"
	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
	"github.com/fantasia-hpo/fantasia/study"
)

// epochVariable makes the test's program one that trains epoch by epoch; its value is how long an
// epoch takes, a duration.
const epochVariable = "E2E_EPOCH"

const promotedStudy = `
apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: cluster}
spec:
  objective: {metric: loss, direction: minimize}
  parameters:
    - {name: x, type: float, min: -1, max: 1}
    - {name: y, type: float, min: -1, max: 1}
    - {name: epochs, type: fidelity, min: 1, max: 27}
  algorithm: {name: random, seed: 1}
  budget: {maxTrials: %d}
  parallelism: 8
  trial: {command: [unused], retries: {lost: 10}}
`

// trained is a line of the program's log: where an attempt began, an epoch that it has
// saved, or its end.
type trained struct {
	Kind    string `json:"kind"` // begun, saved or ended
	Trial   int    `json:"trial"`
	Attempt int    `json:"attempt"`
	// Epoch is the last one that is saved; Epochs is how many there are to be.
	Epoch  int `json:"epoch"`
	Epochs int `json:"epochs"`
	// What the program was given.
	Dir        string `json:"dir"`
	Checkpoint string `json:"checkpoint"`
	Seed       string `json:"seed"`
}

// The kinds of lines.
const (
	begun = "begun"
	saved = "saved"
	ended = "ended"
)

// reached is what a configuration's loss is after so many epochs. Their order changes from
// level to level.
func reached(p map[string]float64, epoch int) float64 {
	return p["x"]*p["x"] + p["y"]*p["y"]/float64(epoch)
}

// train is the program: it goes on from the epoch that is saved in its directory of checkpoints, and
// saves and reports each further one. An epoch is logged once it is saved.
func train(path string) (err error) {
	log, err := openLog(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	t, errTask := readTask()
	takes, errTakes := time.ParseDuration(os.Getenv(epochVariable))
	if err := errors.Join(errTask, errTakes); err != nil {
		return err
	}
	state := filepath.Join(os.Getenv("FANTASIA_CHECKPOINT_DIR"), "state")
	line := trained{
		Kind: begun, Trial: t.trial, Attempt: t.attempt, Epochs: int(t.parameters["epochs"]), Dir: os.Getenv("FANTASIA_TRIAL_DIR"),
		Checkpoint: os.Getenv("FANTASIA_CHECKPOINT"), Seed: os.Getenv("FANTASIA_SEED"),
	}
	if text, err := os.ReadFile(state); err == nil {
		if line.Epoch, err = strconv.Atoi(string(text)); err != nil {
			return err
		}
	}
	write := func(kind string) error {
		line.Kind = kind
		return json.NewEncoder(log).Encode(line)
	}
	if err := write(begun); err != nil {
		return err
	}
	for line.Epoch < line.Epochs {
		time.Sleep(takes)
		line.Epoch++
		if err := os.WriteFile(state+".new", []byte(strconv.Itoa(line.Epoch)), 0o600); err != nil {
			return err
		}
		if err := os.Rename(state+".new", state); err != nil {
			return err
		}
		if err := write(saved); err != nil {
			return err
		}
		fmt.Printf(`{"fantasia": {"step": %d, "metrics": {"loss": %s}, "checkpoint": %q}}`+"\n",
			line.Epoch, strconv.FormatFloat(reached(t.parameters, line.Epoch), 'g', -1, 64), reference(line.Epoch))
	}
	// An attempt whose predecessor died after its last epoch has reported nothing yet.
	fmt.Printf(`{"fantasia": {"metrics": {"loss": %s}, "checkpoint": %q}}`+"\n",
		strconv.FormatFloat(reached(t.parameters, line.Epoch), 'g', -1, 64), reference(line.Epoch))
	return write(ended)
}

// reference is what the program reports as its checkpoint.
func reference(epoch int) string { return fmt.Sprintf("epoch %d", epoch) }

// killTrainer kills the worker of a promoted trial that has saved an epoch of its own and has
// another one before it, and starts it again.
func (c *cluster) killTrainer() {
	c.t.Helper()
	var found trained
	testenv.Eventually(c.t, time.Minute, func(context.Context) error {
		all, err := logged[trained](c.log)
		if err != nil {
			return err
		}
		promoted, over := map[[2]int]bool{}, map[[2]int]bool{}
		for _, l := range all {
			a := [2]int{l.Trial, l.Attempt}
			promoted[a] = promoted[a] || l.Kind == begun && l.Epoch > 0
			over[a] = over[a] || l.Kind == ended
		}
		for _, l := range all[max(0, len(all)-4):] { // what was logged just now
			if a := [2]int{l.Trial, l.Attempt}; l.Kind == saved && promoted[a] && !over[a] && l.Epoch < l.Epochs {
				found = l
				return nil
			}
		}
		return errors.New("no promoted trial trains")
	})
	for i, w := range c.workers {
		if strings.HasPrefix(found.Dir, filepath.Join(c.dir, fmt.Sprintf("worker-%d", i))+string(filepath.Separator)) {
			w.Kill()
			w.Restart()
			return
		}
	}
	c.t.Fatalf("the trial's directory %s is of no worker", found.Dir)
}

// TestPromotionSurvivesKills kills leaders, and workers whose promoted trials are in the middle of
// their epochs. Every new trial is the one that the rule wants, each trial is completed by one
// attempt, with the value of its level, and a promoted trial goes on from what is saved: no epoch of
// a configuration is trained again once it is saved, whoever was killed.
func TestPromotionSurvivesKills(t *testing.T) {
	const trials, levels, reduction = 60, 4, 3
	c := startCluster(t, 3, 4, 2, epochVariable+"=150ms")
	c.Create(fmt.Sprintf(promotedStudy, trials))
	for i, ended := range []int{5, 10, 16, 22, 28, 34, 40, 46} {
		if _, over := c.Await("cluster", ended); over {
			t.Fatalf("the study ended before fault %d", i)
		}
		if i%2 == 0 {
			c.KillLeader()
		} else {
			c.killTrainer()
		}
	}
	s, _ := c.Await("cluster", trials)
	if s.Status.State != study.Completed || s.Status.Counts.Completed != trials || s.Status.Counts.Open() != 0 ||
		s.Status.Position != 2*trials {
		t.Errorf("the study is %s (%s) at %d with %+v, want %d completed trials, each told once",
			s.Status.State, s.Status.Reason, s.Status.Position, s.Status.Counts, trials)
	}
	stored, err := c.Ledger.LoadStudy(t.Context(), s.Study.ID)
	if err != nil {
		t.Fatal(err)
	}
	if len(stored.Trials) != trials {
		t.Fatalf("the ledger holds %d trials, want %d", len(stored.Trials), trials)
	}
	if err := testcluster.Promotions(stored.Trials, levels, reduction); err != nil {
		t.Error(err)
	}
	lines, err := logged[trained](c.log)
	if err != nil {
		t.Fatal(err)
	}
	began, first := map[[2]int]trained{}, map[int]int{} // by attempt; by trial, the first one of its configuration
	again := map[[2]int]int{}                           // by configuration and epoch
	for i := range stored.Trials {
		tr := &stored.Trials[i]
		if first[tr.Number] = tr.Number; tr.Predecessor > 0 {
			first[tr.Number] = first[tr.Predecessor]
		}
	}
	for _, l := range lines {
		switch a := [2]int{l.Trial, l.Attempt}; l.Kind {
		case begun:
			if _, twice := began[a]; twice {
				t.Errorf("attempt %d of trial %d was run twice", l.Attempt, l.Trial)
			}
			began[a] = l
		case saved:
			if again[[2]int{first[l.Trial], l.Epoch}]++; again[[2]int{first[l.Trial], l.Epoch}] > 1 {
				t.Errorf("trial %d trained epoch %d of configuration %d again", l.Trial, l.Epoch, first[l.Trial])
			}
		}
	}
	resumed, promoted, best := 0, 0, 0
	for i := range stored.Trials {
		tr := &stored.Trials[i]
		point := map[string]float64{"x": tr.Point["x"].(float64), "y": tr.Point["y"].(float64)}
		epochs := int(tr.Point["epochs"].(int64))
		if want := reached(point, epochs); epochs != []int{1, 3, 9, 27}[tr.Rung-1] || tr.State != study.TrialCompleted ||
			tr.Values.First() != want {
			t.Errorf("trial %d is %s with %v after %d epochs of level %d, want completed with %g", tr.Number, tr.State, tr.Values, epochs, tr.Rung,
				want)
		}
		for _, a := range tr.Attempts {
			if a.Number < len(tr.Attempts) != (a.State == study.AttemptLost) {
				t.Errorf("attempt %d of %d of trial %d is %s, want all but the last one lost", a.Number, len(tr.Attempts), tr.Number, a.State)
			}
		}
		if best == 0 || tr.Rung > stored.Trials[best-1].Rung ||
			tr.Rung == stored.Trials[best-1].Rung && tr.Values.First() < stored.Trials[best-1].Values.First() {
			best = tr.Number
		}
		if tr.Predecessor == 0 {
			continue
		}
		promoted++
		from := &stored.Trials[tr.Predecessor-1]
		if from.Point["x"] != tr.Point["x"] || from.Point["y"] != tr.Point["y"] {
			t.Errorf("trial %d at %v continues trial %d at %v", tr.Number, tr.Point, from.Number, from.Point)
		}
		before := int(from.Point["epochs"].(int64))
		for _, a := range tr.Attempts {
			l, ok := began[[2]int{tr.Number, a.Number}]
			if !ok {
				continue // it was lost before its program began
			}
			if l.Epoch < before || a.Number == 1 && l.Epoch != before {
				t.Errorf("attempt %d of trial %d began after epoch %d; trial %d had saved epoch %d", a.Number, tr.Number, l.Epoch, from.Number, before)
			}
			if l.Checkpoint != reference(before) {
				t.Errorf("attempt %d of trial %d was given the checkpoint %q, and trial %d had reported %q", a.Number, tr.Number, l.Checkpoint,
					from.Number, reference(before))
			}
			if f, ok := began[[2]int{first[tr.Number], 1}]; ok && l.Seed != f.Seed {
				t.Errorf("trial %d has the seed %s, and trial %d, which it continues, %s", tr.Number, l.Seed, first[tr.Number], f.Seed)
			}
			if a.Number > 1 && l.Epoch > before {
				resumed++
			}
		}
	}
	if s.Status.Best != best {
		t.Errorf("the best trial is %d, want %d: the best one of the highest level", s.Status.Best, best)
	}
	if promoted < trials/5 || resumed == 0 {
		t.Errorf("%d trials were promoted, and %d attempts of them went on from epochs of their own; want at least %d and 1", promoted, resumed,
			trials/5)
	}
	t.Logf("%d of %d trials were promoted; %d attempts of promoted trials went on where a killed one had been", promoted, trials, resumed)
}
