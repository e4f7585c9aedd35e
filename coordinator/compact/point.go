package compact

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/fantasia-hpo/fantasia/study"
)

// The types of a point's values.
const (
	valueFloat = iota
	valueInt
	valueTrue
	valueFalse
	valueText
)

// point codes a point: the name, the type and the value of each parameter. A point with
// anything but scalars, which no space has, is written as JSON.
func (c *coder) point(p *study.Point) {
	const isNil, isJSON, isPlain = 0, 1, 2 // isPlain plus the number of values
	form := uint64(isPlain + len(*p))
	if !c.reading && *p == nil {
		form = isNil
	} else if !c.reading && !plain(*p) {
		form = isJSON
	}
	switch form = c.unsigned(form); {
	case form == isNil:
		return
	case form == isJSON:
		c.pointAsJSON(p)
		return
	case !c.reading:
		for _, name := range slices.Sorted(maps.Keys(*p)) {
			value := (*p)[name]
			shared(c, &name)
			c.value(&value)
		}
		return
	}
	*p = make(study.Point, form-isPlain)
	for range form - isPlain {
		var name string
		var value any
		shared(c, &name)
		c.value(&value)
		(*p)[name] = value
	}
}

// plain reports whether a point has only scalars.
func plain(p study.Point) bool {
	for _, value := range p {
		switch value.(type) {
		case float64, int64, bool, string:
		default:
			return false
		}
	}
	return true
}

// pointAsJSON codes any point.
func (c *coder) pointAsJSON(p *study.Point) {
	var text string
	if !c.reading {
		raw, err := json.Marshal(*p)
		if err != nil {
			panic(fmt.Sprintf("compact: a record's point is no JSON: %v", err)) // the ledger has it as JSON
		}
		text = string(raw)
	}
	if c.text(&text); c.reading {
		if err := json.Unmarshal([]byte(text), p); err != nil {
			panic(fmt.Sprintf("compact: a record's point was %s: %v", text, err))
		}
	}
}

// value codes a scalar.
func (c *coder) value(p *any) {
	if c.reading {
		*p = c.readValue()
		return
	}
	switch v := (*p).(type) {
	case float64:
		c.unsigned(valueFloat)
		c.float(&v)
	case int64:
		c.unsigned(valueInt)
		c.signed(v)
	case string:
		c.unsigned(valueText)
		shared(c, &v)
	case bool:
		if v {
			c.unsigned(valueTrue)
		} else {
			c.unsigned(valueFalse)
		}
	}
}

// readValue reads a scalar.
func (c *coder) readValue() any {
	switch c.unsigned(0) {
	case valueFloat:
		var v float64
		c.float(&v)
		return v
	case valueInt:
		return c.signed(0)
	case valueTrue:
		return true
	case valueFalse:
		return false
	default:
		var v string
		shared(c, &v)
		return v
	}
}
