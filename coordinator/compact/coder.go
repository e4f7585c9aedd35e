package compact

import (
	"encoding/binary"
	"encoding/hex"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// coder writes or reads one record. Both directions take the same way through the record,
// so they cannot disagree about the order of its fields: each method below writes what its
// pointer points to, or sets it. A writer changes nothing, since others share what a record
// points to.
type coder struct {
	*Codec
	data    []byte    // what was written, or is left to read
	last    time.Time // the last time that was coded; at first the study's beginning
	reading bool
}

// unsigned writes n, or returns the number that it reads.
func (c *coder) unsigned(n uint64) uint64 {
	if !c.reading {
		c.data = binary.AppendUvarint(c.data, n)
		return n
	}
	n, size := binary.Uvarint(c.data)
	c.data = c.data[size:]
	return n
}

// signed is unsigned for numbers that may be negative.
func (c *coder) signed(n int64) int64 {
	if !c.reading {
		c.data = binary.AppendVarint(c.data, n)
		return n
	}
	n, size := binary.Varint(c.data)
	c.data = c.data[size:]
	return n
}

// integer codes a number that is near base.
func integer[T ~int | ~int64](c *coder, p *T, base T) {
	if n := c.signed(int64(*p - base)); c.reading {
		*p = base + T(n)
	}
}

// float codes a number in eight bytes.
func (c *coder) float(p *float64) {
	if !c.reading {
		c.data = binary.LittleEndian.AppendUint64(c.data, math.Float64bits(*p))
		return
	}
	*p = math.Float64frombits(binary.LittleEndian.Uint64(c.data))
	c.data = c.data[8:]
}

// optional codes a number that may be missing.
func (c *coder) optional(p **float64) {
	if c.reading {
		*p = new(float64)
	}
	c.float(*p)
}

// take reads n bytes.
func (c *coder) take(n uint64) []byte {
	raw := c.data[:n]
	c.data = c.data[n:]
	return raw
}

// text codes a text that only this record has.
func (c *coder) text(p *string) {
	if !c.reading {
		c.unsigned(uint64(len(*p)))
		c.data = append(c.data, *p...)
		return
	}
	*p = string(c.take(c.unsigned(0)))
}

// shared codes a text that many records have.
func shared[T ~string](c *coder, p *T) {
	if !c.reading {
		text := string(*p)
		if len(text) <= maxText {
			if i, ok := c.texts.place(text); ok {
				c.unsigned(uint64(i) + 1)
				return
			}
		}
		c.unsigned(0)
		c.text(&text)
		return
	}
	if place := c.unsigned(0); place > 0 {
		*p = T(c.texts.values[place-1])
		return
	}
	var text string
	c.text(&text)
	*p = T(text)
}

// id codes an id, which takes half of its length if it is in hexadecimal.
func (c *coder) id(p *string) {
	if !c.reading {
		if len(*p)%2 == 0 && strings.Trim(*p, "0123456789abcdef") == "" {
			c.unsigned(uint64(len(*p)/2)<<1 | 1)
			c.data, _ = hex.AppendDecode(c.data, []byte(*p)) // these digits have no error
			return
		}
		c.unsigned(uint64(len(*p)) << 1)
		c.data = append(c.data, *p...)
		return
	}
	head := c.unsigned(0)
	raw := c.take(head >> 1)
	if *p = string(raw); head&1 == 1 {
		*p = hex.EncodeToString(raw)
	}
}

// The forms of a time. Any larger number is timeNear plus the distance from the base, in
// nanoseconds and with the sign in the lowest bit.
const (
	timeZero = iota
	timeFull
	timeNear
)

// time codes a time that is near base, or near the last one that was coded if base is zero.
func (c *coder) time(p *time.Time, base time.Time) {
	if base.IsZero() {
		base = c.last
	}
	switch form := c.unsigned(c.form(*p, base)); {
	case form == timeZero:
		return
	case form == timeFull:
		c.fullTime(p)
	case c.reading:
		*p = base.Add(time.Duration(unzigzag(form - timeNear)))
	}
	c.last = *p
}

// form returns the form in which a time is written. What is read has a fixed zone, so a time
// is near its base only if both have the same distance from UTC.
func (c *coder) form(t, base time.Time) uint64 {
	if c.reading {
		return 0
	}
	if t.IsZero() {
		return timeZero
	}
	// Readers lack the monotonic readings.
	t, base = t.Round(0), base.Round(0)
	d := t.Sub(base)
	if zoneOf(t) != zoneOf(base) || !base.Add(d).Equal(t) || d.Abs() > math.MaxInt64/4 {
		return timeFull
	}
	return timeNear + zigzag(int64(d))
}

// fullTime codes any time.
func (c *coder) fullTime(p *time.Time) {
	seconds, nanoseconds, zone := p.Unix(), uint64(p.Nanosecond()), int64(zoneOf(*p))
	seconds, nanoseconds, zone = c.signed(seconds), c.unsigned(nanoseconds), c.signed(zone)
	if c.reading {
		*p = time.Unix(seconds, int64(nanoseconds)).In(location(int(zone)))
	}
}

// zoneOf returns a time's distance from UTC in seconds.
func zoneOf(t time.Time) int {
	_, zone := t.Zone()
	return zone
}

// location returns a location with a fixed distance from UTC in seconds.
func location(zone int) *time.Location {
	if zone == 0 {
		return time.UTC
	}
	return time.FixedZone("", zone)
}

// fixed returns a time without its monotonic reading, in a location of a fixed zone.
func fixed(t time.Time) time.Time { return t.Round(0).In(location(zoneOf(t))) }

// zigzag maps numbers near 0 to small ones that are not negative.
func zigzag(n int64) uint64 { return uint64(n)<<1 ^ uint64(n>>63) }

// unzigzag is the inverse of zigzag.
func unzigzag(n uint64) int64 { return int64(n>>1) ^ -int64(n&1) }

// flags codes up to 64 flags in as many bytes as the last one that is set needs.
func (c *coder) flags(set ...bool) flags {
	var all flags
	for i, s := range set {
		if s {
			all |= 1 << i
		}
	}
	return flags(c.unsigned(uint64(all)))
}

// flags are flags that are asked for in the order in which they were coded.
type flags uint64

// next returns the next flag.
func (f *flags) next() bool {
	set := *f&1 == 1
	*f >>= 1
	return set
}

// length codes the length of a list or a map; -1 for one that is nil.
func (c *coder) length(n int, isNil bool) int {
	if isNil {
		n = -1
	}
	return int(c.unsigned(uint64(n+1))) - 1
}

// list codes a list whose items are coded by one.
func list[T any](c *coder, p *[]T, one func(*T)) {
	n := c.length(len(*p), *p == nil)
	if c.reading && n >= 0 {
		*p = make([]T, n)
	}
	for i := range *p {
		one(&(*p)[i])
	}
}

// dictionary codes a map whose values are coded by one.
func dictionary[V any](c *coder, p *map[string]V, one func(*V)) {
	n := c.length(len(*p), *p == nil)
	if !c.reading {
		for _, key := range slices.Sorted(maps.Keys(*p)) {
			value := (*p)[key]
			shared(c, &key)
			one(&value)
		}
		return
	}
	if n < 0 {
		return
	}
	*p = make(map[string]V, n)
	for range n {
		var key string
		var value V
		shared(c, &key)
		one(&value)
		(*p)[key] = value
	}
}
