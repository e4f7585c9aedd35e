package migrate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// earlierLines returns each trial to learn from as "value: parameters", why others were left out, and the error.
func earlierLines(t *testing.T, form, text, metric string, parameters ...string) (lines []string) {
	t.Helper()
	trials, skipped, err := Earlier(form, strings.NewReader(text), specOf(t, metric, parameters...))
	for _, one := range trials {
		lines = append(lines, fmt.Sprintf("%v: %v", one.Value, one.Parameters))
	}
	for _, one := range skipped {
		lines = append(lines, one.Place+": "+one.Why)
	}
	if err != nil {
		if lines = append(lines, err.Error()); !errors.Is(err, ErrSource) {
			t.Errorf("%v is no ErrSource", err)
		}
	}
	return lines
}

// A trial of another space counts with what both spaces have.
func TestEarlier(t *testing.T) {
	const (
		x     = "name: x, type: float, min: 0, max: 1"
		lr    = "name: lr, type: float, min: 0.001, max: 1, scale: log"
		n     = "name: n, type: int, min: 1, max: 8"
		kind  = "name: kind, type: categorical, values: [a, b]"
		deep  = "name: deep, type: bool, when: {kind: [a]}"
		level = "name: epochs, type: fidelity, min: 1, max: 9"
	)
	for name, c := range map[string]struct {
		form, text string
		parameters []string
		want       []string
	}{
		"other ranges and parameters": {"csv", "parameter:x,parameter:n,parameter:more,value\n-3,70,q,1\n0.5,2.5,q,2\n", []string{x, n, kind},
			[]string{"1: map[n:70 x:-3]", "2: map[n:2.5 x:0.5]"}},
		"no place on the scale": {"csv", "lr,x,loss\n-1,0.5,1\n10,0.5,2\n", []string{lr, x},
			[]string{"2: map[lr:10 x:0.5]", `line 2: parameter lr is "-1": want a number from 0.001 to 1`}},
		"a text was a number": {"csv", "x,n,loss\nlow,3,1\nhigh,4,2\n", []string{x, n}, []string{"1: map[n:3]", "2: map[n:4]"}},
		"another choice": {"csv", "x,kind,loss\n0.5,a,1\n0.5,c,2\n", []string{x, kind},
			[]string{"1: map[kind:a x:0.5]", `line 3: parameter kind is "c": want a, b`}},
		"a condition": {"csv", "kind,deep,loss\na,true,1\nb,,2\na,,3\nb,false,4\n", []string{kind, deep},
			[]string{"1: map[deep:true kind:a]", "2: map[kind:b]", "3: map[kind:a]", "4: map[deep:false kind:b]"}},
		"booleans": {"json", `{"parameters": {"kind": "a", "deep": true}, "value": 1} {"parameters": {"kind": "a", "deep": 0}, "value": 2}`,
			[]string{kind, deep}, []string{"1: map[deep:true kind:a]", "2: map[deep:false kind:a]"}},
		"another fidelity": {"csv", "x,epochs,loss\n0.5,9,1\n0.25,500,2\n", []string{x, level},
			[]string{"1: map[epochs:9 x:0.5]", "2: map[x:0.25]"}},
		"failed trials": {"csv", "state,x,loss\nFAILED,0.5,\nCOMPLETED,0.25,1\nCOMPLETED,0.25,nan\n", []string{x},
			[]string{"1: map[x:0.25]", `line 2: its state is FAILED: only completed trials have a value`,
				`line 4: loss is "nan": want a finite number, such as 0.5`}},
		"only failed trials": {"csv", "state,x,loss\nFAILED,0.5,\n", []string{x}, []string{
			"cannot be imported: no trial can be used, such as line 2: its state is FAILED: only completed trials have a value"}},
		"nothing in common": {"csv", "y,loss\n1,2\n", []string{x},
			[]string{"cannot be imported: no column is a parameter of the study: want one named x, got y, loss"}},
		"nothing in common, as objects": {"json", `{"parameters": {"y": 1}, "value": 2}`, []string{x}, []string{
			"cannot be imported: no trial can be used, such as object 1: it has none of the study's parameters: want some of x"}},
		"another metric": {"csv", "x,value,value:accuracy\n1,2,2\n", []string{x}, []string{"cannot be imported: no column is the objective: " +
			"the file's value is that of accuracy, not of loss: want a column named loss, got x, value, value:accuracy"}},
		"another metric, as objects": {"json", `{"x": 1, "value": 2, "value:accuracy": 2}`, []string{x}, []string{
			"cannot be imported: the file's value is that of accuracy, not of loss: want a column named loss"}},
		"no metric": {"csv", "x,y\n1,2\n", []string{x}, []string{
			"cannot be imported: no column is the objective: want one named value or loss, got x, y"}},
		"no line":   {"csv", "", []string{x}, []string{"cannot be imported: read the header: EOF"}},
		"no row":    {"csv", "x,loss\n", []string{x}, []string{"cannot be imported: it has no trials"}},
		"no object": {"json", "[]", []string{x}, []string{"cannot be imported: it has no trials"}},
		"cut":       {"json", `{"x": 1, "loss": 2} {"x":`, []string{x}, []string{"cannot be imported: after object 1: unexpected EOF"}},
		"cut row": {"csv", "x,loss\n1,2\n3", []string{x}, []string{
			"cannot be imported: line 3 has 1 cells, the header 2: want as many, and quotes around a cell with a separator in it"}},
		"not Parquet": {"parquet", "x,loss\n1,2\n", []string{x}, []string{"cannot be imported: not a Parquet file: "}},
	} {
		got := earlierLines(t, c.form, c.text, "loss", c.parameters...)
		same := slices.Equal(got, c.want)
		if name == "not Parquet" {
			same = len(got) == 1 && strings.HasPrefix(got[0], c.want[0])
		}
		if !same {
			t.Errorf("%s:\n  %s\nwant\n  %s", name, strings.Join(got, "\n  "), strings.Join(c.want, "\n  "))
		}
	}
}

// How long trials took, and what they have cost, comes from the columns of trials.csv and from what
// `fantasia trial list -o json` prints. They are not known where a cell is no number, where the study has a parameter of this
// name, and in a study with levels.
func TestEarlierEffort(t *testing.T) {
	const (
		x       = "name: x, type: float, min: 0, max: 1"
		seconds = "name: seconds, type: float, min: 0, max: 9"
		level   = "name: epochs, type: fidelity, min: 1, max: 9"
	)
	for name, c := range map[string]struct {
		form, text string
		parameters []string
		want       []float64 // the seconds and the cost of each trial
	}{
		"columns":     {"csv", "x,loss,seconds,cost\n0.5,1,2.5,0.25\n0.5,2,,-1\n0.5,3,soon,\n", []string{x}, []float64{2.5, 0.25, 0, 0, 0, 0}},
		"a parameter": {"csv", "x,loss,seconds,cost\n0.5,1,2.5,0.25\n", []string{x, seconds}, []float64{0, 0.25}},
		"levels":      {"csv", "x,loss,seconds,cost\n0.5,1,2.5,0.25\n", []string{x, level}, []float64{0, 0}},
		"objects": {"json", `{"parameters": {"x": 0.5}, "value": 1, "cost": 3,
			"times": {"started": "2026-11-30T01:00:00.5Z", "ended": "2026-11-30T01:00:03+00:00"}}
			{"parameters": {"x": 0.5}, "value": 1, "times": {"started": "2026-11-30T01:00:00.5Z"}}
			{"parameters": {"x": 0.5}, "value": 1, "times": 7}`,
			[]string{x}, []float64{2.5, 3, 0, 0, 0, 0}},
	} {
		trials, skipped, err := Earlier(c.form, strings.NewReader(c.text), specOf(t, "loss", c.parameters...))
		if err != nil || len(skipped) > 0 {
			t.Errorf("%s: %v, left out %v", name, err, skipped)
		}
		var got []float64
		for _, one := range trials {
			got = append(got, one.Seconds, one.Cost)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
