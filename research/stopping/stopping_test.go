package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space/celspace"
)

// tiny is a table of 160 networks of four epochs, which take a second each. The loss of
// a network with learning rate n after epoch e (from 0) is 0.6 - n/20 - e/100.
func tiny(t *testing.T) *table {
	t.Helper()
	head := `{"data": ["breast"], "seeds": 1, "epochs": 4, "seconds": [[1]],
		"grid": {"lr": [0,1,2,3,4,5,6,7,8,9], "alpha": [0,1], "width": [0,1], "layers": [0,1], "batch": [0,1]}}`
	var losses []uint16
	for n := range 160 {
		for e := range 4 {
			losses = append(losses, uint16(6000-500*(n/16)-100*e))
		}
	}
	path := write(t, strings.ReplaceAll(head, "\n", " ")+"\n", losses)
	table, err := readTable(path)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func write(t *testing.T, head string, losses []uint16) string {
	t.Helper()
	var content bytes.Buffer
	zip := gzip.NewWriter(&content)
	if _, err := zip.Write([]byte(head)); err != nil {
		t.Fatal(err)
	}
	if err := binary.Write(zip, binary.LittleEndian, losses); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "curves.gz")
	if err := os.WriteFile(path, content.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTable(t *testing.T) {
	k := tiny(t).task("breast", 0)
	if got := k.curve(50); len(got) != 4 || got[0] != 0.45 || got[3] != 0.42 {
		t.Errorf("the curve of network 50 is %v, want 0.45 to 0.42", got)
	}
	if n := k.network(study.Point{"lr": int64(7), "alpha": int64(1), "width": int64(0), "layers": int64(0), "batch": int64(1)}); n != 7*16+8+
		1 {
		t.Errorf("the point is network %d, want 121", n)
	}
	// The best loss is 0.12, and guessing one of two classes has ln 2.
	if want := 0.12 + 0.01*(0.6931471805599453-0.12); math.Abs(k.target-want) > 1e-12 {
		t.Errorf("the target is %g, want %g", k.target, want)
	}
	path := write(t, `{"data": ["breast"], "seeds": 1, "epochs": 4, "grid": {}}`+"\n", make([]uint16, 3))
	if _, err := readTable(path); err == nil || !strings.Contains(err.Error(), "6 bytes of losses") {
		t.Errorf("a table that is cut off: %v", err)
	}
}

// Without stopping, only the end of one of the best networks reaches the target, and all
// networks take four seconds.
func TestPlay(t *testing.T) {
	k := tiny(t).task("breast", 0)
	for name, u := range tuners() {
		if !strings.HasPrefix(name, "random+none") && !strings.HasPrefix(name, "random+only") {
			continue
		}
		for seed := range 5 {
			r, err := play(t.Context(), u, k, seed)
			if err != nil {
				t.Fatal(err)
			}
			if !r.Reached || math.Mod(r.Seconds, 4) != 0 || r.Stopped != 0 || r.Trials > 160 {
				t.Errorf("%s, seed %d: %+v, want the target reached at the end of a trial", name, seed, r)
			}
		}
	}
	u := tuners()["random+none:as-is"]
	u.only = 1
	r, err := play(t.Context(), u, k, 0)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Reached || r.Stopped == 0 {
		t.Errorf("only the best goes on after an epoch: %+v", r)
	}
}

// Only the networks with the largest learning rate reach the target, at the end of their
// fourth epoch. With promotion most others are trained for one, and none starts again: the
// time of eight workers is that of the epochs, each of a second.
func TestPlayPromoted(t *testing.T) {
	k := tiny(t).task("breast", 0)
	for _, name := range []string{"random+promote", "tpe+promote", "bohb+promote"} {
		for seed := range 5 {
			r, err := play(t.Context(), tuners()[name], k, seed)
			if err != nil {
				t.Fatal(err)
			}
			if !r.Reached || r.Seconds < 4 || r.Stopped == 0 || r.Epochs >= 2*r.Trials {
				t.Errorf("%s, seed %d: %+v, want the target reached by a few long trials", name, seed, r)
			}
			if most := workers * int(r.Seconds); r.Epochs > most || r.Epochs <= most-workers {
				t.Errorf("%s, seed %d: %d epochs in %g s, want all workers busy", name, seed, r.Epochs, r.Seconds)
			}
			again, err := play(t.Context(), tuners()[name], k, seed)
			if err != nil || *again != *r {
				t.Errorf("%s, seed %d: %+v, and played again %+v, %v", name, seed, r, again, err)
			}
		}
	}
}

func TestGain(t *testing.T) {
	r := &run{completed: [][]float64{least([]float64{5, 6, 3, 4}), least([]float64{4, 3, 2, 2})}}
	if got := r.gain(2); got != (3-5+2-3)/2.0 {
		t.Errorf("completed trials gained %g after step 2, want -1.5", got)
	}
}

// A normal variable of mean 1 and standard deviation 2 that is at most 1 has the mean
// 1 - 2 √(2/π), since the half-normal distribution has the mean √(2/π). A bound far above
// says nothing, and far below the mean comes close to the bound.
func TestTruncated(t *testing.T) {
	for _, c := range []struct{ bound, mean, sd, want, within float64 }{
		{1, 1, 2, 1 - 2*math.Sqrt(2/math.Pi), 1e-12},
		{100, 1, 2, 1, 1e-12},
		{-100, 1, 0.1, -100, 1e-3},
		{2, math.Inf(1), 1, 2, 0},
		{2, 1, math.NaN(), 2, 0},
	} {
		got := truncated(c.bound, c.mean, c.sd)
		if math.Abs(got-c.want) > c.within || got > c.bound {
			t.Errorf("at most %g, of mean %g and sd %g: %g, want %g", c.bound, c.mean, c.sd, got, c.want)
		}
	}
}

// What the optimiser is told of a stopped trial is at most its bound, and lower where its
// completed neighbours are. The problem itself keeps the bounds.
func TestImpute(t *testing.T) {
	k := tiny(t).task("breast", 0)
	points, err := celspace.Of(&study.Study{Spec: study.Spec{
		Objective: study.Objective{Metric: "loss", Direction: study.Minimize}, Parameters: k.parameters(),
	}})
	if err != nil {
		t.Fatal(err)
	}
	given := optimizer.Problem{Space: points, Direction: study.Minimize, Parallelism: workers, MaxTrials: most, First: 9}
	add := func(lr int64, outcome optimizer.Outcome, value float64) {
		given.Observations = append(given.Observations, optimizer.Observation{
			Trial: len(given.Observations) + 1, Outcome: outcome, Values: study.Values{value},
			Point: study.Point{"lr": lr, "alpha": int64(0), "width": int64(0), "layers": int64(0), "batch": int64(0)},
		})
	}
	for lr := range int64(6) {
		add(lr, optimizer.OutcomeCompleted, 0.6-0.05*float64(lr))
	}
	add(1, optimizer.OutcomePruned, 0.9) // its neighbours end between 0.5 and 0.6
	add(7, optimizer.OutcomePruned, 0.9)
	problem := given
	if err := (&imputing{}).impute(t.Context(), &problem); err != nil {
		t.Fatal(err)
	}
	for i, o := range problem.Observations {
		bound := given.Observations[i].Values.First()
		switch value := o.Values.First(); {
		case o.Outcome != optimizer.OutcomeCompleted:
			t.Errorf("trial %d is %s", o.Trial, o.Outcome)
		case i < 6 && value != bound || value > bound:
			t.Errorf("trial %d has the value %g, and had %g", o.Trial, value, bound)
		case o.Trial == 7 && (value < 0.5 || value > 0.6):
			t.Errorf("trial %d has the value %g, want between its neighbours' 0.5 and 0.6", o.Trial, value)
		}
	}
	if given.Observations[6].Values.First() != 0.9 {
		t.Error("the bound is gone")
	}
}
