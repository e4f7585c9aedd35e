package main

import (
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// taskset writes a task of 80 trainings of 24 epochs: the loss falls from a guess's to a level that
// the learning rate decides, and every ninth training diverges in the middle.
func taskset(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	file, err := os.Create(filepath.Join(folder, "small.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	zip := gzip.NewWriter(file)
	for n := range 80 {
		rate := math.Pow(10, -4+4*float64(n)/79)
		fmt.Fprintf(zip, `{"hp":{"learning_rate":%g,"beta1":0.%d,"beta2":0.99%d,"epsilon":%de-8,"l1":%de-6,"l2":%de-6,`+
			`"linear_decay":%de-6,"exponential_decay":%de-6},"valid":[0.7`, rate, 80+n%7, n%5, 1+n%3, 1+n%4, 1+n%5, 1+n%6, 1+n%8)
		level := 0.3 + 0.1*math.Pow(math.Log10(rate)+2, 2)
		for epoch := 1; epoch <= 24; epoch++ {
			if n%9 == 0 && epoch > 12 {
				_, _ = io.WriteString(zip, ",null")
				continue
			}
			fmt.Fprintf(zip, ",%g", level+(0.69-min(level, 0.69))/float64(epoch))
		}
		_, _ = io.WriteString(zip, "]}\n")
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(folder, "small.jsonl.gz")
}

// A program's first line has its parameters and the loss of a guess. Of folds only the last mean is a value.
func TestReadProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "folds.jsonl.gz")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	zip := gzip.NewWriter(file)
	_, _ = io.WriteString(zip, `{"guess":0.9,"final":true,"parameters":[{"name":"C","low":-3,"high":3},{"name":"coef0","low":0,"high":4}]}
{"hp":{"C":-2.5,"coef0":1},"seconds":0.25,"valid":[0,0.2,0.3]}
{"hp":{"C":1,"coef0":3},"seconds":0.5,"valid":[0.1,null,0.2]}
{"hp":{"C":2,"coef0":3},"seconds":0.5,"valid":[0.1,0.05,null]}
`)
	if err := errors.Join(zip.Close(), file.Close()); err != nil {
		t.Fatal(err)
	}
	p, err := readTask(path)
	if err != nil {
		t.Fatal(err)
	}
	if p.name != "folds" || p.epochs != 3 || p.guess != 0.9 || p.best != 0.2 || len(p.trainings) != 3 || len(p.parameters) != 2 {
		t.Errorf("read %+v", p)
	}
	if q := p.parameters[0]; q.Name != "C" || *q.Min != -3 || *q.Max != 3 {
		t.Errorf("the first parameter is %+v", q)
	}
	if first := p.trainings[0]; first.point["C"] != -2.5 || first.pace != 0.25 || !math.IsInf(first.leastOf(first.losses[:2]), 1) {
		t.Errorf("the first training is %+v", first)
	}
}

func TestReadTask(t *testing.T) {
	p, err := readTask(taskset(t))
	if err != nil {
		t.Fatal(err)
	}
	if p.name != "small" || p.epochs != 24 || len(p.trainings) != 80 || !math.IsNaN(p.trainings[9].losses[12]) {
		t.Errorf("the task %s has %d trainings of %d epochs", p.name, len(p.trainings), p.epochs)
	}
	if rate := p.trainings[79].point["learning_rate"]; rate != 0.0 {
		t.Errorf("the logarithm of the last learning rate is %v, want 0", rate)
	}
	if best := p.regret(p.best); best != 0 || p.regret(math.Ln2) != 1 || p.regret(5) != 1 {
		t.Errorf("the best loss has the regret %v, a guess %v", best, p.regret(math.Ln2))
	}
}

// Every tuner spends what is compared, no more, gets better as it does, and repeats itself.
func TestTunersPlay(t *testing.T) {
	p, err := readTask(taskset(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, of := range tuners(4) {
		t.Run(name, func(t *testing.T) {
			first, err := run(t.Context(), p, 3, 4, []int{1, 3}, of)
			if err != nil {
				t.Fatal(err)
			}
			if len(first.Regret) != 2 || !slices.IsSortedFunc(first.Regret, func(a, b float64) int { return cmp.Compare(b, a) }) {
				t.Errorf("the regrets are %v", first.Regret)
			}
			again, err := run(t.Context(), p, 3, 4, []int{1, 3}, of)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(first.Regret, again.Regret) || first.Trials != again.Trials || first.Seconds != again.Seconds {
				t.Errorf("the same run gave %v and %v", first, again)
			}
		})
	}
}

// A trial that cannot go on later is never trained again, one that can is.
func TestOnlyThawingTrialsGoOnLater(t *testing.T) {
	p, err := readTask(taskset(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, thaws := range []bool{false, true} {
		w, err := newWorld(p, 1, []int{4})
		if err != nil {
			t.Fatal(err)
		}
		watched := &watching{modelled: newModelled(w, thaws, true), left: map[*trial]bool{}}
		if _, err := w.play(t.Context(), 4, watched); err != nil {
			t.Fatal(err)
		}
		if watched.thawed > 0 != thaws {
			t.Errorf("thaws %v: %d trials went on after others", thaws, watched.thawed)
		}
	}
}

// watching counts the trials that go on after their worker had done something else.
type watching struct {
	*modelled
	left   map[*trial]bool
	thawed int
}

func (w *watching) next(ctx context.Context, done *trial) (*trial, int, error) {
	t, until, err := w.modelled.next(ctx, done)
	if t != nil && w.left[t] {
		w.thawed++
		delete(w.left, t)
	}
	if done != nil && done != t {
		w.left[done] = true
	}
	return t, until, err
}

// Noise changes what is reported and not what a run is worth; slower curves end where they did.
func TestHarderTasks(t *testing.T) {
	for change := range harder {
		plain, err := readTask(taskset(t))
		if err != nil {
			t.Fatal(err)
		}
		p, err := readTask(taskset(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := harden(p, change); err != nil || p.name != "small+"+change {
			t.Fatalf("%s: %v", p.name, err)
		}
		changed, sum, n := 0, 0.0, 0
		for i, training := range p.trainings {
			was, last := plain.trainings[i].losses, p.epochs-1
			if math.Float64bits(training.clean[last]) != math.Float64bits(was[last]) {
				t.Errorf("%s: training %d ends at %v, was %v", change, i, training.clean[last], was[last])
			}
			for s, loss := range training.losses {
				if d := (loss - was[s]) / (p.guess - p.best); !math.IsNaN(d) {
					n, sum = n+1, sum+d*d
					if d != 0 {
						changed++
					}
				}
			}
		}
		if changed < n/2 {
			t.Errorf("%s: %d of %d losses changed", change, changed, n)
		}
		if sd := math.Sqrt(sum / float64(n)); change == "noise" && math.Abs(sd-noiseShare) > 0.1*noiseShare {
			t.Errorf("the noise is %v of the range, want %v", sd, noiseShare)
		}
	}
	if err := harden(&pool{}, "x"); err == nil {
		t.Error("an unknown change is accepted")
	}
	if got := slowed([]float64{4, 3, 2, 1}, 1); !slices.Equal(got, []float64{4, 3, 2, 1}) {
		t.Errorf("at the same pace: %v", got)
	}
	if got, want := slowed([]float64{4, 3, 2, 1}, 2), []float64{4, 4, 2.75, 1}; !slices.Equal(got, want) { // epochs 0.25, 1, 2.25, 4
		t.Errorf("at a slower pace: %v, want %v", got, want)
	}
}

// Each training that is known up to a step and has not diverged by then ends within its band or beyond it, and a run repeats itself.
func TestCalibrate(t *testing.T) {
	task, err := readTask(taskset(t))
	if err != nil {
		t.Fatal(err)
	}
	play := func(seed int) []coverage {
		list := make([]coverage, len(parts))
		if err := calibrate(t.Context(), task, seed, list); err != nil {
			t.Fatal(err)
		}
		return list
	}
	list := play(1)
	n := 0
	for _, c := range list {
		n += c.in + c.above + c.below
	}
	if n != halfway {
		t.Errorf("%d ends are counted in %v, want the %d of the trainings that are known up to a step", n, list, halfway)
	}
	if again := play(1); !slices.Equal(again, list) {
		t.Errorf("played twice: %v and %v", list, again)
	}
	// If nothing falls any more after the first epoch, each trial ends at the best loss so far, which is in its band.
	for i := range task.trainings {
		for epoch := range task.trainings[i].losses {
			task.trainings[i].losses[epoch] = 0.3 + 0.001*float64(i)
		}
	}
	for i, c := range play(2) {
		if c.below > 0 || c.above > 0 {
			t.Errorf("part %d of flat curves: %d end below their bands and %d above", i, c.below, c.above)
		}
	}
}

// At a recorded place a training between recorded ones is that one, and elsewhere within what its neighbours are.
func TestTrainingsBetweenRecordedOnes(t *testing.T) {
	p, err := readTask(taskset(t))
	if err != nil {
		t.Fatal(err)
	}
	p.between = true
	w, err := newWorld(p, 1, worths)
	if err != nil {
		t.Fatal(err)
	}
	recorded := &p.trainings[10]
	began := w.begin(w.places[10])
	for step, loss := range began.losses {
		if math.Abs(loss-recorded.losses[step]) > 1e-3 {
			t.Errorf("step %d of a recorded training has %v, want %v", step+1, loss, recorded.losses[step])
		}
	}
	x := slices.Clone(w.places[10])
	for c := range x {
		x[c] = (x[c] + w.places[11][c]) / 2
	}
	low, high := math.Inf(1), math.Inf(-1)
	for i := range p.trainings {
		if last := p.trainings[i].losses[0]; !math.IsNaN(last) {
			low, high = min(low, last), max(high, last)
		}
	}
	between := w.begin(x)
	if first := between.losses[0]; first < low-1e-9 || first > high+1e-9 || between == began || len(w.trials) != 2 {
		t.Errorf("a training between others begins with %v, and they are from %v to %v", first, low, high)
	}
	if again := w.begin(x); again.losses[5] != between.losses[5] {
		t.Error("the same place has another training")
	}
}
