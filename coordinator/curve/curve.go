// Package curve keeps what an attempt's program has reported at each step, by
// metric, within bounds: at most MaxPoints points of a metric and about MaxBytes of
// a trial. Beyond them points are left out evenly; a metric's last point is always
// there.
//
// A curve is stored in segments of up to SegmentPoints points, so that a report
// rewrites a single one of them. Changes returns those that have changed.
package curve

import (
	"cmp"
	"slices"
)

const (
	// MaxPoints bounds the points of a metric.
	MaxPoints = 1000
	// MaxBytes bounds the stored segments of a trial. Where they would be larger,
	// the longest metrics lose every other point.
	MaxBytes = 64 << 10
	// MaxMetrics bounds the metrics of a trial; those that are first reported
	// beyond it have no curve.
	MaxMetrics = 64
	// SegmentPoints bounds the points of a segment.
	SegmentPoints = 64
	// MaxName bounds a metric's name, in bytes of JSON; one with a longer name has
	// no curve.
	MaxName = 320
	// fewPoints is how many points of a metric are always kept: as many of
	// MaxMetrics with the longest names fit into MaxBytes.
	fewPoints = 8
	// roomBytes is what thinning leaves room for, so that it is not needed again
	// with the next report.
	roomBytes = MaxBytes / 4
)

// Point is a value at a step.
type Point struct {
	Step  int64
	Value float64
}

// Series is what is kept of a metric, by rising step.
type Series struct {
	Metric string
	Points []Point
}

// Curve is the curve of one attempt. Not safe for concurrent use.
type Curve struct {
	// Attempt is the number of the attempt that reported it.
	Attempt  int
	series   []*series
	index    map[string]int
	segments []segment
	bytes    int // of all segments, as they were encoded last
	// dirty are the numbers of the segments that changed since Changes was called.
	dirty map[int]bool
	cut   bool // there may be stored segments beyond the last one
}

// series is a metric: every stride-th of its reports is kept, and the last.
type series struct {
	metric      string
	seen        int64 // how many reports were taken
	stride      int64
	kept        int
	last        int64 // the step of its last point
	segment, at int   // where that is
}

// segment is a part of a curve that is stored by itself.
type segment struct {
	points []member
	bytes  int
}

// member is a point of a segment and the number of its series.
type member struct {
	series int
	Point
}

// New returns an empty curve of an attempt. Whatever is stored of its trial's
// earlier attempts is to go with its first change.
func New(attempt int) *Curve {
	return &Curve{Attempt: attempt, index: map[string]int{}, dirty: map[int]bool{}, cut: true}
}

// Empty reports whether nothing was reported.
func (c *Curve) Empty() bool { return len(c.series) == 0 }

// Add takes a report, whose values are finite, and reports whether it has changed
// the curve. Of each metric it takes steps beyond the last one alone: a report that
// comes again, or late, changes nothing.
func (c *Curve) Add(step int64, metrics map[string]float64) bool {
	names := make([]string, 0, len(metrics))
	for name := range metrics {
		names = append(names, name)
	}
	slices.Sort(names)
	changed := false
	for _, name := range names {
		changed = c.add(name, Point{step, metrics[name]}) || changed
	}
	return changed
}

func (c *Curve) add(metric string, p Point) bool {
	i, known := c.index[metric]
	switch {
	case !known && (len(c.series) == MaxMetrics || len(quote(metric)) > MaxName):
		return false
	case !known:
		i = len(c.series)
		c.index[metric] = i
		c.series = append(c.series, &series{metric: metric, stride: 1})
	case p.Step <= c.series[i].last:
		return false
	}
	s := c.series[i]
	// The last point stays where its turn was; else the new one takes its place.
	if (s.seen-1)%s.stride == 0 {
		c.append(i, p)
	} else {
		c.segments[s.segment].points[s.at].Point = p
		s.last = p.Step
		c.dirty[s.segment] = true
	}
	s.seen++
	if s.kept > MaxPoints {
		c.thin(i)
		c.lay()
	}
	return true
}

// append puts a point of a series at the end of the curve.
func (c *Curve) append(i int, p Point) {
	n := len(c.segments) - 1
	if n < 0 || len(c.segments[n].points) == SegmentPoints {
		c.segments = append(c.segments, segment{points: make([]member, 0, SegmentPoints)})
		n++
	}
	s := c.series[i]
	if s.kept > 0 && s.segment != n {
		c.dirty[s.segment] = true // it no longer says how much was seen
	}
	c.segments[n].points = append(c.segments[n].points, member{i, p})
	c.dirty[n] = true
	s.segment, s.at, s.last = n, len(c.segments[n].points)-1, p.Step
	s.kept++
}

// thin doubles a series' stride: every other of its points goes, but not the last.
// lay must follow.
func (c *Curve) thin(i int) {
	s := c.series[i]
	n := 0
	for k := range c.segments {
		c.segments[k].points = slices.DeleteFunc(c.segments[k].points, func(m member) bool {
			if m.series != i {
				return false
			}
			n++
			return (n-1)%2 == 1 && n != s.kept
		})
	}
	s.stride *= 2
}

// lay lays all points out anew, each metric's together: its name is then in few
// segments.
func (c *Curve) lay() {
	all := make([]member, 0, len(c.segments)*SegmentPoints)
	for k := range c.segments {
		all = append(all, c.segments[k].points...)
	}
	slices.SortStableFunc(all, func(a, b member) int { return cmp.Compare(a.series, b.series) })
	c.segments, c.bytes, c.cut = nil, 0, true
	clear(c.dirty)
	for _, s := range c.series {
		s.kept = 0
	}
	for _, m := range all {
		c.append(m.series, m.Point)
	}
}

// fit leaves points of the longest series out until the curve is well within its
// bytes.
func (c *Curve) fit() {
	for c.bytes > MaxBytes-roomBytes {
		longest := 0
		for i, s := range c.series {
			if s.kept > c.series[longest].kept {
				longest = i
			}
		}
		if c.series[longest].kept <= fewPoints {
			return
		}
		c.thin(longest)
		c.lay()
		c.encodeDirty()
	}
}

// Series returns what is kept of each metric, by name.
func (c *Curve) Series() []Series {
	out := make([]Series, len(c.series))
	for i, s := range c.series {
		out[i] = Series{Metric: s.metric, Points: make([]Point, 0, s.kept)}
	}
	for _, seg := range c.segments {
		for _, m := range seg.points {
			out[m.series].Points = append(out[m.series].Points, m.Point)
		}
	}
	slices.SortFunc(out, func(a, b Series) int { return cmp.Compare(a.Metric, b.Metric) })
	return out
}
