package replay

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// Difference is a suggestion, or a promotion, that differs from the recorded one.
type Difference struct {
	Trial int
	// What differs: "parameter x", "the source", "the reasons", "the promotion" of another
	// trial or of none, or "the answer" if there is none.
	What string
	// Recorded and Replayed are the two, as JSON or in words.
	Recorded, Replayed string
}

// String is a sentence about the difference.
func (d *Difference) String() string {
	return fmt.Sprintf("trial %d differs: %s: recorded %s, now %s", d.Trial, d.What, d.Recorded, d.Replayed)
}

// compare returns how a trial's suggestion differs from the answer's; nil if it does not.
func (p *player) compare(t *record.Trial, list []optimizer.Suggestion, fallback bool) *Difference {
	if t.Place >= len(list) {
		return &Difference{
			What: "the answer", Recorded: fmt.Sprintf("suggestion %d", t.Place+1), Replayed: fmt.Sprintf("only %d long", len(list)),
		}
	}
	s := list[t.Place]
	s.Point = p.space.AtLevel(s.Point, 0)
	// The record's numbers have their parameters' types; so must these.
	if point, err := p.space.Normalize(s.Point); err == nil {
		s.Point = point
	}
	if fallback && s.Source != optimizer.SourceInitial {
		s.Source = optimizer.SourceFallback
	}
	if d := p.comparePoints(t.Asked(), s.Point); d != nil {
		return d
	}
	if t.Source != s.Source {
		return &Difference{What: "the source", Recorded: string(t.Source), Replayed: string(s.Source)}
	}
	return compareReasons(t.Reasons, engine.FiniteReasons(s.Reasons))
}

func (p *player) comparePoints(recorded, replayed study.Point) *Difference {
	for _, parameter := range p.space.Parameters() {
		if x, y := recorded[parameter.Name], replayed[parameter.Name]; !same(x, y) {
			return &Difference{What: "parameter " + parameter.Name, Recorded: text(x), Replayed: text(y)}
		}
	}
	return nil
}

func compareReasons(recorded, replayed optimizer.Reasons) *Difference {
	if x, y := text(recorded), text(replayed); x != y {
		return &Difference{What: "the reasons", Recorded: x, Replayed: y}
	}
	return nil
}

// same reports whether two values of a parameter are the same bits.
func same(a, b any) bool {
	x, isFloat := a.(float64)
	y, isToo := b.(float64)
	if isFloat && isToo {
		return math.Float64bits(x) == math.Float64bits(y)
	}
	return a == b
}

// text is a value as JSON, which holds all bits of numbers.
func text(v any) string {
	if v == nil {
		return "missing"
	}
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(data)
}
