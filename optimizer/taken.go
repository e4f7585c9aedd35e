package optimizer

import "github.com/fantasia-hpo/fantasia/study"

// taken knows which points a suggestion must not repeat.
type taken struct {
	space *study.Space
	base  map[string]bool // shared with other views; never changed
	added map[string]bool
}

// newTaken holds the pending points of a problem and, where the space is finite,
// the observed ones. In a continuum an observed point may come again: two
// measurements of a noisy objective say more than one.
func newTaken(p *Problem, finite bool) *taken {
	base := make(map[string]bool, len(p.Pending))
	for _, pending := range p.Pending {
		base[p.Space.Key(pending.Point)] = true
	}
	if finite {
		for _, observed := range p.Observations {
			base[p.Space.Key(observed.Point)] = true
		}
	}
	return &taken{space: p.Space, base: base, added: map[string]bool{}}
}

func (t *taken) has(p study.Point) bool {
	key := t.space.Key(p)
	return t.base[key] || t.added[key]
}

func (t *taken) add(p study.Point) { t.added[t.space.Key(p)] = true }

// fork returns a view that starts like t and grows by itself.
func (t *taken) fork() *taken {
	added := make(map[string]bool, len(t.added))
	for key := range t.added {
		added[key] = true
	}
	return &taken{space: t.space, base: t.base, added: added}
}
