package figure_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/internal/show/diagnosis"
	"github.com/fantasia-hpo/fantasia/internal/show/figure"
)

// A page has the statements of a diagnosis, offers to finish five trials at most, and says when it has not read all curves.
func TestJudged(t *testing.T) {
	if all := figure.Judged(nil, "digits", 3, 3); all != nil {
		t.Errorf("without a model: %+v", all)
	}
	if all := figure.Judged(&diagnosis.Judged{}, "digits", 3, 9); all != nil {
		t.Errorf("of nothing: %+v", all)
	}
	j := &diagnosis.Judged{Checked: 9, Inside: 8}
	for n := range 7 {
		j.Unfinished = append(j.Unfinished, diagnosis.Unfinished{Trial: n + 1, Step: 12, Value: 0.25, Low: 0.125, High: 0.375, Reached: 0.5})
	}
	all := figure.Judged(j, "digits", 120, 300)
	if len(all) != 1 {
		t.Fatalf("%d figures", len(all))
	}
	lines := all[0].Lines
	if len(lines) != 8 ||
		lines[0] != "Calibration: 8 of 9 completed trials ended in the band of 90% that was expected after a third of their steps" ||
		lines[1] != "Unfinished: trial 1 was stopped at step 12 and is expected to end at 0.25 (0.125 to 0.375), better than 0.5, the best "+
			"so far: fantasia trial continue digits 1" ||
		!strings.HasPrefix(lines[6], "So are 2 more") || !strings.Contains(lines[7], "120 of 300 trials") {
		t.Errorf("lines: %s", strings.Join(lines, "\n"))
	}
}

// Of many trials, an even share of them is read, and the best one.
func TestSample(t *testing.T) {
	var all []int
	for i := range 1201 {
		all = append(all, 10+i)
	}
	if got := figure.Sample(all[:120], -1); !slices.Equal(got, all[:120]) {
		t.Errorf("of 120: %v", got)
	}
	got := figure.Sample(all, 1205)
	if len(got) != 121 || got[0] != 10 || got[60] != 10+60*1201/120 || got[120] != 1205 {
		t.Errorf("of 1,201: %v", got)
	}
	if got := figure.Sample(all, 10); len(got) != 120 {
		t.Errorf("with the best among them: %d", len(got))
	}
}
