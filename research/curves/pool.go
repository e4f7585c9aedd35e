package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fantasia-hpo/fantasia/research/curves/live"
	"github.com/fantasia-hpo/fantasia/research/lines"
	"github.com/fantasia-hpo/fantasia/study"
)

// pool is a task: trainings that were recorded to their end.
type pool struct {
	name       string
	parameters []study.Parameter
	epochs     int
	trainings  []training
	final      bool       // of all trainings
	between    bool       // a place between recorded trainings has one of its own
	live       *live.Task // nil if they are recorded
	// guess is the loss of who has learnt nothing, and best the lowest of all trainings.
	guess, best float64
}

// livePools returns the tasks whose trainings are not recorded.
func livePools() (list []*pool) {
	for name, task := range live.Tasks() {
		list = append(list, &pool{
			name: name, parameters: task.Parameters, epochs: task.Epochs, live: &task, guess: task.Guess, best: task.Best,
		})
	}
	slices.SortFunc(list, func(a, b *pool) int { return cmp.Compare(a.name, b.name) })
	return list
}

// training is a row of a pool.
type training struct {
	point  study.Point
	losses []float64     // after each epoch, as it reports them; NaN where it diverged
	clean  []float64     // the same without noise
	live   live.Training // that fills in the losses; nil if they are recorded
	pace   float64       // virtual seconds of an epoch
	final  bool          // what it reports before its end is no value, such as the mean of some folds
}

// paceSpread is the standard deviation of the logarithm of trainings' paces, which TaskSet does not tell.
const paceSpread = 0.3

// bounds is a parameter of a program, on the scale on which it is searched.
type bounds struct {
	Name string  `json:"name"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// line is a line of a task. A program's first one has the loss of who has learnt nothing and the parameters, and no training.
type line struct {
	Guess      float64            `json:"guess"`
	Final      bool               `json:"final"` // as of a training
	Parameters []bounds           `json:"parameters"`
	HP         map[string]float64 `json:"hp"`
	Valid      []*float64         `json:"valid"`
	Seconds    float64            `json:"seconds"` // an epoch takes; TaskSet does not tell
}

// readTask reads a task in the form that research/README.md describes, a line of JSON a training: one of TaskSet (Metz et al.
// 2020), or a program of make_programs.py.
func readTask(path string) (*pool, error) {
	content, err := lines.Unzip("task", path)
	if err != nil {
		return nil, err
	}
	p := &pool{name: strings.TrimSuffix(filepath.Base(path), ".jsonl.gz"), best: math.Inf(1)}
	rng := rand.New(rand.NewPCG(lines.Seed(p.name, 0), 0))
	for in := json.NewDecoder(bytes.NewReader(content)); ; {
		var l line
		if err := in.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read training %d of the task %s: %w", len(p.trainings)+1, path, err)
		}
		if l.Parameters == nil {
			p.add(&l, rng)
			continue
		}
		p.guess, p.final = l.Guess, l.Final
		for _, q := range l.Parameters {
			p.parameters = append(p.parameters, study.Parameter{Name: q.Name, Type: study.Float, Min: &q.Low, Max: &q.High, Scale: study.Linear})
		}
	}
	if len(p.trainings) == 0 {
		return nil, fmt.Errorf("read the task %s: it has no training", path)
	}
	p.epochs = len(p.trainings[0].losses)
	if p.parameters == nil {
		p.ofTaskSet()
	}
	return p, nil
}

// add adds the training of a line.
func (p *pool) add(l *line, rng *rand.Rand) {
	t := training{point: study.Point{}, pace: l.Seconds, final: p.final}
	valid := l.Valid
	if p.parameters == nil { // of TaskSet, whose first loss is that of the network before its training
		valid, t.pace = valid[1:], math.Exp(paceSpread*rng.NormFloat64())
		for _, name := range names {
			t.point[name] = axis(name, l.HP[name])
		}
	}
	for _, q := range p.parameters {
		t.point[q.Name] = l.HP[q.Name]
	}
	for _, loss := range valid {
		if loss == nil {
			t.losses = append(t.losses, math.NaN())
			continue
		}
		t.losses = append(t.losses, *loss)
	}
	t.clean = t.losses
	p.best = min(p.best, t.leastOf(t.clean))
	p.trainings = append(p.trainings, t)
}

// valued reports whether the loss of a step counts as a value of the training, from 0 on.
func (t *training) valued(step int) bool { return !t.final || step == len(t.losses)-1 }

// leastOf returns the least of a training's first losses that counts as its value, +Inf if there is none.
func (t *training) leastOf(losses []float64) float64 {
	least := math.Inf(1)
	for step, loss := range losses {
		if t.valued(step) && !math.IsNaN(loss) {
			least = min(least, loss)
		}
	}
	return least
}

// ofTaskSet gives a task of TaskSet its parameters, which reach as far as its trainings do, and the loss of a guess of two classes.
func (p *pool) ofTaskSet() {
	p.guess = math.Ln2
	for _, name := range names {
		low, high := math.Inf(1), math.Inf(-1)
		for _, t := range p.trainings {
			v, _ := t.point[name].(float64)
			low, high = min(low, v), max(high, v)
		}
		p.parameters = append(p.parameters, study.Parameter{Name: name, Type: study.Float, Min: &low, Max: &high, Scale: study.Linear})
	}
}

// names are the hyperparameters of Adam in TaskSet.
var names = []string{"learning_rate", "beta1", "beta2", "epsilon", "l1", "l2", "linear_decay", "exponential_decay"}

// axis returns a hyperparameter on the scale on which it is searched.
func axis(name string, v float64) float64 {
	if strings.HasPrefix(name, "beta") {
		return math.Log10(1 - v)
	}
	return math.Log10(v)
}

// regret returns how much worse a loss is than the best, as a share of what a guess is.
func (p *pool) regret(loss float64) float64 { return min(1, (loss-p.best)/(p.guess-p.best)) }
