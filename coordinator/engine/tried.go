package engine

import (
	"crypto/sha256"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
)

// tried are the points of trials, as far as a suggestion may be compared with them.
//
// There are two questions. Has the point been tried at all, where no point is evaluated twice:
// points answers it. And has it become a trial since the suggestion was asked for: recent answers
// that for every space, and only reaches back to the oldest request that may still be answered.
type tried struct {
	*switches
	space *space.Space
	// countable says that the number of the space's points is known: see space.Space.Size.
	// Then no point is evaluated twice.
	countable bool
	// points are those that the study evaluates once, by key: all of a countable space, or
	// else the study file's initial points.
	points map[pointKey]triedPoint
	recent []recentPoint // in the order of their trials
}

// triedPoint is a point that trials have tried or try.
type triedPoint struct {
	created int64 // where the last of them was created
	trials  int   // how many there are; users may repeat a point
}

// recentPoint is the point of a trial that was made a short while ago.
type recentPoint struct {
	created int64
	key     pointKey
}

// pointKey stands for a point's key, which may be much longer.
type pointKey [16]byte

func (p *tried) key(point study.Point) pointKey {
	sum := sha256.Sum256([]byte(p.space.Key(point)))
	return pointKey(sum[:16])
}

func newTried(s *space.Space, w *switches) tried {
	_, countable := s.Searched().Size()
	return tried{switches: w, space: s, countable: countable, points: map[pointKey]triedPoint{}}
}

// add remembers a trial's point if repeats of it are refused. Each trial MUST be added once, unless
// it is cancelled.
func (p *tried) add(t *trial) {
	if p.countable || t.facts().initial {
		r := t.record()
		key := p.key(r.Point)
		p.points[key] = triedPoint{r.Created, p.points[key].trials + 1}
	}
}

// remove forgets the point of a cancelled trial, unless another trial has it too.
func (p *tried) remove(t *trial) {
	if p.countable || t.facts().initial {
		key := p.key(t.record().Point)
		if point := p.points[key]; point.trials > 1 {
			point.trials--
			p.points[key] = point
		} else {
			delete(p.points, key)
		}
	}
}

// addRecent remembers the point of a new trial, and forgets those of trials that were created
// up to a ledger position: every request whose suggestions may still come has known them.
func (p *tried) addRecent(t *trial, known int64) {
	n := 0
	for n < len(p.recent) && p.recent[n].created <= known {
		n++
	}
	p.recent = append(p.recent[n:], recentPoint{t.rec.Created, p.key(t.rec.Point)})
}

// has reports whether a suggested point has become a trial. from is the ledger position of the
// suggestion's request: the optimiser is at fault if it repeats a trial that it knew.
func (p *tried) has(s optimizer.Suggestion, from int64) (has, fault bool) {
	if at, ok := p.repeats(s); ok {
		return true, at <= from
	}
	return p.overtaken(s, from), false
}

// repeats reports whether a suggestion must be refused because its point was tried
// already, and the ledger position of that trial. Repeats are refused in a countable
// space, and for the study file's initial points, unless the optimiser repeats a
// point on purpose.
func (p *tried) repeats(s optimizer.Suggestion) (at int64, ok bool) {
	if !p.countable && s.Source != optimizer.SourceInitial || s.Repeat || !p.on(safetyRepeat) {
		return 0, false
	}
	point, ok := p.points[p.key(s.Point)]
	return point.created, ok
}

// overtaken reports whether a suggested point became a trial after the ledger position
// of its request, from the previous answer or as a fallback. A point that was a trial
// before is not overtaken: the optimiser repeats it on purpose.
func (p *tried) overtaken(s optimizer.Suggestion, from int64) bool {
	last := len(p.recent) - 1
	if last < 0 || p.recent[last].created <= from || !p.on(safetyRepeat) {
		return false
	}
	key := p.key(s.Point)
	for i := last; i >= 0 && p.recent[i].created > from; i-- {
		if p.recent[i].key == key {
			return true
		}
	}
	return false
}
