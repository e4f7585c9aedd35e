// Package grid is the optimiser that evaluates every point of a grid in order, with the last
// parameter changing fastest.
package grid

import (
	"context"
	"encoding/binary"
	"math"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/setting"
)

// defaultPoints is the default of the setting points.
const defaultPoints = 10

// maxSkipped is the largest number of places of the grid that are passed over for one point: those
// that differ from others only in inactive parameters, or that a coarser grid has had.
const maxSkipped = 1 << 20

// Settings returns the settings of the optimiser.
func Settings() setting.Set {
	return setting.Set{
		{Name: "points", Doc: "Values of a float without steps, with min and max among them.", Default: defaultPoints, Min: 2, Max: 1000},
	}
}

// New returns the optimiser, whose grid has this many values of a float without steps. It ignores observations. When
// all points of the grid have been suggested and some parameter is such a float, a finer grid follows, with
// a value between each two. Its state is the position in this sequence.
func New(points int) optimizer.Optimizer { return optimizer.GuardBlind(proposer{points}) }

type proposer struct{ points int }

// Propose implements optimizer.Proposer.
func (g proposer) Propose(ctx context.Context, r *optimizer.Request) ([]optimizer.Suggestion, optimizer.State, error) {
	next, used := binary.Uvarint(r.State)
	if used != len(r.State) || used <= 0 {
		next = 0
	}
	s := &sequence{encoding: r.Encoding, points: g.points, next: next}
	batch, err := r.Draw(ctx, r.N, s.fill, optimizer.SourceDesign, "next point of the grid")
	return batch, binary.AppendUvarint(nil, s.next), err
}

// sequence is the grid, followed by ever finer ones. It is a function of the position.
type sequence struct {
	encoding *optimizer.Encoding
	points   int // of a column without levels, in the first grid
	next     uint64
}

// fill sets x to the next place of the sequence: an optimizer.Stream.
func (s *sequence) fill(x []float64) {
	digits := make([]int, len(x))
	for range maxSkipped {
		finer := s.at(s.next, digits, x)
		s.next++
		if !finer || !s.before(digits) {
			if !s.doubled(digits, x) {
				return
			}
		}
	}
}

// at sets the digits and the coordinates of a position, and reports whether it is in a finer grid than the first.
func (s *sequence) at(position uint64, digits []int, x []float64) (finer bool) {
	columns, points := s.encoding.Columns(), s.points
	for {
		size := s.size(points)
		if position < size || size == 0 {
			break
		}
		position -= size
		if s.encoding.Discrete() {
			continue // from the beginning: what was evaluated is taken
		}
		finer, points = true, 2*points-1
	}
	for i := len(columns) - 1; i >= 0; i-- {
		n := uint64(levels(columns[i], points))
		digits[i], position = int(position%n), position/n
		if columns[i].Levels > 0 {
			x[i] = columns[i].Place(digits[i])
		} else {
			x[i] = float64(digits[i]) / float64(n-1)
		}
	}
	return finer
}

// levels returns how many values a column has in a grid.
func levels(c optimizer.Column, points int) int {
	if c.Levels > 0 {
		return c.Levels
	}
	return points
}

// size returns the number of places of a grid, 0 if it is larger than any study.
func (s *sequence) size(points int) uint64 {
	size := 1.0
	for _, c := range s.encoding.Columns() {
		size *= float64(levels(c, points))
	}
	if size > math.MaxInt64/2 {
		return 0
	}
	return uint64(size)
}

// before reports whether the next coarser grid has the place as well.
func (s *sequence) before(digits []int) bool {
	for i, c := range s.encoding.Columns() {
		if c.Levels == 0 && digits[i]%2 == 1 {
			return false
		}
	}
	return true
}

// doubled reports whether the place differs from an earlier one only in parameters that are inactive there.
func (s *sequence) doubled(digits []int, x []float64) bool {
	point := s.encoding.Decode(x)
	for i, c := range s.encoding.Columns() {
		if _, active := point[c.Parameter.Name]; !active && digits[i] > 0 {
			return true
		}
	}
	return false
}
