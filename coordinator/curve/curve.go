// Package curve keeps what an attempt's program has reported at each step, by metric.
// It keeps at most MaxPoints points of a metric and about MaxBytes of a trial. Beyond
// these limits it thins points evenly, but always keeps a metric's last one.
//
// A curve is stored in segments of up to SegmentPoints points, so that a report
// rewrites only one of them. Changes returns the segments that have changed.
package curve

import (
	"cmp"
	"maps"
	"slices"
)

const (
	// MaxPoints bounds the points of a metric.
	MaxPoints = 1000
	// MaxBytes bounds the stored segments of a trial. If they would be larger, the
	// metrics with the most points lose every other point.
	MaxBytes = 64 << 10
	// MaxMetrics bounds the metrics of a trial; further metrics are ignored, except those of
	// Curve.Keep.
	MaxMetrics = 64
	// SegmentPoints bounds the points of a segment.
	SegmentPoints = 64
	// MaxName bounds a metric's name, in bytes of JSON; metrics with longer names are
	// ignored.
	MaxName = 320
	// fewPoints is how many points of a metric are always kept. With MaxMetrics metrics
	// and those of Keep, all with the longest names, they fit into MaxBytes.
	fewPoints = 8
	// spareBytes is how many bytes thinning frees, so that the next report need not
	// thin again.
	spareBytes = MaxBytes / 4
)

// Point is a value at a step.
type Point struct {
	Step  int64
	Value float64
}

// Series holds the kept points of a metric, in ascending order of steps.
type Series struct {
	Metric string
	Points []Point
}

// Reported holds what one attempt of a trial has reported, or a part of it, by metric and step.
type Reported struct {
	Trial, Attempt int
	Series         []Series
}

// Curve is the curve of one attempt. Not safe for concurrent use.
type Curve struct {
	// Attempt is the number of the attempt that reported it.
	Attempt int
	// Keep names at most two metrics that are kept even if there are MaxMetrics others.
	Keep     []string
	series   []*series
	index    map[string]int
	segments []segment
	bytes    int // of all segments, as last encoded
	// dirty are the numbers of the segments that changed since Changes was called.
	dirty map[int]bool
	cut   bool // there may be stored segments beyond the last one
}

// series is a metric. Every stride-th report is kept, and the last one.
type series struct {
	metric      string
	seen        int64 // how many reports were accepted
	stride      int64
	kept        int
	last        int64 // the step of its last point
	segment, at int   // where that point is
}

// segment is a part of a curve that is stored under its own key.
type segment struct {
	points []member
	bytes  int
}

// member is a point of a segment and the number of its series.
type member struct {
	series int
	Point
}

// New returns an empty curve for an attempt. Its first change also deletes what is
// stored of the trial's earlier attempts.
func New(attempt int) *Curve {
	return &Curve{Attempt: attempt, index: map[string]int{}, dirty: map[int]bool{}, cut: true}
}

// Empty reports whether nothing was reported.
func (c *Curve) Empty() bool { return len(c.series) == 0 }

// Bytes returns about how many bytes the curve takes in memory.
func (c *Curve) Bytes() int64 {
	const point, perSeries = 24, 128
	n := len(c.segments) * SegmentPoints * point
	for _, s := range c.series {
		n += perSeries + len(s.metric)
	}
	return int64(n)
}

// Add adds a report, whose values MUST be finite, and reports whether the curve has
// changed. It accepts only steps after a metric's last one, so a repeated or late
// report changes nothing.
func (c *Curve) Add(step int64, metrics map[string]float64) bool {
	changed := false
	for _, name := range slices.Sorted(maps.Keys(metrics)) {
		changed = c.add(name, Point{step, metrics[name]}) || changed
	}
	return changed
}

// add adds a value of one metric. Beyond MaxMetrics a new metric is ignored rather than refused: a
// program that reports too much is still evaluated.
func (c *Curve) add(metric string, p Point) bool {
	i, known := c.index[metric]
	switch {
	case !known && (len(c.series) >= MaxMetrics && !slices.Contains(c.Keep, metric) || len(quote(metric)) > MaxName):
		return false
	case !known:
		i = len(c.series)
		c.index[metric] = i
		c.series = append(c.series, &series{metric: metric, stride: 1})
	case p.Step <= c.series[i].last:
		return false
	}
	s := c.series[i]
	// Keep the last point if it is a stride-th one. Otherwise the new one replaces it.
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

// append puts a point of a series at the end of the curve. The segment that had the series' last
// point before changes too, as it has seen and stride no longer.
func (c *Curve) append(i int, p Point) {
	n := len(c.segments) - 1
	if n < 0 || len(c.segments[n].points) == SegmentPoints {
		c.segments = append(c.segments, segment{points: make([]member, 0, SegmentPoints)})
		n++
	}
	s := c.series[i]
	if s.kept > 0 && s.segment != n {
		c.dirty[s.segment] = true // the new last segment stores seen and stride instead
	}
	c.segments[n].points = append(c.segments[n].points, member{i, p})
	c.dirty[n] = true
	s.segment, s.at, s.last = n, len(c.segments[n].points)-1, p.Step
	s.kept++
}

// thin doubles a series' stride: it removes every other point, except the last. The
// caller MUST call lay afterwards.
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

// lay distributes all points over segments again, grouped by metric, so that few
// segments repeat a metric's name.
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

// fit thins the longest series until the curve is well below MaxBytes.
func (c *Curve) fit() {
	for c.bytes > MaxBytes-spareBytes {
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

// At returns the value of a metric at a step; kept is false if the curve has no such point. last is the
// metric's last step, and known is false if the curve has no point of the metric.
func (c *Curve) At(metric string, step int64) (value float64, kept bool, last int64, known bool) {
	i, known := c.index[metric]
	if !known {
		return 0, false, 0, false
	}
	s := c.series[i]
	if step > s.last {
		return 0, false, s.last, true
	}
	for _, seg := range c.segments {
		for _, m := range seg.points {
			if m.series == i && m.Step == step {
				return m.Value, true, s.last, true
			}
		}
	}
	return 0, false, s.last, true
}

// Series returns the kept points of each metric, by name.
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
