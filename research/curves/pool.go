package main

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/fantasia-hpo/fantasia/study"
)

// pool is a task: trainings that were recorded to their end.
type pool struct {
	name       string
	parameters []study.Parameter
	epochs     int
	trainings  []training
	// guess is the loss of who has learnt nothing, and best the lowest of all trainings.
	guess, best float64
}

// training is a row of a pool.
type training struct {
	point  study.Point
	losses []float64 // after each epoch, as it reports them; NaN where it diverged
	clean  []float64 // the same without noise
	pace   float64   // virtual seconds of an epoch
}

// paceSpread is the standard deviation of the logarithm of trainings' paces, which TaskSet does not tell.
const paceSpread = 0.3

// readTaskSet reads a task of TaskSet (Metz et al. 2020) in the form that research/README.md
// describes: a line of JSON a training.
func readTaskSet(path string) (p *pool, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the task: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return nil, fmt.Errorf("read the task %s: %w", path, err)
	}
	p = &pool{name: strings.TrimSuffix(filepath.Base(path), ".jsonl.gz"), guess: math.Ln2, best: math.Inf(1)} // of two classes
	rng := rand.New(rand.NewPCG(seedOf(p.name, 0), 0))
	for lines := json.NewDecoder(bufio.NewReader(unzipped)); ; {
		var line struct {
			HP    map[string]float64 `json:"hp"`
			Valid []*float64         `json:"valid"`
		}
		if err := lines.Decode(&line); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read training %d of the task %s: %w", len(p.trainings)+1, path, err)
		}
		t := training{point: study.Point{}, pace: math.Exp(paceSpread * rng.NormFloat64())}
		for _, name := range names {
			t.point[name] = axis(name, line.HP[name])
		}
		for _, loss := range line.Valid[1:] { // the first is that of the network before its training
			if loss == nil {
				t.losses = append(t.losses, math.NaN())
				continue
			}
			t.losses = append(t.losses, *loss)
			p.best = min(p.best, *loss)
		}
		t.clean = t.losses
		p.trainings = append(p.trainings, t)
	}
	p.epochs = len(p.trainings[0].losses)
	for _, name := range names {
		low, high := math.Inf(1), math.Inf(-1)
		for _, t := range p.trainings {
			v, _ := t.point[name].(float64)
			low, high = min(low, v), max(high, v)
		}
		p.parameters = append(p.parameters, study.Parameter{Name: name, Type: study.Float, Min: &low, Max: &high, Scale: study.Linear})
	}
	return p, nil
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

// seedOf returns the seed of a run: two tasks never share one, and with it their first points.
func seedOf(task string, seed int) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d", task, seed)
	return h.Sum64()
}

// regret returns how much worse a loss is than the best, as a share of what a guess is.
func (p *pool) regret(loss float64) float64 { return min(1, (loss-p.best)/(p.guess-p.best)) }
