package curve

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
)

// ErrSegments says that stored segments are not those of a valid curve.
var ErrSegments = errors.New("the stored segments do not make a curve")

// Change holds the changes of a trial's curve to store. A journal stores it as JSON, as it is.
type Change struct {
	Trial int `json:"trial"`
	// Segments are the segments that changed, in ascending order of numbers.
	Segments []Segment `json:"segments,omitempty"`
	// Length is how many segments the curve has. If Cut is set, the stored segments
	// of the trial from number Length on are obsolete and MUST be deleted.
	Length int  `json:"length"`
	Cut    bool `json:"cut,omitempty"`
}

// Segment is a stored part of a curve.
type Segment struct {
	Number int             `json:"number"`
	Data   json.RawMessage `json:"data"`
}

// stored is a segment as JSON.
type stored struct {
	Attempt int            `json:"attempt"`
	Series  []storedSeries `json:"series"`
}

// storedSeries holds the points of a metric in one segment. Seen and Stride describe
// the whole metric, and are set only in the segment of its last point.
type storedSeries struct {
	Metric string    `json:"metric"`
	Steps  []int64   `json:"steps"`
	Values []float64 `json:"values"`
	Seen   int64     `json:"seen,omitempty"`
	Stride int64     `json:"stride,omitempty"`
}

// Changes returns the changes since the last call; false if there are none. The caller
// MUST store them in one transaction.
func (c *Curve) Changes(trial int) (Change, bool) {
	if len(c.dirty) == 0 {
		return Change{}, false
	}
	encoded := c.encodeDirty()
	if c.bytes > MaxBytes {
		c.fit()
		encoded = c.encodeDirty()
	}
	change := Change{Trial: trial, Length: len(c.segments), Cut: c.cut}
	for _, n := range slices.Sorted(maps.Keys(encoded)) {
		change.Segments = append(change.Segments, Segment{Number: n, Data: encoded[n]})
	}
	clear(c.dirty)
	c.cut = false
	return change, true
}

// encodeDirty encodes the segments that changed, and keeps bytes up to date, by which Changes
// decides to thin. It leaves them dirty: thinning may change them again.
func (c *Curve) encodeDirty() map[int][]byte {
	encoded := make(map[int][]byte, len(c.dirty))
	for n := range c.dirty {
		data := c.encode(n)
		c.bytes += len(data) - c.segments[n].bytes
		c.segments[n].bytes = len(data)
		encoded[n] = data
	}
	return encoded
}

// encode writes a segment like encoding/json would write a stored, but in a tenth of the
// time, since each report of a program rewrites a segment.
func (c *Curve) encode(n int) []byte {
	points := c.segments[n].points
	b := make([]byte, 0, 64+32*len(points))
	b = append(b, `{"attempt":`...)
	b = strconv.AppendInt(b, int64(c.Attempt), 10)
	b = append(b, `,"series":[`...)
	comma := false
	for i, s := range c.series {
		if !slices.ContainsFunc(points, func(m member) bool { return m.series == i }) {
			continue
		}
		if comma {
			b = append(b, ',')
		}
		comma = true
		b = append(append(b, `{"metric":`...), quote(s.metric)...)
		b = append(b, `,"steps":[`...)
		for _, m := range points {
			if m.series == i {
				b = append(strconv.AppendInt(b, m.Step, 10), ',')
			}
		}
		b = append(b[:len(b)-1], `],"values":[`...)
		for _, m := range points {
			if m.series == i {
				b = append(strconv.AppendFloat(b, m.Value, 'g', -1, 64), ',')
			}
		}
		b = append(b[:len(b)-1], ']')
		if s.segment == n {
			b = strconv.AppendInt(append(b, `,"seen":`...), s.seen, 10)
			b = strconv.AppendInt(append(b, `,"stride":`...), s.stride, 10)
		}
		b = append(b, '}')
	}
	return append(b, "]}"...)
}

func quote(text string) []byte {
	data, _ := json.Marshal(text) // never fails for a text
	return data
}

// Read restores a curve from its stored segments, in the order of their numbers, from 0.
// The error wraps ErrSegments.
func Read(segments [][]byte) (*Curve, error) {
	c := New(0)
	for n, data := range segments {
		s, err := decode(data)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			c.Attempt = s.Attempt
		}
		if s.Attempt != c.Attempt {
			return nil, fmt.Errorf("%w: segment %d is of attempt %d, but segment 0 is of attempt %d", ErrSegments, n, s.Attempt, c.Attempt)
		}
		if err := c.readSegment(n, s); err != nil {
			return nil, err
		}
		c.segments[n].bytes = len(data)
		c.bytes += len(data)
	}
	for _, s := range c.series {
		if s.seen < int64(s.kept) || s.stride < 1 {
			return nil, fmt.Errorf("%w: metric %q has %d points, but seen is %d and stride is %d", ErrSegments, s.metric, s.kept, s.seen, s.stride)
		}
	}
	clear(c.dirty)
	c.cut = false
	return c, nil
}

// readSegment adds a stored segment. A curve continues from what is stored, so it refuses segments
// that it would not have written: their points would be in the wrong order for good.
func (c *Curve) readSegment(n int, s stored) error {
	c.segments = append(c.segments, segment{points: make([]member, 0, SegmentPoints)})
	for _, part := range s.Series {
		i, known := c.index[part.Metric]
		if !known {
			i = len(c.series)
			c.index[part.Metric] = i
			c.series = append(c.series, &series{metric: part.Metric, last: math.MinInt64})
		}
		of := c.series[i]
		for k, step := range part.Steps {
			if of.kept > 0 && step <= of.last {
				return fmt.Errorf("%w: metric %q has step %d after %d", ErrSegments, part.Metric, step, of.last)
			}
			if len(c.segments[n].points) == SegmentPoints {
				return fmt.Errorf("%w: segment %d has more than %d points", ErrSegments, n, SegmentPoints)
			}
			c.append(i, Point{step, part.Values[k]})
		}
		of.seen, of.stride = max(of.seen, part.Seen), max(of.stride, part.Stride)
	}
	return nil
}

func decode(data []byte) (stored, error) {
	var s stored
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("%w: %w", ErrSegments, err)
	}
	for _, part := range s.Series {
		if len(part.Steps) != len(part.Values) {
			return s, fmt.Errorf("%w: metric %q has %d steps and %d values", ErrSegments, part.Metric, len(part.Steps), len(part.Values))
		}
	}
	return s, nil
}

// ReadSegment returns the points of one stored segment and the number of their attempt, for those
// who show curves and do not continue them.
func ReadSegment(data []byte) (attempt int, series []Series, err error) {
	s, err := decode(data)
	if err != nil {
		return 0, nil, err
	}
	for _, part := range s.Series {
		of := Series{Metric: part.Metric, Points: make([]Point, len(part.Steps))}
		for i := range part.Steps {
			of.Points[i] = Point{part.Steps[i], part.Values[i]}
		}
		series = append(series, of)
	}
	return s.Attempt, series, nil
}
