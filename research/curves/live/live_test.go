package live

import (
	"math"
	"testing"

	"github.com/fantasia-hpo/fantasia/study"
)

// sound are settings with which each program learns.
var sound = map[string]study.Point{
	"factors":    {"learning_rate": 0.03, "decay": 0.95, "l2": 0.05, "rank": int64(4), "scale": 0.1},
	"boosting":   {"learning_rate": 0.2, "subsample": 0.8, "columns": 0.8, "leaf": int64(5), "depth": int64(3), "l2": 1.0},
	"perceptron": {"learning_rate": 0.3, "decay": 1.0, "momentum": 0.9, "l2": 1e-6, "batch_size": int64(16), "hidden": int64(32)},
	"logistic":   {"learning_rate": 0.3, "decay": 1.0, "momentum": 0.5, "l2": 1e-3, "batch_size": int64(32)},
}

// A training learns from epoch to epoch, and the same one reports the same losses.
func TestTrainingsLearn(t *testing.T) {
	for name, task := range Tasks() {
		t.Run(name, func(t *testing.T) {
			point := sound[name]
			for _, p := range task.Parameters {
				if v := number(point, p.Name); v < *p.Min || v > *p.Max {
					t.Fatalf("%s is %v, out of its range", p.Name, point[p.Name])
				}
			}
			one, same := task.New(point), task.New(point)
			var first, loss float64
			for epoch := range task.Epochs {
				loss = one.Epoch()
				if again := same.Epoch(); again != loss {
					t.Fatalf("epoch %d has a loss of %v and of %v", epoch+1, loss, again)
				}
				if epoch == 0 {
					first = loss
				}
			}
			if !(loss < first) || !(loss < 0.97*task.Guess) {
				t.Errorf("the loss falls from %v to %v; a guess has %v", first, loss, task.Guess)
			}
			if pace := task.Pace(point); !(pace > 0) {
				t.Errorf("an epoch takes %v s", pace)
			}
			// The best that is known is about what can be had.
			if !(task.Best < loss) || task.Best > task.Guess {
				t.Errorf("the best loss is %v, and this training has %v", task.Best, loss)
			}
		})
	}
}

// A descent follows the gradient of the loss.
func TestGradientsAgainstDifferences(t *testing.T) {
	for _, name := range []string{"perceptron", "logistic"} {
		s := Tasks()[name].New(sound[name]).(*descent)
		clear(s.slope)
		s.gradient(s.x[3], s.y[3])
		const step = 1e-6
		for i := 0; i < len(s.weights); i += 5 {
			at := func(by float64) float64 {
				before := s.weights[i]
				defer func() { s.weights[i] = before }()
				s.weights[i] += by
				return entropy(s.logit(s.x[3]), s.y[3])
			}
			if want := (at(step) - at(-step)) / (2 * step); math.Abs(s.slope[i]-want) > 1e-6*(1+math.Abs(want)) {
				t.Errorf("%s: the slope by weight %d is %v, want %v", name, i, s.slope[i], want)
			}
		}
	}
}

func TestTrainingsThatDivergeSayNaN(t *testing.T) {
	task := Tasks()["factors"]
	training := task.New(study.Point{"learning_rate": 1.0, "decay": 1.0, "l2": 1e-4, "rank": int64(32), "scale": 1.0})
	for range 5 {
		training.Epoch()
	}
	if loss := training.Epoch(); !math.IsNaN(loss) {
		t.Errorf("a training that diverges reports %v", loss)
	}
}
