package live

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"

	"github.com/fantasia-hpo/fantasia/study"
)

// descent is stochastic gradient descent with momentum over batches of examples.
type descent struct {
	*data
	rate, decay, momentum, l2 float64
	batch                     int
	weights, impetus, slope   []float64
	rng                       *rand.Rand
	// gradient adds that of an example to slope, and logit is the model's answer.
	gradient func(x []float64, y float64)
	logit    func(x []float64) float64
}

func newDescent(d *data, p study.Point, weights int, scale float64) *descent {
	s := &descent{
		data: d, rate: number(p, "learning_rate"), decay: number(p, "decay"), momentum: number(p, "momentum"), l2: number(p, "l2"),
		batch: int(number(p, "batch_size")), rng: rand.New(rand.NewPCG(58, 2)),
		weights: make([]float64, weights), impetus: make([]float64, weights), slope: make([]float64, weights),
	}
	for i := range s.weights {
		s.weights[i] = scale * s.rng.NormFloat64()
	}
	return s
}

// Epoch implements Training.
func (s *descent) Epoch() float64 {
	order := s.rng.Perm(len(s.x))
	for start := 0; start < len(order); start += s.batch {
		clear(s.slope)
		chosen := order[start:min(start+s.batch, len(order))]
		for _, i := range chosen {
			s.gradient(s.x[i], s.y[i])
		}
		floats.Scale(s.momentum, s.impetus)
		floats.AddScaled(s.impetus, -s.rate/float64(len(chosen)), s.slope)
		floats.AddScaled(s.impetus, -s.rate*s.l2, s.weights)
		floats.Add(s.weights, s.impetus)
	}
	s.rate *= s.decay
	sum := 0.0
	for i, x := range s.held {
		sum += entropy(s.logit(x), s.heldTarget[i])
	}
	return orNaN(sum / float64(len(s.held)))
}

// descending are the parameters of a descent.
func descending() []study.Parameter {
	return []study.Parameter{
		float("learning_rate", 1e-3, 30, study.Log), float("decay", 0.8, 1, study.Linear), float("momentum", 0, 0.99, study.Linear),
		float("l2", 1e-6, 1e-1, study.Log), whole("batch_size", 4, 256),
	}
}

// perceptron is a network with one hidden layer that learns a checkerboard of two classes.
func perceptron() Task {
	d := draw(600, 400, 2, func(x []float64, rng *rand.Rand) float64 {
		y := float64((int(3*x[0]) + int(3*x[1])) % 2)
		if rng.Float64() < 0.05 {
			y = 1 - y
		}
		return y
	})
	return Task{
		Parameters: append(descending(), whole("hidden", 4, 64)), Epochs: 50, Guess: math.Ln2, Best: 0.29,
		Pace: func(p study.Point) float64 { return (10 + number(p, "hidden")) / 40 },
		New: func(p study.Point) Training {
			const in = 3 // with the bias
			n := int(number(p, "hidden"))
			s := newDescent(d, p, n*(in+1), 1)
			units := make([]float64, n)
			s.logit = func(x []float64) (sum float64) {
				for h := range units {
					w := s.weights[h*(in+1):]
					units[h] = math.Tanh(4 * (w[0]*(x[0]-0.5) + w[1]*(x[1]-0.5) + w[2]*0.25))
					sum += w[in] * units[h]
				}
				return sum
			}
			s.gradient = func(x []float64, y float64) {
				delta := sigmoid(s.logit(x)) - y
				for h, u := range units {
					w, g := s.weights[h*(in+1):], s.slope[h*(in+1):]
					back := 4 * delta * w[in] * (1 - u*u)
					g[0] += back * (x[0] - 0.5)
					g[1] += back * (x[1] - 0.5)
					g[2] += back * 0.25
					g[in] += delta * u
				}
			}
			return s
		},
	}
}

// logistic is a regression with more weights than its few examples can tell.
func logistic() Task {
	const features = 60
	d := draw(300, 600, features, func(x []float64, rng *rand.Rand) float64 {
		logit := 0.0
		for k := range 12 {
			logit += 8 / float64(k+1) * (x[k] - 0.5) * float64(1-2*(k%2))
		}
		if rng.Float64() < sigmoid(logit) {
			return 1
		}
		return 0
	})
	return Task{
		Parameters: descending(), Epochs: 40, Guess: math.Ln2, Best: 0.44,
		Pace: func(p study.Point) float64 { return 0.5 + 2/number(p, "batch_size") },
		New: func(p study.Point) Training {
			s := newDescent(d, p, features, 0.1)
			s.logit = func(x []float64) (sum float64) {
				for k, v := range x {
					sum += s.weights[k] * (v - 0.5)
				}
				return sum
			}
			s.gradient = func(x []float64, y float64) {
				delta := sigmoid(s.logit(x)) - y
				for k, v := range x {
					s.slope[k] += delta * (v - 0.5)
				}
			}
			return s
		},
	}
}
