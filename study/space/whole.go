package space

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/fantasia-hpo/fantasia/study"
)

// # Equalities of whole numbers
//
// Random points hardly ever meet a + b == 10 over wide ranges of ints. So where a linear equality
// has whole weights and values only, it is solved for the ints whose weight is 1 or -1. Such an
// int has no step other than 1, and no condition.

// balance is an equality of whole numbers. Its row has the weights as they are written.
type balance struct {
	row *row
	// units are the ints to solve for: those that are in no other balance, if there are any.
	units []summand
}

// summand is an int with a weight of 1 or -1.
type summand struct {
	name              string
	weight, low, high float64
	alone             bool // it is in no other balance
}

// newBalances returns the equalities of whole numbers that can be solved.
func (s *Space) newBalances() []*balance {
	var all []*balance
	in := map[string]int{}
	for _, c := range s.checks {
		for _, r := range c.rows {
			if r.low == r.high && s.whole(r) {
				all = append(all, &balance{row: r})
				for _, name := range r.names {
					in[name]++
				}
			}
		}
	}
	return slices.DeleteFunc(all, func(b *balance) bool {
		for i, name := range b.row.names {
			p := s.params[s.index[name]]
			if p.Type == study.Int && (p.Step == nil || *p.Step == 1) && math.Abs(b.row.weights[i]) == 1 {
				b.units = append(b.units, summand{name: name, weight: b.row.weights[i], low: *p.Min, high: *p.Max, alone: in[name] == 1})
			}
		}
		if slices.ContainsFunc(b.units, func(u summand) bool { return u.alone }) {
			b.units = slices.DeleteFunc(b.units, func(u summand) bool { return !u.alone })
		}
		return len(b.units) == 0
	})
}

// whole reports whether a condition has whole weights, and values that are computed exactly.
func (s *Space) whole(r *row) bool {
	size := math.Abs(r.low)
	isWhole := func(v float64) bool { return v == math.Trunc(v) }
	for i, name := range r.names {
		p := s.params[s.index[name]]
		low, high := s.rangeOf(name)
		size += math.Abs(r.weights[i]) * max(math.Abs(low), math.Abs(high))
		listed := p.Lists(func(v any) bool { n, ok := study.Number(v); return ok && isWhole(n) })
		if p.Type != study.Int && !listed || !isWhole(r.weights[i]) {
			return false
		}
	}
	return isWhole(r.low) && size <= study.MaxExact
}

// open returns the ints to solve for that are not fixed, and what the sum lacks; ok is false if
// nothing is to be done.
func (b *balance) open(p, fixed study.Point) (units []summand, lacks float64, ok bool) {
	for _, name := range b.row.names {
		if _, given := p[name]; !given {
			return nil, 0, false // of a partial point
		}
	}
	sum, _ := b.row.sum(p)
	for _, u := range b.units {
		if _, given := fixed[u.name]; !given {
			units = append(units, u)
		}
	}
	return units, b.row.low - sum, len(units) > 0
}

// slack returns how far the int can go down and up, as changes of the sum.
func (u summand) slack(p study.Point) (low, high float64) {
	v, _ := study.Number(p[u.name])
	if u.weight < 0 {
		return v - u.high, v - u.low
	}
	return u.low - v, u.high - v
}

// add changes the sum by as much of by as the int's range allows, and returns the rest.
func (u summand) add(p study.Point, by float64) (rest float64) {
	low, high := u.slack(p)
	v, _ := study.Number(p[u.name])
	done := min(max(by, low), high)
	p[u.name] = int64(v + u.weight*done)
	return by - done
}

// spread changes the sum by about the same for each int, as far as their ranges allow.
func spread(p study.Point, units []summand, by float64) {
	for k, u := range units {
		share := math.Trunc(by / float64(len(units)-k))
		by += u.add(p, share) - share
	}
	for _, u := range units {
		by = u.add(p, by)
	}
}

// mix moves whole numbers between pairs of ints at random: a Markov chain whose limit is
// uniform on all that leaves the sum as it is.
func mix(p study.Point, units []summand, rng *rand.Rand) {
	if len(units) < 2 {
		return
	}
	for range min(20+4*len(units)*len(units), 10_000) {
		i := rng.IntN(len(units))
		j := (i + 1 + rng.IntN(len(units)-1)) % len(units)
		low, high := units[i].slack(p)
		least, most := units[j].slack(p)
		low, high = max(low, -most), min(high, -least)
		by := low + math.Floor(rng.Float64()*(high-low+1))
		units[i].add(p, min(by, high))
		units[j].add(p, -min(by, high))
	}
}

// meetWhole moves a point to a near one that meets the equalities of whole numbers.
func (s *Space) meetWhole(p, fixed study.Point) {
	for _, b := range s.balances {
		if units, lacks, ok := b.open(p, fixed); ok && lacks != 0 {
			spread(p, units, lacks)
		}
	}
}

// solveWhole is meetWhole, but changes one int for each equality: that with the widest range.
// It leaves what this int cannot meet.
func (s *Space) solveWhole(p, fixed study.Point) {
	for _, b := range s.balances {
		units, lacks, ok := b.open(p, fixed)
		if !ok {
			continue
		}
		widest := slices.MaxFunc(units, func(u, v summand) int { return int(min(max(u.high-u.low-v.high+v.low, -1), 1)) })
		if low, high := widest.slack(p); lacks >= low && lacks <= high {
			widest.add(p, lacks)
		}
	}
}

// wanderWhole moves the ints to random places that meet the equalities.
func (s *Space) wanderWhole(p, fixed study.Point, rng *rand.Rand) {
	s.meetWhole(p, fixed)
	for _, b := range s.balances {
		units, lacks, ok := b.open(p, fixed)
		if ok && lacks == 0 {
			mix(p, slices.DeleteFunc(units, func(u summand) bool { return !u.alone }), rng)
		}
	}
}
