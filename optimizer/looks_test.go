package optimizer_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fantasia-hpo/fantasia/optimizer"
)

// Looks never change once they are there, so a curve is known as it was by how many there were. They are few, and the first
// steps have one each.
func TestLooksAreFewAndStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var looks []optimizer.Look
		step, least := int64(-1), math.Inf(1)
		for range rapid.IntRange(1, 200).Draw(t, "reports") {
			step += rapid.Int64Range(1, 50).Draw(t, "later")
			least = min(least, rapid.Float64().Draw(t, "cost"))
			next := optimizer.Looked(looks, step, least)
			if !slices.Equal(next[:len(looks)], looks) || len(next) > len(looks)+1 {
				t.Fatalf("%v becomes %v", looks, next)
			}
			if len(next) > len(looks) {
				if last := next[len(looks)]; last.Step != step || last.Cost != least {
					t.Fatalf("step %d at %v gives %v", step, least, last)
				}
			}
			looks = next
		}
	})
	var all []optimizer.Look
	for step := range int64(1000) {
		all = optimizer.Looked(all, step, 1)
	}
	if len(all) > 40 {
		t.Errorf("1,000 steps have %d looks", len(all))
	}
	for i, look := range all[:6] {
		if look.Step != int64(i) {
			t.Errorf("look %d is at step %d", i, look.Step)
		}
	}
	for _, cost := range []float64{math.NaN(), math.Inf(1)} {
		if got := optimizer.Looked(nil, 1, cost); got != nil {
			t.Errorf("%v gives %v", cost, got)
		}
	}
	if got := optimizer.Looked(nil, -1, 1); got != nil {
		t.Errorf("a step below 0 gives %v", got)
	}
	if got := optimizer.Looked(all, math.MaxInt64, 0); len(got) != len(all)+1 {
		t.Error("the last step there is has no look")
	}
}
