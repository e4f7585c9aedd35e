package library_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia"
)

// car is what an evaluation of the tests measures.
type car struct{ price, speed, weight float64 }

var (
	price  = fantasia.Lowest("price", func(c car) float64 { return c.price })
	speed  = fantasia.Highest("speed", func(c car) float64 { return c.speed })
	weight = fantasia.AtMost("weight", 100, func(c car) float64 { return c.weight })
)

// cars are the results by model: 0, 2 and 5 are the front, with its knee at 2; 1 is beaten by 2, 3 is
// too heavy, and nobody knows how heavy 4 is.
var cars = []car{{1, 0, 50}, {4, 80, 50}, {2, 90, 100}, {0, 100, 101}, {0, 100, math.NaN()}, {10, 100, 1}}

// optimize opens a study that ends with the test.
func optimize[T any](t testing.TB, space *fantasia.Space, o fantasia.Options, criteria ...fantasia.Criterion[T]) *fantasia.StudyOf[T] {
	t.Helper()
	u, err := fantasia.Optimize(space, o, criteria...)
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, u)
	return u
}

// shown describes a front: each trial's number and values, and which one is the knee.
func shown(t *testing.T, front []fantasia.Optimal, err error) (list []string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range front {
		list = append(list, fmt.Sprintf("%d: %g %g %g%s", o.Trial.Number, price.Of(o.Trial), speed.Of(o.Trial), weight.Of(o.Trial),
			map[bool]string{true: " knee"}[o.Knee]))
	}
	return list
}

// The front has the trials within the limit that no other one beats, also after the study was opened
// again; without a model it is recommended as it is.
func TestFront(t *testing.T) {
	each(t, func(t *testing.T, b binding) {
		o := b.options(fantasia.Options{Trials: len(cars), Algorithm: random})
		if b.server == nil {
			o.State = filepath.Join(t.TempDir(), "cars.study")
		}
		begin := func() (*fantasia.StudyOf[car], fantasia.Param[int]) {
			space := fantasia.NewSpace()
			model := space.Int("model", 0, len(cars)-1)
			return optimize(t, space, o, price, weight, speed), model
		}
		u, model := begin()
		if _, err := u.Front(); !errors.Is(err, fantasia.ErrNothing) {
			t.Errorf("the front of no trials: %v", err)
		}
		for n := range cars {
			if err := u.Enqueue(model.Is(n)); err != nil {
				t.Fatal(err)
			}
		}
		if err := u.Run(t.Context(), func(_ context.Context, trial *fantasia.Trial) (car, error) {
			return cars[model.Of(trial)], nil
		}); err != nil {
			t.Fatal(err)
		}
		want := []string{"1: 1 0 50", "3: 2 90 100 knee", "6: 10 100 1"}
		for range 2 {
			front, err := u.Front()
			if got := shown(t, front, err); !slices.Equal(got, want) {
				t.Errorf("the front is %q, want %q", got, want)
			}
			recommended, err := u.Recommended(t.Context())
			if got := shown(t, recommended, err); !slices.Equal(got, want) {
				t.Errorf("the recommended front is %q, want %q", got, want)
			}
			if mean, sd := speed.Expected(recommended[1]); mean != 90 || sd != 0 || !math.IsNaN(front[0].Trial.Value) ||
				len(front[0].Trial.Metrics()) != 3 {
				t.Errorf("expected is %g±%g; %+v", mean, sd, front[0].Trial)
			}
			if err := u.Close(); err != nil {
				t.Fatal(err)
			}
			u, _ = begin()
		}
	})
}

// The recommended front is that of the values that the model expects.
func TestRecommendedFront(t *testing.T) {
	each(t, func(t *testing.T, b binding) {
		space, x := line()
		u := optimize(t, space, b.options(fantasia.Options{Trials: 8, Algorithm: fantasia.Algorithm{Name: "gp"}}), price.Reference(2),
			speed.Reference(-2))
		if err := u.Run(t.Context(), func(_ context.Context, trial *fantasia.Trial) (car, error) {
			return car{price: math.Pow(x.Of(trial), 2), speed: -math.Pow(1-x.Of(trial), 2)}, nil
		}); err != nil {
			t.Fatal(err)
		}
		front, err := u.Recommended(t.Context())
		if err != nil || len(front) < 2 {
			t.Fatalf("the front has %d trials and %v", len(front), err)
		}
		for _, o := range front {
			for _, c := range []fantasia.Criterion[car]{price, speed} {
				if mean, sd := c.Expected(o); math.Abs(mean-c.Of(o.Trial)) > 0.5 || !(sd > 0) {
					t.Errorf("trial %d: the %s is %g, and expected is %g±%g", o.Trial.Number, c.Name(), c.Of(o.Trial), mean, sd)
				}
			}
		}
	})
}

// Limits bound a study of one objective, too. A trial outside of them is not what is looked for.
func TestLimit(t *testing.T) {
	each(t, func(t *testing.T, b binding) {
		space, x := line()
		light := fantasia.AtMost("speed", 10, func(c car) float64 { return c.speed })
		u := optimize(t, space, b.options(fantasia.Options{Trials: 4, Algorithm: random}), price, light)
		if err := u.Add(car{price: 0, speed: 11}, x.Is(0.5)); err != nil {
			t.Fatal(err)
		}
		if _, err := u.Front(); !errors.Is(err, fantasia.ErrNothing) || !strings.Contains(err.Error(), "limits") {
			t.Errorf("the front without a trial within the limit: %v", err)
		}
		for _, v := range []car{{3, 9, 0}, {1, 10, 0}, {0, 12, 0}, {2, -1, 0}} {
			trial, err := u.Ask(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := u.Tell(trial, v, nil); err != nil {
				t.Fatal(err)
			}
		}
		front, err := u.Front()
		recommended, again := u.Recommended(t.Context())
		if err := errors.Join(err, again); err != nil {
			t.Fatal(err)
		}
		for _, list := range [][]fantasia.Optimal{front, recommended} {
			if len(list) != 1 || list[0].Trial.Number != 3 || list[0].Trial.Value != 1 || light.Of(list[0].Trial) != 10 {
				t.Errorf("the front is %+v, want trial 3", list)
			}
		}
	})
}

// With several objectives, the goal is a hypervolume: here of (5-price)·speed.
func TestGoalOfSeveralObjectives(t *testing.T) {
	each(t, func(t *testing.T, b binding) {
		space, _ := line()
		goal := 300.0
		u := optimize(t, space, b.options(fantasia.Options{Trials: 20, Goal: &goal, Algorithm: random}), price.Reference(5), speed.Reference(0))
		told := 0
		if err := u.Run(t.Context(), func(context.Context, *fantasia.Trial) (car, error) {
			told++
			return car{price: 2, speed: float64(40 * told)}, nil
		}); err != nil {
			t.Fatal(err)
		}
		if told != 3 { // 3 · 120 is the first that is over 300
			t.Errorf("%d trials, want 3", told)
		}
	})
}

// A rule stops trials by the objective that it names, which is the one that Report tells.
func TestEarlyStoppingByOneObjective(t *testing.T) {
	each(t, func(t *testing.T, b binding) {
		space, x := line()
		u := optimize(t, space, b.options(fantasia.Options{Trials: 10, Algorithm: random, EarlyStopping: fantasia.EarlyStopping{
			Name: "percentile", Metric: speed.Name(), Settings: map[string]any{"minCompleted": 2},
		}}), price, speed)
		if err := u.Run(t.Context(), func(_ context.Context, trial *fantasia.Trial) (car, error) {
			for step := 1; step <= 5; step++ {
				if err := trial.Report(step, x.Of(trial)); err != nil {
					return car{}, err
				}
			}
			return car{price: 1 - x.Of(trial), speed: x.Of(trial)}, nil
		}); err != nil {
			t.Fatal(err)
		}
		stopped := 0
		for r, err := range u.Trials() {
			if err != nil {
				t.Fatal(err)
			}
			if r.State == fantasia.Stopped {
				stopped++
			}
			curve, err := u.Curve(r.Number)
			if err != nil || len(curve) == 0 || curve[0].Value != x.Of(r) {
				t.Errorf("trial %d has the curve %v, %v", r.Number, curve, err)
			}
			if math.IsNaN(speed.Of(r)) == (r.State == fantasia.Completed) {
				t.Errorf("trial %d is %s with speed %g", r.Number, r.State, speed.Of(r))
			}
		}
		if stopped == 0 {
			t.Error("no trial was stopped")
		}
	})
}

// What is known early of a trial that was stopped early, failed or is infeasible is kept: the last value
// that it has reported. Each criterion has a curve of its own.
func TestKnownEarly(t *testing.T) {
	each(t, func(t *testing.T, b binding) {
		o := b.options(fantasia.Options{Trials: 5, Algorithm: random, EarlyStopping: fantasia.EarlyStopping{
			Name: "threshold", Metric: price.Name(), Settings: map[string]any{"upper": 100},
		}})
		if b.server == nil {
			o.State = filepath.Join(t.TempDir(), "cars.study")
		}
		weight, speed := weight.Early(), speed.Early()
		begin := func() *fantasia.StudyOf[car] {
			space, _ := line()
			return optimize(t, space, o, price, weight, speed)
		}
		u := begin()
		if err := u.Run(t.Context(), func(_ context.Context, trial *fantasia.Trial) (car, error) {
			return known(t, trial, weight, speed)
		}); err != nil {
			t.Fatal(err)
		}
		want := []string{"COMPLETED 1 2 70", "FAILED NaN 9 120", "PRUNED NaN NaN 50", "INFEASIBLE NaN NaN 61", "FAILED NaN NaN NaN"}
		for range 2 {
			var got []string
			for r, err := range u.Trials() {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, fmt.Sprintf("%s %g %g %g", r.State, price.Of(r), speed.Of(r), weight.Of(r)))
			}
			if !slices.Equal(got, want) {
				t.Errorf("state, price, speed and weight are %q, want %q", got, want)
			}
			heavy, err := weight.Curve(u, 4)
			dear, again := u.Curve(3)
			if err := errors.Join(err, again); err != nil ||
				!slices.Equal(heavy, []fantasia.Measurement{{Step: 0, Value: 60}, {Step: 1, Value: 61}}) ||
				!slices.Equal(dear, []fantasia.Measurement{{Step: 1, Value: 101}}) {
				t.Errorf("the curves are %v and %v, with %v", heavy, dear, err)
			}
			if err := u.Close(); err != nil {
				t.Fatal(err)
			}
			u = begin()
		}
	})
}

// known is the evaluation of TestKnownEarly.
func known(t *testing.T, trial *fantasia.Trial, weight, speed fantasia.Criterion[car]) (car, error) {
	t.Helper()
	reports := func(errs ...error) {
		if err := errors.Join(errs...); err != nil {
			t.Errorf("trial %d: %v", trial.Number(), err)
		}
	}
	switch trial.Number() {
	case 1:
		if err := fantasia.Lowest("doors", func(car) float64 { return 0 }).Report(trial, 0, 1); !errors.Is(err, fantasia.ErrInvalid) ||
			!strings.Contains(err.Error(), `"doors"`) {
			t.Errorf("a criterion of another study: %v", err)
		}
		return car{price: 1, speed: 2, weight: 70}, nil
	case 2:
		reports(weight.Report(trial, 0, 120), speed.Report(trial, 0, 9))
		return car{price: 1}, errors.New("flat tyre")
	case 3:
		reports(weight.Report(trial, 0, 50))
		err := trial.Report(1, 101)
		if !errors.Is(err, fantasia.ErrStopped) {
			t.Errorf("the price is above the threshold: %v", err)
		}
		return car{}, err
	case 4:
		reports(weight.Report(trial, 0, 60), weight.Report(trial, 1, 61))
		return car{}, fantasia.ErrInfeasible
	default:
		return car{}, errors.New("no fuel")
	}
}

// An objective without a finite value makes a trial infeasible, and errors count as in a Study.
func TestOutcomesOfSeveralObjectives(t *testing.T) {
	each(t, func(t *testing.T, b binding) {
		space, _ := line()
		u := optimize(t, space, b.options(fantasia.Options{Trials: 3, Algorithm: random}), price, speed)
		calls := 0
		if err := u.Run(t.Context(), func(context.Context, *fantasia.Trial) (car, error) {
			calls++
			return []car{{1, math.Inf(1), 0}, {1, 1, 0}, {2, 2, 0}}[calls-1], []error{nil, errors.New("flat tyre"), nil}[calls-1]
		}); err != nil {
			t.Fatal(err)
		}
		var got []fantasia.State
		for r, err := range u.Trials() {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, r.State)
		}
		if want := []fantasia.State{fantasia.Infeasible, fantasia.Failed, fantasia.Completed}; !slices.Equal(got, want) {
			t.Errorf("the trials are %v, want %v", got, want)
		}
	})
}

func TestWrongCriteriaAreRefused(t *testing.T) {
	nan := math.NaN()
	goal := 1.0
	many := make([]fantasia.Criterion[car], 9)
	for i := range many {
		many[i] = fantasia.Lowest(fmt.Sprintf("m%d", i), func(c car) float64 { return c.price })
	}
	type criteria = []fantasia.Criterion[car]
	for what, test := range map[string]struct {
		criteria criteria
		options  fantasia.Options
		want     string // in process
	}{
		"none":              {criteria{weight}, fantasia.Options{}, "no criterion is an objective"},
		"no function":       {criteria{fantasia.Lowest[car]("price", nil)}, fantasia.Options{}, "has no function"},
		"names":             {criteria{price, price}, fantasia.Options{}, "price"},
		"space in a name":   {criteria{fantasia.Lowest("a b", func(c car) float64 { return c.price })}, fantasia.Options{}, "a b"},
		"too many":          {many, fantasia.Options{}, "9"},
		"a limit twice":     {criteria{price, weight, weight}, fantasia.Options{}, "weight"},
		"a limit of NaN":    {criteria{price, fantasia.AtLeast("speed", nan, func(c car) float64 { return c.speed })}, fantasia.Options{}, ""},
		"only reference":    {criteria{price.Reference(1)}, fantasia.Options{}, "reference"},
		"goal":              {criteria{price, speed.Reference(1)}, fantasia.Options{Goal: &goal}, "eference"},
		"several objective": {criteria{price, speed}, fantasia.Options{Algorithm: fantasia.Algorithm{Name: "cmaes"}}, "hebo, gp, tpe, nsga2"},
		"limits":            {criteria{price, weight}, fantasia.Options{Algorithm: fantasia.Algorithm{Name: "cmaes"}}, "hebo, gp, tpe, nsga2"},
		"only objective":    {criteria{price.Early()}, fantasia.Options{}, "arly"},
		"its limit": {criteria{price, fantasia.AtMost("price", 9, func(c car) float64 { return c.price }).Early()}, fantasia.Options{},
			"arly"},
		"stopping early": {criteria{price, speed.Early()},
			fantasia.Options{EarlyStopping: fantasia.EarlyStopping{Name: "asha", Metric: "speed"}}, "arly"},
		"stopping metric": {criteria{price, speed}, fantasia.Options{EarlyStopping: fantasia.EarlyStopping{Name: "asha", Metric: "weight"}},
			"price, speed"},
	} {
		t.Run(what, func(t *testing.T) {
			each(t, func(t *testing.T, b binding) {
				space, _ := line()
				_, err := fantasia.Optimize(space, b.options(test.options), test.criteria...)
				if !errors.Is(err, fantasia.ErrInvalid) || !strings.Contains(err.Error(), test.want) {
					t.Errorf("error %v, want one that is ErrInvalid with %q", err, test.want)
				}
			})
		})
	}
	each(t, func(t *testing.T, b binding) {
		space, _ := line()
		space.Fidelity("epochs", 1, 9, 3)
		if _, err := fantasia.Optimize(space, b.options(fantasia.Options{}), price, speed); !errors.Is(err, fantasia.ErrInvalid) {
			t.Errorf("a fidelity: %v", err)
		}
	})
}

// A study with other objectives cannot be continued; limits may change.
func TestCriteriaOfAStudyThatIsKept(t *testing.T) {
	each(t, func(t *testing.T, b binding) {
		o := b.options(fantasia.Options{Trials: 1, Algorithm: random})
		if b.server == nil {
			o.State = filepath.Join(t.TempDir(), "state")
		}
		begin := func(criteria ...fantasia.Criterion[car]) error {
			space, _ := line()
			u, err := fantasia.Optimize(space, o, criteria...)
			if err != nil {
				return err
			}
			return u.Close()
		}
		if err := errors.Join(begin(price, speed), begin(price, speed, weight), begin(price, speed, weight.Early()),
			begin(price.Reference(9), speed)); err != nil {
			t.Error(err)
		}
		for _, criteria := range [][]fantasia.Criterion[car]{{speed, price}, {price}, {price.Early(), speed},
			{price, fantasia.Lowest("speed", func(c car) float64 { return c.speed })}} {
			if err := begin(criteria...); !errors.Is(err, fantasia.ErrDifferent) {
				t.Errorf("with %v: %v", criteria, err)
			}
		}
		space, _ := line()
		if _, err := fantasia.Minimize(space, o); !errors.Is(err, fantasia.ErrDifferent) {
			t.Errorf("as a study of one value: %v", err)
		}
	})
}

func TestLimitsHaveNoReference(t *testing.T) {
	defer func() {
		if p := recover(); p == nil {
			t.Error("a limit has a reference")
		}
	}()
	weight.Reference(1)
}
