package optimizer_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// A packed point is the same point again, with the types of its values and without the parameters that are not active.
func TestPackedPoints(t *testing.T) {
	var names []string
	point := study.Point{}
	for i := range 40 {
		name := fmt.Sprintf("x%d", i)
		names = append(names, name)
		switch i % 5 {
		case 0:
			point[name] = float64(i) / 7
		case 1:
			point[name] = -int64(i) << 40
		case 2:
			point[name] = "a text"
		case 3:
			point[name] = i%2 == 0
		}
	}
	o := optimizer.Observation{Trial: 1, Point: point}
	packed := o.Pack(names)
	if packed.Packed == nil || packed.Point != nil {
		t.Fatal("the point was not packed")
	}
	if diff := cmp.Diff(point, packed.At()); diff != "" {
		t.Error(diff)
	}
	again := packed.Pack(names)
	if !again.Same(&packed) || again.Same(&o) || !o.Same(&optimizer.Observation{Point: point}) {
		t.Error("observations of the same point, or of others, are not told apart")
	}
	// A point with a name that is not listed stays as it is, and so does a small one.
	if other := o.Pack(names[:20]); other.Packed != nil {
		t.Error("a point of another space was packed")
	}
	if small := (optimizer.Observation{Point: study.Point{"x": 1.0}}).Pack([]string{"x"}); small.Packed != nil {
		t.Error("a small point was packed")
	}
}
