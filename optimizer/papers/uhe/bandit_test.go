package uhe

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// told returns a problem with the values by trial; NaN marks a failed one.
func told(values map[int]float64) *optimizer.Problem {
	p := &optimizer.Problem{Direction: study.Maximize}
	for _, trial := range slices.Sorted(maps.Keys(values)) {
		switch v := values[trial]; {
		case math.IsNaN(v):
			p.Observations = append(p.Observations, optimizer.Observation{Trial: trial, Outcome: optimizer.OutcomeFailed})
		default:
			p.Observations = append(
				p.Observations, optimizer.Observation{Trial: trial, Outcome: optimizer.OutcomeCompleted, Values: study.Values{v}},
			)
		}
	}
	return p
}

// The probabilities of each pair are those of algorithm 1 of the paper, followed here line
// by line with weights instead of their logarithms, T = 40.
func TestProbabilitiesOfThePaper(t *testing.T) {
	const trials = 40
	rng, values := rand.New(rand.NewPCG(1, 1)), map[int]float64{}
	var b bandit
	w := [2]float64{1, 1}
	gamma := math.Sqrt(4 * math.Log(2) / ((math.E - 1) * trials))
	drawn := map[bool]int{}
	for trial := 1; trial <= trials; trial += 2 {
		b.learn(told(values), 2)
		p := [2]float64{(1-gamma)*w[0]/(w[0]+w[1]) + gamma/2, (1-gamma)*w[1]/(w[0]+w[1]) + gamma/2}
		random, chance := b.random(trial, 2, trials/2, false, rng)
		if math.Abs(chance-p[0]) > 1e-12 {
			t.Fatalf("trial %d: a random point has probability %v, want %v", trial, chance, p[0])
		}
		if again, _ := b.random(trial+1, 2, trials/2, false, rng); again {
			t.Fatalf("trial %d, the second of its pair, is random", trial+1)
		}
		drawn[random]++
		values[trial], values[trial+1] = rng.NormFloat64(), rng.NormFloat64()
		least, most := math.Inf(1), math.Inf(-1)
		for _, v := range values {
			least, most = min(least, v), max(most, v)
		}
		reward := (max(values[trial], values[trial+1]) - least) / (most - least)
		arm := 1
		if random {
			arm = 0
		}
		w[arm] *= math.Exp(gamma * reward / (2 * p[arm]))
	}
	if drawn[true] < 3 || drawn[false] < 3 {
		t.Errorf("the arms were drawn %v times: too few to test both", drawn)
	}
}

// Results in another order, late ones and failed ones give each pair its reward once.
func TestPairsEndInAnyOrder(t *testing.T) {
	b := bandit{Horizon: 50, Groups: 3, Open: []group{{First: 5, Random: true, P: 0.4}, {First: 7, P: 0.5}, {First: 9, P: 0.6}}}
	rate := b.rate()
	values := map[int]float64{1: 0, 2: 10, 8: 4, 5: math.NaN()}
	b.learn(told(values), 2)
	if b.Log != 0 || len(b.Open) != 3 {
		t.Fatalf("half of a pair has ended, and the bandit is %+v", b)
	}
	values[7] = 2 // of 7 and 8, the better one is worth 0.4
	b.learn(told(values), 2)
	if want := -rate * 0.4 / (2 * 0.5); math.Abs(b.Log-want) > 1e-12 || len(b.Open) != 2 {
		t.Fatalf("after the second pair the bandit is %+v, want weight %v", b, want)
	}
	values[6] = 5 // 5 failed, so the pair's best is 0.5
	before := b.Log
	b.learn(told(values), 2)
	b.learn(told(values), 2)
	if want := before + rate*0.5/(2*0.4); math.Abs(b.Log-want) > 1e-12 || len(b.Open) != 1 {
		t.Errorf("after the first pair the bandit is %+v, want weight %v", b, want)
	}
	values[9], values[10] = math.NaN(), math.NaN()
	before = b.Log
	if b.learn(told(values), 2); b.Log != before || len(b.Open) != 0 {
		t.Errorf("a pair that failed has a reward: %+v", b)
	}
}

// The expected loss against the better arm is within the bound of Auer et al. 2002,
// corollary 3.2: 2.63·√(g K ln K).
func TestRegretIsBounded(t *testing.T) {
	const groups, runs = 400, 40
	for _, better := range []bool{true, false} {
		var loss float64
		for seed := range runs {
			rng := rand.New(rand.NewPCG(uint64(seed), 2))
			var b bandit
			values := map[int]float64{9_999: 0, 10_000: 1} // rewards are the values themselves
			for trial := 1; trial <= groups; trial++ {
				random, _ := b.random(trial, 1, groups, false, rng)
				values[trial] = 0.2
				if random == better {
					values[trial] = 0.8
				}
				loss += (0.8 - values[trial]) / runs
				last := map[int]float64{9_999: 0, 10_000: 1, trial: values[trial]}
				b.learn(told(last), 1)
			}
			if len(b.Open) != 0 {
				t.Fatal("rewards are missing")
			}
		}
		if bound := 2.63 * math.Sqrt(0.8*groups*2*math.Ln2); loss > bound {
			t.Errorf("the random arm is better: %t: EXP3 loses %.1f, at most %.1f are expected", better, loss, bound)
		}
	}
}

// A study that goes on beyond its budget begins again with twice the horizon.
func TestHorizonDoubles(t *testing.T) {
	var b bandit
	rng := rand.New(rand.NewPCG(3, 3))
	var horizons []int
	for k := range 70 {
		b.random(2*k+1, 2, 10, false, rng)
		b.Log = 5 // learnt
		if n := len(horizons); n == 0 || horizons[n-1] != b.Horizon {
			horizons = append(horizons, b.Horizon)
		}
		if k == 10 && (b.Groups != 1 || len(b.Open) != 1) {
			t.Errorf("the eleventh pair leaves %+v, want a new beginning", b)
		}
	}
	if len(horizons) != 3 || horizons[0] != 10 || horizons[1] != 20 || horizons[2] != 40 {
		t.Errorf("horizons %v, want 10, 20, 40", horizons)
	}
	var unknown bandit
	if unknown.random(1, 2, -3, false, rng); unknown.Horizon != shortest {
		t.Errorf("an unknown horizon is %d", unknown.Horizon)
	}
}
