// Package sobol is the optimiser that follows one scrambled Sobol sequence through a
// whole study: its points fill the space evenly.
package sobol

import (
	"context"
	"encoding/binary"
	"math"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/optimizer/numeric/design"
)

// New returns the optimiser. It ignores observations. Its state is the position in the
// sequence: each request continues where the last one ended, after points that broke a
// constraint.
func New() optimizer.Optimizer { return optimizer.GuardBlind(proposer{}) }

type proposer struct{}

// Propose implements optimizer.Proposer.
func (proposer) Propose(ctx context.Context, r *optimizer.Request) ([]optimizer.Suggestion, optimizer.State, error) {
	sequence := Resume(r)
	batch, err := sequence.Propose(ctx, r, r.N)
	return batch, sequence.State(), err
}

// Sequence is a study's scrambled Sobol sequence over an encoding's columns, seeded
// with the study's seed. It is not safe for concurrent use.
type Sequence struct {
	// Next is the index of the next point.
	Next uint64
	// Map, if not nil, moves each point within the unit cube before it is used.
	Map    func(x []float64)
	stream optimizer.Stream
}

// Resume returns the sequence from the position on that the request's state holds, which
// State made; from the first trial's on if it holds none.
func Resume(r *optimizer.Request) *Sequence {
	next, used := binary.Uvarint(r.State)
	if used != len(r.State) || next > math.MaxUint32 {
		next = 0
	}
	return NewSequence(r, next)
}

// State encodes the position in the sequence for Resume.
func (s *Sequence) State() optimizer.State { return binary.AppendUvarint(nil, s.Next) }

// NewSequence returns the sequence from the index next on, or from the index that
// belongs to the request's first trial if that is larger. If there is no such sequence
// (an encoding without columns, or with more than design.MaxDim), it draws points from
// r.Rand.
func NewSequence(r *optimizer.Request, next uint64) *Sequence {
	s := &Sequence{Next: max(next, uint64(r.First-1))}
	points, err := design.NewScrambledSobol(r.Encoding.Dim(), r.Seed)
	if err != nil {
		uniform := optimizer.Uniform(r.Rand)
		s.stream = func(x []float64) { s.Next++; uniform(x) }
		return s
	}
	s.stream = func(x []float64) {
		points.At(x, uint32(s.Next)) // no study has 2^32 points
		s.Next++
	}
	return s
}

// next is the sequence's stream.
func (s *Sequence) next(x []float64) {
	s.stream(x)
	if s.Map != nil {
		s.Map(x)
	}
}

// Propose returns the next n feasible points of the sequence, or fewer if ctx ends.
func (s *Sequence) Propose(ctx context.Context, r *optimizer.Request, n int) ([]optimizer.Suggestion, error) {
	return r.Draw(ctx, n, s.next, optimizer.SourceDesign, "next point of the scrambled Sobol sequence")
}
