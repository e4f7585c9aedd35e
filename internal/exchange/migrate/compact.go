package migrate

import "encoding/binary"

// compact walks over data in the compact protocol of Thrift, in which Parquet describes
// itself: https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
type compact struct {
	rest  []byte
	short bool // the data ends too early
	depth int
}

// Types of values.
const (
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftInt64  = 6 // 4 and 5 are shorter ones
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftMap    = 11
	thriftStruct = 12
)

// maxThriftDepth bounds the depth of values within values. Parquet needs about ten.
const maxThriftDepth = 50

func (c *compact) skip(n uint64) {
	if n > uint64(len(c.rest)) {
		c.short, n = true, uint64(len(c.rest))
	}
	c.rest = c.rest[n:]
}

func (c *compact) byte() byte {
	if len(c.rest) == 0 {
		c.short = true
		return 0
	}
	b := c.rest[0]
	c.rest = c.rest[1:]
	return b
}

func (c *compact) uvarint() uint64 {
	v, n := binary.Uvarint(c.rest)
	if n <= 0 {
		c.short, n = true, len(c.rest)
	}
	c.rest = c.rest[n:]
	return v
}

// value walks over a value. The error says that the value is longer than the data, or that it
// is not in the protocol.
func (c *compact) value(kind byte) error {
	c.depth++
	defer func() { c.depth-- }()
	if c.depth > maxThriftDepth {
		return errCorrupt
	}
	switch kind {
	case thriftTrue, thriftFalse, thriftByte:
		c.skip(1)
	case 4, 5, thriftInt64:
		c.uvarint()
	case thriftDouble:
		c.skip(8)
	case thriftBinary:
		c.skip(c.uvarint())
	case thriftList, thriftSet:
		head := c.byte()
		n := uint64(head >> 4)
		if n == 15 {
			n = c.uvarint()
		}
		return c.values(n, head&15)
	case thriftMap:
		n := c.uvarint()
		if n == 0 {
			break
		}
		kinds := c.byte()
		return c.values(n, kinds>>4, kinds&15)
	case thriftStruct:
		return c.fields()
	default:
		return errCorrupt
	}
	if c.short {
		return errCorrupt
	}
	return nil
}

// values walks over n times values of the kinds, of at least a byte each.
func (c *compact) values(n uint64, kinds ...byte) error {
	if c.short || n > uint64(len(c.rest)) {
		return errCorrupt
	}
	for range n {
		for _, kind := range kinds {
			if err := c.value(kind); err != nil {
				return err
			}
		}
	}
	return nil
}

// fields walks over a struct.
func (c *compact) fields() error {
	for {
		head := c.byte()
		if c.short {
			return errCorrupt
		}
		if head == 0 {
			return nil
		}
		if head>>4 == 0 {
			c.uvarint() // the field's number
		}
		if kind := head & 15; kind != thriftTrue && kind != thriftFalse { // these have no more bytes
			if err := c.value(kind); err != nil {
				return err
			}
		}
	}
}
