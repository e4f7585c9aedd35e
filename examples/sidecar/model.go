package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// point is one of two classes in the plane.
type point struct{ x, y, label float64 }

// spirals are 400 points of two arms, half a turn each: a line cannot part them,
// the model's features can.
func spirals() []point {
	rng := rand.New(rand.NewPCG(1, 2))
	var data []point
	for i := range 200 {
		r := 0.2 + 0.8*float64(i)/200
		for arm := range 2 {
			angle := math.Pi*float64(arm) + math.Pi*r
			data = append(data, point{
				x: r*math.Cos(angle) + 0.05*rng.NormFloat64(), y: r*math.Sin(angle) + 0.05*rng.NormFloat64(), label: float64(arm),
			})
		}
	}
	return data
}

// features is how many random Fourier features the model sees.
const features = 64

// model is a logistic regression on random Fourier features (A. Rahimi and
// B. Recht, Random features for large-scale kernel machines, 2007).
type model struct {
	rate, decay float64
	rng         *rand.Rand
	projection  [features][3]float64
	weights     [features + 1]float64
}

func newModel(rate, decay float64, seed uint64) *model {
	m := &model{rate: rate, decay: decay, rng: rand.New(rand.NewPCG(seed, 0))}
	for i := range m.projection {
		m.projection[i] = [3]float64{3 * m.rng.NormFloat64(), 3 * m.rng.NormFloat64(), 2 * math.Pi * m.rng.Float64()}
	}
	return m
}

func (m *model) features(p point) (f [features + 1]float64) {
	for i, w := range m.projection {
		f[i] = math.Sqrt(2.0/features) * math.Cos(w[0]*p.x+w[1]*p.y+w[2])
	}
	f[features] = 1
	return f
}

func (m *model) predict(f [features + 1]float64) float64 {
	z := 0.0
	for i, v := range f {
		z += m.weights[i] * v
	}
	return 1 / (1 + math.Exp(-z))
}

// epoch takes a step of stochastic gradient descent for each point.
func (m *model) epoch(data []point) {
	for _, i := range m.rng.Perm(len(data)) {
		f := m.features(data[i])
		slope := m.predict(f) - data[i].label
		for j, v := range f {
			m.weights[j] -= m.rate * (slope*v + m.decay*m.weights[j])
		}
	}
}

// loss is the mean cross-entropy, in nats.
func (m *model) loss(data []point) float64 {
	sum := 0.0
	for _, p := range data {
		q := m.predict(m.features(p))
		sum -= p.label*math.Log(max(q, 1e-12)) + (1-p.label)*math.Log(max(1-q, 1e-12))
	}
	return sum / float64(len(data))
}

// state is a checkpoint.
type state struct {
	Epoch   int
	Weights [features + 1]float64
}

func (m *model) save(path string, epoch int) error {
	text, err := json.Marshal(state{epoch, m.weights})
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("save a checkpoint: %w", err)
	}
	return nil
}

// resume goes on from a checkpoint and returns its epoch; from the beginning, 0,
// where there is none that can be read.
func (m *model) resume(path string) int {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	var s state
	if json.Unmarshal(text, &s) != nil {
		return 0
	}
	m.weights = s.Weights
	return s.Epoch
}
