package fantasia_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math"
	"os"
	"path/filepath"
	"sync"

	"github.com/fantasia-hpo/fantasia"
	"github.com/fantasia-hpo/fantasia/optimizer/papers"
)

// Find the minimum of a function of two parameters.
func Example() {
	space := fantasia.NewSpace()
	x := space.Float("x", -5, 5)
	n := space.Int("n", 1, 10)
	study, err := fantasia.Minimize(space, fantasia.Options{Trials: 40})
	if err != nil {
		log.Fatal(err)
	}
	defer study.Close()
	err = study.Run(context.Background(), func(_ context.Context, t *fantasia.Trial) (float64, error) {
		return math.Pow(x.Of(t)-1, 2) + math.Abs(float64(n.Of(t)-7)), nil
	})
	if err != nil {
		log.Fatal(err)
	}
	best, _ := study.Best()
	fmt.Printf("x = %.1f, n = %d\n", x.Of(best), n.Of(best))
	// Output: x = 1.0, n = 7
}

// The momentum exists only for one of the optimisers.
func ExampleWhen() {
	space := fantasia.NewSpace()
	optimizer := space.Choice("optimizer", []string{"adam", "sgd"})
	momentum := space.Float("momentum", 0, 0.99, fantasia.When(optimizer, "sgd"))
	study, err := fantasia.Maximize(space, fantasia.Options{Trials: 10, Algorithm: fantasia.Algorithm{Name: "random"}})
	if err != nil {
		log.Fatal(err)
	}
	defer study.Close()
	err = study.Run(context.Background(), func(_ context.Context, t *fantasia.Trial) (float64, error) {
		if m, active := momentum.Lookup(t); active {
			return m, nil
		}
		return 0, nil
	})
	if err != nil {
		log.Fatal(err)
	}
	best, _ := study.Best()
	fmt.Println(optimizer.Of(best))
	// Output: sgd
}

// A study that is opened again goes on where it was.
func ExampleOptions_state() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	tune := func(trials int) {
		space := fantasia.NewSpace()
		x := space.Float("x", 0, 1)
		study, err := fantasia.Minimize(space, fantasia.Options{State: filepath.Join(dir, "x.study"), Trials: trials})
		if err != nil {
			log.Fatal(err)
		}
		defer study.Close()
		evaluated := 0
		err = study.Run(context.Background(), func(_ context.Context, t *fantasia.Trial) (float64, error) {
			evaluated++
			return x.Of(t), nil
		})
		fmt.Println(evaluated, "evaluations", err)
	}
	tune(5)
	tune(5)
	tune(8)
	// Output:
	// 5 evaluations <nil>
	// 0 evaluations <nil>
	// 3 evaluations <nil>
}

// Trials that do worse than the others at the same step are stopped early.
func ExampleTrial_Report() {
	space := fantasia.NewSpace()
	level := space.Float("level", 0, 1)
	study, err := fantasia.Minimize(space, fantasia.Options{
		Trials: 20, Algorithm: fantasia.Algorithm{Name: "random"}, EarlyStopping: fantasia.EarlyStopping{Name: "percentile"},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer study.Close()
	steps := 0
	err = study.Run(context.Background(), func(_ context.Context, t *fantasia.Trial) (float64, error) {
		loss := 0.0
		for step := 1; step <= 10; step++ {
			steps++
			loss = level.Of(t) + 1/float64(step)
			if err := t.Report(step, loss); err != nil {
				return 0, err
			}
		}
		return loss, nil
	})
	fmt.Println(steps < 20*10, err)
	// Output: true <nil>
}

// Only points that meet the constraint are evaluated.
func ExampleSpace_Require() {
	space := fantasia.NewSpace()
	least, most := space.Int("least", 1, 100), space.Int("most", 1, 100)
	space.Require("least is below most", func(p fantasia.Point) bool { return least.Of(p) < most.Of(p) }, least, most)
	study, err := fantasia.Maximize(space, fantasia.Options{Trials: 30, Algorithm: fantasia.Algorithm{Name: "tpe"}})
	if err != nil {
		log.Fatal(err)
	}
	defer study.Close()
	broken := 0
	err = study.Run(context.Background(), func(_ context.Context, t *fantasia.Trial) (float64, error) {
		if least.Of(t) >= most.Of(t) {
			broken++
		}
		return float64(least.Of(t) - most.Of(t)), nil
	})
	fmt.Println(broken, err)
	// Output: 0 <nil>
}

// Of several objectives, the result is a front, from which a person or a program chooses. Only trials
// within the limit are on it.
func ExampleOptimize() {
	type trip struct{ hours, euros, changes float64 }
	hours := fantasia.Lowest("hours", func(t trip) float64 { return t.hours })
	euros := fantasia.Lowest("euros", func(t trip) float64 { return t.euros })
	changes := fantasia.AtMost("changes", 2, func(t trip) float64 { return t.changes })

	space := fantasia.NewSpace()
	by := space.Choice("by", []string{"bicycle", "bus", "car", "night train", "plane", "train"})
	trips := map[string]trip{
		"bicycle": {40, 0, 0}, "bus": {14, 20, 3}, "car": {9, 110, 0}, "night train": {13, 45, 1}, "plane": {4, 240, 2}, "train": {7, 90, 1},
	}
	study, err := fantasia.Optimize(space, fantasia.Options{Trials: 6, Algorithm: fantasia.Algorithm{Name: "random"}}, hours, euros, changes)
	if err != nil {
		log.Fatal(err)
	}
	defer study.Close()
	err = study.Run(context.Background(), func(_ context.Context, t *fantasia.Trial) (trip, error) {
		return trips[by.Of(t)], nil
	})
	if err != nil {
		log.Fatal(err)
	}
	front, err := study.Front()
	if err != nil {
		log.Fatal(err)
	}
	for _, o := range front {
		fmt.Println(by.Of(o.Trial), hours.Of(o.Trial), euros.Of(o.Trial), o.Knee)
	}
	// Output:
	// plane 4 240 false
	// train 7 90 false
	// night train 13 45 true
	// bicycle 40 0 false
}

// A single objective with a limit: the fastest machine that is cheap enough.
func ExampleAtMost() {
	type run struct{ seconds, price float64 }
	seconds := fantasia.Lowest("seconds", func(r run) float64 { return r.seconds })
	price := fantasia.AtMost("price", 8, func(r run) float64 { return r.price })

	space := fantasia.NewSpace()
	cores := space.Int("cores", 1, 16)
	study, err := fantasia.Optimize(space, fantasia.Options{Trials: 16, Algorithm: fantasia.Algorithm{Name: "sobol"}}, seconds, price)
	if err != nil {
		log.Fatal(err)
	}
	defer study.Close()
	err = study.Run(context.Background(), func(_ context.Context, t *fantasia.Trial) (run, error) {
		n := float64(cores.Of(t))
		return run{seconds: 100 / n, price: n}, nil
	})
	if err != nil {
		log.Fatal(err)
	}
	front, err := study.Front()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(cores.Of(front[0].Trial), "cores:", front[0].Trial.Value, "seconds")
	// Output: 8 cores: 12.5 seconds
}

// Whoever has an idea of the best values gets there sooner.
func ExamplePrior() {
	space := fantasia.NewSpace()
	rate := space.Float("rate", 1e-5, 1, fantasia.Log, fantasia.Prior(1e-3, 0.1)) // give or take a tenth of a power of ten
	solver := space.Choice("solver", []string{"adam", "sgd"}, fantasia.Weights(99, 1))
	study, err := fantasia.Minimize(space, fantasia.Options{Trials: 1})
	if err != nil {
		log.Fatal(err)
	}
	defer study.Close()
	err = study.Run(context.Background(), func(_ context.Context, t *fantasia.Trial) (float64, error) {
		fmt.Println(rate.Of(t) > 5e-4, rate.Of(t) < 2e-3, solver.Of(t))
		return rate.Of(t), nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: true true adam
}

// How large a model is shows before it is trained. So trials that fail, such as one that does not fit into
// memory, tell that much, too, and the optimiser learns which models are too large.
func ExampleCriterion_Early() {
	type model struct{ loss, megabytes float64 }
	loss := fantasia.Lowest("loss", func(m model) float64 { return m.loss })
	size := fantasia.AtMost("megabytes", 300, func(m model) float64 { return m.megabytes }).Early()

	space := fantasia.NewSpace()
	width := space.Int("width", 1, 1000)
	study, err := fantasia.Optimize(space, fantasia.Options{Trials: 12}, loss, size)
	if err != nil {
		log.Fatal(err)
	}
	defer study.Close()
	err = study.Run(context.Background(), func(_ context.Context, t *fantasia.Trial) (model, error) {
		m := model{megabytes: float64(width.Of(t))}
		if err := size.Report(t, 0, m.megabytes); err != nil {
			return m, err
		}
		if m.megabytes > 800 {
			return m, errors.New("out of memory")
		}
		m.loss = 1 / m.megabytes
		return m, nil
	})
	if err != nil {
		log.Fatal(err)
	}
	failed, known := 0, 0
	for r, err := range study.Trials() {
		if err != nil {
			log.Fatal(err)
		}
		if r.State == fantasia.Failed {
			failed++
			if size.Of(r) > 800 {
				known++
			}
		}
	}
	fmt.Println(failed > 0, known == failed)
	// Output: true true
}

// If evaluations are noisy, trials are on the front by luck, too. The model's front is what it expects
// if they were evaluated again.
func ExampleStudyOf_Recommended() {
	type dish struct{ minutes, taste float64 }
	minutes := fantasia.Lowest("minutes", func(d dish) float64 { return d.minutes })
	taste := fantasia.Highest("taste", func(d dish) float64 { return d.taste })

	space := fantasia.NewSpace()
	heat := space.Float("heat", 0, 1)
	study, err := fantasia.Optimize(space, fantasia.Options{Trials: 12}, minutes, taste)
	if err != nil {
		log.Fatal(err)
	}
	defer study.Close()
	err = study.Run(context.Background(), func(_ context.Context, t *fantasia.Trial) (dish, error) {
		luck := float64(t.Seed()%1000)/1000 - 0.5
		return dish{minutes: 40 - 30*heat.Of(t) + luck, taste: 10 - 8*heat.Of(t) + luck}, nil
	})
	if err != nil {
		log.Fatal(err)
	}
	front, err := study.Recommended(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	mean, sd := taste.Expected(front[0])
	fmt.Println(len(front) > 1, mean < 10, sd > 0)
	// Output: true true true
}

// A program with a loop of its own asks for trials and tells how they ended.
func ExampleStudy_Ask() {
	space := fantasia.NewSpace()
	x := space.Float("x", 0, 10)
	study, err := fantasia.Minimize(space, fantasia.Options{Trials: 5, Parallel: 2})
	if err != nil {
		log.Fatal(err)
	}
	defer study.Close()
	told := 0
	for {
		t, err := study.Ask(context.Background())
		if errors.Is(err, fantasia.ErrEnded) {
			break
		}
		if err != nil {
			log.Fatal(err)
		}
		if err := study.Tell(t, x.Of(t), nil); err != nil {
			log.Fatal(err)
		}
		told++
	}
	fmt.Println(told)
	// Output: 5
}

// Enqueue evaluates a guess first. Add tells what is known from elsewhere.
func ExampleStudy_Enqueue() {
	space := fantasia.NewSpace()
	x, y := space.Float("x", 0, 10), space.Bool("y")
	study, err := fantasia.Minimize(space, fantasia.Options{Trials: 3})
	if err != nil {
		log.Fatal(err)
	}
	defer study.Close()
	if err := errors.Join(study.Enqueue(x.Is(2.5), y.Is(true)), study.Add(100, x.Is(9), y.Is(false))); err != nil {
		log.Fatal(err)
	}
	err = study.Run(context.Background(), func(_ context.Context, t *fantasia.Trial) (float64, error) { return x.Of(t), nil })
	if err != nil {
		log.Fatal(err)
	}
	for r, err := range study.Trials() {
		if err != nil {
			log.Fatal(err)
		}
		if r.Source == "requested" || r.Source == "added" {
			fmt.Println(r.Source, x.Of(r), y.Of(r), r.Value)
		}
	}
	// Output:
	// requested 2.5 true 2.5
	// added 9 false 100
}

// Of noisy evaluations, the best value may be luck.
func ExampleStudy_Recommended() {
	space := fantasia.NewSpace()
	x := space.Float("x", -1, 1)
	study, err := fantasia.Minimize(space, fantasia.Options{Trials: 15, Goal: nil})
	if err != nil {
		log.Fatal(err)
	}
	defer study.Close()
	err = study.Run(context.Background(), func(_ context.Context, t *fantasia.Trial) (float64, error) {
		noise := float64(t.Seed()%1000)/1000 - 0.5
		return x.Of(t)*x.Of(t) + 0.1*noise, nil
	})
	if err != nil {
		log.Fatal(err)
	}
	recommended, err := study.Recommended(context.Background())
	fmt.Println(math.Abs(x.Of(recommended.Trial)) < 0.5, err)
	// Output: true <nil>
}

// The optimisers that repeat a paper are in a package of their own.
func ExampleOptions_algorithms() {
	space := fantasia.NewSpace()
	x := space.Float("x", -1, 2)
	study, err := fantasia.Minimize(space, fantasia.Options{
		Trials: 12, Algorithm: fantasia.Algorithm{Name: "uhe"}, Algorithms: papers.Algorithms(),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer study.Close()
	err = study.Run(context.Background(), func(_ context.Context, t *fantasia.Trial) (float64, error) {
		return x.Of(t) * x.Of(t), nil
	})
	if err != nil {
		log.Fatal(err)
	}
	best, err := study.Best()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("found a value below 0.1:", best.Value < 0.1)
	// Output: found a value below 0.1: true
}

// Progress tells about each trial that has ended.
func ExampleOptions_progress() {
	space := fantasia.NewSpace()
	x := space.Float("x", 0, 1)
	var lines sync.Once
	study, err := fantasia.Minimize(space, fantasia.Options{Trials: 3, Progress: func(p fantasia.Progress) {
		lines.Do(func() { fmt.Printf("%d of %d: %s\n", p.Ended, p.Trials, p.Trial.State) })
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer study.Close()
	err = study.Run(context.Background(), func(_ context.Context, t *fantasia.Trial) (float64, error) { return x.Of(t), nil })
	if err != nil {
		log.Fatal(err)
	}
	// Output: 1 of 3: COMPLETED
}
