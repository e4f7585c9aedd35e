package bench

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space/celspace"
)

// The quantiles of each law, from its definition. The medians are 0.6744898·√(π/2) for
// the half-normal, exp(−σ²/2) for the lognormal, and x·2^(1/α) for Pareto.
func TestQuantiles(t *testing.T) {
	for _, tt := range []struct {
		law          string
		median, high float64 // at 0.5 and at 0.975
	}{
		{"constant", 1, 1},
		{"uniform", 1, 1.95},
		{"half-normal", 0.6744897501960817 * math.Sqrt(math.Pi/2), 2.241402727604947 * math.Sqrt(math.Pi/2)},
		{"exponential", math.Ln2, -math.Log(0.025)},
		{"lognormal", math.Exp(-0.5), math.Exp(1.959963984540054 - 0.5)},
		{"lognormal:0.5", math.Exp(-0.125), math.Exp(0.5*1.959963984540054 - 0.125)},
		{"pareto", 0.6 * math.Pow(2, 0.4), 0.6 * math.Pow(40, 0.4)},
		{"pareto:2", 0.5 * math.Sqrt2, 0.5 * math.Sqrt(40)},
	} {
		law, err := ParseLaw(tt.law)
		if err != nil {
			t.Fatal(err)
		}
		for u, want := range map[float64]float64{0.5: tt.median, 0.975: tt.high} {
			if got := law.quantile(u); math.Abs(got-want) > 1e-12*want {
				t.Errorf("%s: quantile %v is %v, want %v", tt.law, u, got, want)
			}
		}
		if law.String() != tt.law {
			t.Errorf("%s is called %q", tt.law, law)
		}
	}
}

func TestDrawsHaveMeanOne(t *testing.T) {
	for _, name := range LawNames() {
		law, err := ParseLaw(name)
		if err != nil {
			t.Fatal(err)
		}
		var draws []float64
		for trial := 1; trial <= 20_000; trial++ {
			d := law.Draw(7, trial)
			if !(d >= 0) || math.IsInf(d, 0) {
				t.Fatalf("%s: a duration of %v", name, d)
			}
			draws = append(draws, d)
		}
		if e := estimate(draws); math.Abs(e.Mean-1) > 4**e.SE+1e-12 {
			t.Errorf("%s: mean %v ± %v, want 1", name, e.Mean, *e.SE)
		}
	}
}

func TestDrawsDependOnSeedAndTrialAlone(t *testing.T) {
	law, err := ParseLaw("exponential")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[float64]bool{}
	for seed := range uint64(50) {
		for trial := 1; trial <= 50; trial++ {
			d := law.Draw(seed, trial)
			if again := law.Draw(seed, trial); again != d {
				t.Fatalf("seed %d, trial %d: %v and %v", seed, trial, d, again)
			}
			if seen[d] {
				t.Fatalf("seed %d, trial %d: %v was drawn before", seed, trial, d)
			}
			seen[d] = true
		}
	}
}

func TestLawsThatAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"": "want one of constant, uniform", "gamma": "want one of constant", "lognormal:": "want a number", "lognormal:x": "want a number",
		"lognormal:0": "want a standard deviation", "lognormal:NaN": "want a standard deviation", "lognormal:6": "up to 5",
		"pareto:1": "above 1", "pareto:Inf": "want a number", "uniform:2": "only lognormal and pareto",
	} {
		if _, err := ParseLaw(text); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v; want an error with %q", text, err, want)
		}
	}
}

func TestPointFactor(t *testing.T) {
	low, high := 10.0, 20.0
	space, err := celspace.New([]study.Parameter{
		{Name: "size", Type: study.Float, Min: &low, Max: &high}, {Name: "flag", Type: study.Bool},
	}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	encoding := optimizer.NewEncoding(space)
	for size, want := range map[float64]float64{10: 0.25, 15: 1, 20: 1.75} {
		if got := pointFactor(encoding, study.Point{"size": size, "flag": true}); math.Abs(got-want) > 1e-12 {
			t.Errorf("size %v: %v, want %v", size, got, want)
		}
	}
}

func TestCharges(t *testing.T) {
	for _, tt := range []struct {
		text string
		unit time.Duration
		took time.Duration
		want float64
	}{
		{"0", time.Minute, time.Hour, 0}, {"0.25", 0, time.Hour, 0.25}, {"measured", time.Minute, 3 * time.Second, 0.05},
	} {
		c, err := ParseCharge(tt.text, tt.unit)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.cost(tt.took); math.Abs(got-tt.want) > 1e-15 {
			t.Errorf("%s: %v costs %v, want %v", tt.text, tt.took, got, tt.want)
		}
	}
	for _, text := range []string{"", "-1", "NaN", "Inf", "much"} {
		if _, err := ParseCharge(text, time.Minute); err == nil || !strings.Contains(err.Error(), "want measured, or a number") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := ParseCharge("measured", 0); err == nil {
		t.Error("measured without a unit is accepted")
	}
}
