package curve_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fantasia-hpo/fantasia/coordinator/curve"
)

// kept returns what thinning must leave of a metric's reports, by its definition: every
// n-th one, for the smallest power of two n that leaves at most MaxPoints, and the last.
func kept(all []curve.Point) []curve.Point {
	for stride := 1; ; stride *= 2 {
		var out []curve.Point
		for i, p := range all {
			if i%stride == 0 || i == len(all)-1 {
				out = append(out, p)
			}
		}
		if len(out) <= curve.MaxPoints {
			return out
		}
	}
}

// store is what a ledger holds of a trial's curve.
type store map[int][]byte

func (s store) apply(c curve.Change) {
	for _, segment := range c.Segments {
		s[segment.Number] = segment.Data
	}
	for n := range s {
		if c.Cut && n >= c.Length {
			delete(s, n)
		}
	}
}

func (s store) readCurve(t interface{ Fatal(...any) }) *curve.Curve {
	segments := make([][]byte, len(s))
	for n := range segments {
		segments[n] = s[n]
	}
	c, err := curve.Read(segments)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// For any reports, and however often the curve is stored and read in between, the curve and
// its segments hold the points that the definition of thinning says.
func TestCurveIsThinnedEvenly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, stored := curve.New(3), store{}
		all := map[string][]curve.Point{}
		names := rapid.IntRange(1, 3).Draw(t, "metrics")
		step := rapid.Int64Range(-5, 5).Draw(t, "first step")
		for range rapid.IntRange(1, 6).Draw(t, "parts") {
			for range rapid.IntRange(0, 400).Draw(t, "reports") {
				step++
				report := map[string]float64{}
				for i := range names {
					if i == 0 || step%int64(i+1) == 0 {
						name := fmt.Sprint("m", i)
						report[name] = float64(step) / 3
						all[name] = append(all[name], curve.Point{Step: step, Value: report[name]})
					}
				}
				if !c.Add(step, report) {
					t.Fatalf("step %d was not taken", step)
				}
				if c.Add(step, report) || c.Add(step-1, report) {
					t.Fatalf("step %d was taken again, or an older one", step)
				}
			}
			if change, ok := c.Changes(7); ok {
				stored.apply(change)
			}
			if len(stored) > 0 && rapid.Bool().Draw(t, "again") {
				c = stored.readCurve(t)
			}
		}
		if len(stored) == 0 {
			return
		}
		var want []curve.Series
		for i := range names {
			if points := all[fmt.Sprint("m", i)]; len(points) > 0 {
				want = append(want, curve.Series{Metric: fmt.Sprint("m", i), Points: kept(points)})
			}
		}
		again := stored.readCurve(t)
		if diff := cmp.Diff(want, again.Series()); diff != "" || again.Attempt != 3 {
			t.Fatalf("attempt %d (-want +stored):\n%s", again.Attempt, diff)
		}
	})
}

// A report changes one segment, or two if it begins a new one.
func TestAReportRewritesLittle(t *testing.T) {
	c := curve.New(1)
	for step := range int64(curve.MaxPoints) {
		c.Add(step, map[string]float64{"loss": float64(step)})
		change, ok := c.Changes(1)
		if !ok || len(change.Segments) > 2 || len(change.Segments[0].Data) > 3000 || change.Cut != (step == 0) {
			t.Fatalf("step %d changes %d segments (%v), cut %v", step, len(change.Segments), ok, change.Cut)
		}
	}
	if _, ok := c.Changes(1); ok {
		t.Error("nothing has changed")
	}
}

// For any reports, a trial's segments stay within MaxBytes, and every metric keeps its last
// point.
func TestACurveIsBounded(t *testing.T) {
	for _, metrics := range []int{1, 3, 10, 200} {
		for _, name := range []string{"m", strings.Repeat("n", 250), strings.Repeat("\x01", 250)} {
			c, stored := curve.New(1), store{}
			steps := int64(1200)
			if metrics > 3 {
				steps = 200
			}
			for i := range steps {
				report := map[string]float64{}
				for k := range metrics {
					report[fmt.Sprint(name, k)] = -math.Pi * 1e-200 * float64(i+1)
				}
				c.Add(math.MaxInt64-steps+i, report)
				if change, ok := c.Changes(1); ok {
					stored.apply(change)
				}
			}
			bytes := 0
			for _, data := range stored {
				bytes += len(data)
			}
			if bytes > curve.MaxBytes {
				t.Errorf("%d metrics with names of %d bytes: %d bytes are stored", metrics, len(name), bytes)
			}
			for _, s := range c.Series() {
				if last := s.Points[len(s.Points)-1]; last.Step != math.MaxInt64-1 || len(s.Points) > curve.MaxPoints {
					t.Errorf("%d metrics: %q ends at %v after %d points", metrics, s.Metric, last, len(s.Points))
				}
			}
			if n := len(c.Series()); n > curve.MaxMetrics || n == 0 != strings.HasPrefix(name, "\x01") {
				t.Errorf("%d metrics: %d have a curve", metrics, n)
			}
		}
	}
}

// However many metrics come first, those of Keep are kept, and the bounds hold.
func TestTheMetricsThatCountAreKept(t *testing.T) {
	c, stored := curve.New(1), store{}
	c.Keep = []string{"loss", strings.Repeat("z", 300)}
	for step := range int64(500) {
		report := map[string]float64{c.Keep[0]: -math.Pi * 1e-200, c.Keep[1]: -math.Pi * 1e-200}
		for k := range curve.MaxMetrics {
			report[fmt.Sprint(strings.Repeat("a", 300), k)] = -math.Pi * 1e-200
		}
		c.Add(math.MaxInt64-1000+step, report)
		if change, ok := c.Changes(1); ok {
			stored.apply(change)
		}
	}
	bytes, kept := 0, stored.readCurve(t).Series()
	for _, data := range stored {
		bytes += len(data)
	}
	if n := len(kept); n != curve.MaxMetrics+2 || kept[n-2].Metric != c.Keep[0] || kept[n-1].Metric != c.Keep[1] || bytes > curve.MaxBytes {
		t.Errorf("%d metrics are kept in %d bytes", n, bytes)
	}
}

// The first change deletes what another attempt has stored.
func TestANewAttemptReplacesTheCurve(t *testing.T) {
	stored := store{}
	for attempt, points := range []int64{300, 10} {
		c := curve.New(attempt + 1)
		for step := range points {
			c.Add(step, map[string]float64{"loss": 1})
		}
		change, _ := c.Changes(1)
		stored.apply(change)
	}
	if c := stored.readCurve(t); c.Attempt != 2 || len(c.Series()[0].Points) != 10 {
		t.Errorf("attempt %d with %d points is stored", c.Attempt, len(c.Series()[0].Points))
	}
}

func TestReadRefusesWhatIsNoCurve(t *testing.T) {
	for _, data := range []string{
		"", "[]", `{"series":[{"metric":"a","steps":[1],"values":[]}]}`,
		`{"series":[{"metric":"a","steps":[2,1],"values":[1,1],"seen":2,"stride":1}]}`,
		`{"series":[{"metric":"a","steps":[1],"values":[1]}]}`,
	} {
		if _, err := curve.Read([][]byte{[]byte(data)}); !errors.Is(err, curve.ErrSegments) {
			t.Errorf("%s: error is %v", data, err)
		}
	}
	parts := [][]byte{[]byte(`{"attempt":1,"series":[]}`), []byte(`{"attempt":2,"series":[]}`)}
	if _, err := curve.Read(parts); !errors.Is(err, curve.ErrSegments) {
		t.Errorf("segments of two attempts: error is %v", err)
	}
}

// BenchmarkReport is what a report costs a leader: taking it, and encoding the
// segment that it changes.
func BenchmarkReport(b *testing.B) {
	c := curve.New(1)
	step := int64(0)
	for b.Loop() {
		step++
		c.Add(step, map[string]float64{"loss": 1 / float64(step)})
		if _, ok := c.Changes(1); !ok {
			b.Fatal("nothing changed")
		}
	}
}
