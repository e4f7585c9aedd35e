package replay

import (
	"maps"
	"slices"

	"github.com/fantasia-hpo/fantasia/optimizer"
)

// curves returns what trials had reported when a request was made; nil if the optimiser was not told.
func (p *player) curves(a *answer) (list []optimizer.Curve) {
	if a.ask.Last == 0 {
		return nil
	}
	for _, t := range p.trials {
		looks := t.Looks
		if t.Ended == 0 || t.Ended > a.from {
			looks = looks[:min(len(looks), a.ask.Looks[t.Number])]
		}
		if len(looks) > 0 {
			list = append(list, optimizer.Curve{Trial: t.Number, Looks: looks})
		}
	}
	return list
}

// unknown returns the first trial whose record lacks some of the looks that a request was made with, 0 if there is none. A record
// gets them when its trial ends.
func (p *player) unknown(a *answer) int {
	for _, number := range slices.Sorted(maps.Keys(a.ask.Looks)) {
		if number > len(p.trials) || a.ask.Looks[number] > len(p.trials[number-1].Looks) {
			return number
		}
	}
	return 0
}
