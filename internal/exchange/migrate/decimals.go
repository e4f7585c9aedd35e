package migrate

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/fantasia-hpo/fantasia/study"
)

// decimals is what a file shows of how it writes decimals, by column. "1.234" can be a fraction, or 1234 with
// a separator of thousands: what the other cells show decides, and if they do not, the file is refused.
type decimals struct {
	commas  bool // one comma in a cell is read as a decimal comma
	columns map[string]*shownSigns
}

// shownSigns are the first cells of a column of each kind.
type shownSigns struct {
	comma, point mark // surely has a decimal comma, or a decimal point
	// One sign, before three digits: it can also separate thousands.
	maybeComma, maybePoint mark
}

// mark is a cell.
type mark struct{ place, column, text string }

func (m mark) found() bool { return m.place != "" }

// signed is a number with signs between its digits.
var signed = regexp.MustCompile(`^[+-]?([0-9]*[.,][0-9.,]*)([eE][+-]?[0-9]+)?$`)

// grouped are the digits of a number whose one sign can separate thousands.
var grouped = regexp.MustCompile(`^[1-9][0-9]{0,2}[.,][0-9]{3}$`)

// seeParameter looks at a cell of a parameter, unless it is the text of a choice.
func (d *decimals) seeParameter(place, column string, p *study.Parameter, field any) {
	text, ok := field.(string)
	isText := func(choice any) bool { return study.Format(choice) == strings.TrimSpace(text) }
	if ok && p.Type != study.Bool && !slices.ContainsFunc(p.Listed(), isText) {
		d.see(place, column, field)
	}
}

// see looks at a cell that should be a number.
func (d *decimals) see(place, column string, field any) {
	text, ok := field.(string)
	if !ok || len(text) > maxShown {
		return
	}
	parts := signed.FindStringSubmatch(strings.TrimSpace(text))
	if parts == nil {
		return
	}
	at := d.columns[column]
	if at == nil {
		at = &shownSigns{}
		d.columns[column] = at
	}
	digits, exponent := parts[1], parts[2]
	commas, points := strings.Count(digits, ","), strings.Count(digits, ".")
	comma := commas > 0
	if commas > 0 && points > 0 { // the last one is the decimal sign
		comma = strings.LastIndexByte(digits, ',') > strings.LastIndexByte(digits, '.')
	} else if commas+points > 1 { // the other sign is
		comma = points > 0
	}
	kept := &at.point
	switch maybe := exponent == "" && grouped.MatchString(digits); {
	case maybe && comma:
		kept = &at.maybeComma
	case maybe:
		kept = &at.maybePoint
	case comma:
		kept = &at.comma
	}
	if !kept.found() {
		*kept = mark{place, column, text}
	}
}

// check returns an error if cells contradict each other, or if a cell can be two numbers.
func (d *decimals) check() error {
	var comma, point mark
	names := slices.Sorted(maps.Keys(d.columns))
	for _, name := range names {
		comma, point = firstOf(comma, d.columns[name].comma), firstOf(point, d.columns[name].point)
	}
	for _, name := range names {
		at := d.columns[name]
		if !d.commas {
			at.maybeComma = mark{} // its row is left out
		}
		anyComma, anyPoint := firstOf(at.comma, at.maybeComma), firstOf(at.point, at.maybePoint)
		switch {
		case anyComma.found() && anyPoint.found():
			return contradiction(anyPoint, anyComma)
		case at.maybePoint.found() && !at.point.found() && comma.found():
			return contradiction(at.maybePoint, comma)
		case at.maybeComma.found() && !at.comma.found() && point.found():
			return contradiction(at.maybeComma, point)
		case at.maybeComma.found() && !at.comma.found() && !comma.found():
			return fmt.Errorf("%s: %s is %s, which can be a fraction, or a whole number with a separator of thousands: want a decimal point",
				at.maybeComma.place, clipped(name), shown(at.maybeComma.text))
		}
	}
	return nil
}

// firstOf returns the first cell that was found.
func firstOf(cells ...mark) mark {
	for _, m := range cells {
		if m.found() {
			return m
		}
	}
	return mark{}
}

func contradiction(one, other mark) error {
	return fmt.Errorf("%s: %s is %s, and at %s %s is %s: want the same decimal sign in all cells, and no separators of thousands",
		one.place, clipped(one.column), shown(one.text), other.place, clipped(other.column), shown(other.text))
}
