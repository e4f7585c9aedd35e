// Package tfevent reads scalars from TensorFlow's event files, which TensorBoard shows. Keras,
// PyTorch, Lightning, tensorboardX and others write such files.
package tfevent

import (
	"encoding/binary"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// scalar is a number that a program has recorded.
type scalar struct {
	folder string // of its file, with a slash at the end; empty for none
	tag    string
	step   int64
	value  float64
}

// The numbers of the fields that are read, in tensorflow/core/util/event.proto and
// tensorflow/core/framework/{summary,tensor,tensor_shape}.proto.
const (
	eventStep, eventSummary                           = 2, 5
	summaryValue                                      = 1
	valueTag, valueSimple, valueTensor, valueMetadata = 1, 2, 8, 9
	metadataPlugin, pluginName                        = 1, 1
	tensorType, tensorShape, tensorContent            = 1, 2, 4
	shapeDim, dimSize                                 = 2, 1
	halfVal, floatVal, doubleVal, intVal              = 13, 5, 6, 7
	int64Val, uint32Val, uint64Val                    = 10, 16, 17
	wireVarint, wire64, wireBytes, wire32             = protowire.VarintType, protowire.Fixed64Type, protowire.BytesType, protowire.Fixed32Type
	pluginScalars                                     = "scalars"
	typeFloat, typeDouble, typeInt32, typeUint8       = 1, 2, 3, 4
	typeInt16, typeInt8, typeInt64, typeBfloat16      = 5, 6, 9, 14
	typeUint16, typeHalf, typeUint32, typeUint64      = 17, 19, 22, 23
)

// element says how a type's numbers are kept: in a list, or as size bytes each in tensor_content.
type element struct {
	list protowire.Number
	size int
	// number converts the bits of a number, of which the lowest 8*size bits count.
	number func(bits uint64) float64
}

var elements = map[uint64]element{
	typeFloat:    {floatVal, 4, func(b uint64) float64 { return float64(math.Float32frombits(uint32(b))) }},
	typeDouble:   {doubleVal, 8, math.Float64frombits},
	typeHalf:     {halfVal, 2, func(b uint64) float64 { return half(uint16(b)) }},
	typeBfloat16: {halfVal, 2, func(b uint64) float64 { return float64(math.Float32frombits(uint32(b) << 16)) }},
	typeInt8:     {intVal, 1, func(b uint64) float64 { return float64(int8(b)) }},
	typeInt16:    {intVal, 2, func(b uint64) float64 { return float64(int16(b)) }},
	typeInt32:    {intVal, 4, func(b uint64) float64 { return float64(int32(b)) }},
	typeUint8:    {intVal, 1, func(b uint64) float64 { return float64(uint8(b)) }},
	typeUint16:   {intVal, 2, func(b uint64) float64 { return float64(uint16(b)) }},
	typeInt64:    {int64Val, 8, func(b uint64) float64 { return float64(int64(b)) }},
	typeUint32:   {uint32Val, 4, func(b uint64) float64 { return float64(uint32(b)) }},
	typeUint64:   {uint64Val, 8, func(b uint64) float64 { return float64(b) }},
}

// half converts an IEEE 754 binary16 number.
func half(b uint16) float64 {
	sign, exponent, fraction := 1.0, int(b>>10&0x1f), float64(b&0x3ff)
	if b>>15 == 1 {
		sign = -1
	}
	switch {
	case exponent == 0x1f && fraction != 0:
		return math.NaN()
	case exponent == 0x1f:
		return math.Inf(int(sign))
	case exponent == 0:
		return sign * math.Ldexp(fraction, -24)
	default:
		return sign * math.Ldexp(1024+fraction, exponent-25)
	}
}

// field is a field of a message: its bytes, or the bits of its number.
type field struct {
	number protowire.Number
	kind   protowire.Type
	bytes  []byte
	bits   uint64
}

// fields calls each for every field of a message.
func fields(message []byte, each func(f field) error) error {
	for len(message) > 0 {
		f := field{}
		var n int
		f.number, f.kind, n = protowire.ConsumeTag(message)
		if n < 0 {
			return protowire.ParseError(n)
		}
		message = message[n:]
		switch f.kind {
		case wireVarint:
			f.bits, n = protowire.ConsumeVarint(message)
		case wire64:
			f.bits, n = protowire.ConsumeFixed64(message)
		case wire32:
			var bits uint32
			bits, n = protowire.ConsumeFixed32(message)
			f.bits = uint64(bits)
		case wireBytes:
			f.bytes, n = protowire.ConsumeBytes(message)
		default:
			n = protowire.ConsumeFieldValue(f.number, f.kind, message)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		message = message[n:]
		if err := each(f); err != nil {
			return err
		}
	}
	return nil
}

// scalars returns the scalars of an event. Everything else in it is skipped.
func scalars(event []byte) ([]scalar, error) {
	var step int64
	var found []scalar
	err := fields(event, func(f field) error {
		switch {
		case f.number == eventStep && f.kind == wireVarint:
			step = int64(f.bits)
		case f.number == eventSummary && f.kind == wireBytes:
			return fields(f.bytes, func(f field) error {
				if f.number != summaryValue || f.kind != wireBytes {
					return nil
				}
				s, ok, err := valueOf(f.bytes)
				if ok {
					found = append(found, s)
				}
				return err
			})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("not an event of TensorFlow: %w", err)
	}
	for i := range found { // the step may come after the summary
		found[i].step = step
	}
	return found, nil
}

// valueOf returns a summary's value if it is a scalar.
func valueOf(message []byte) (s scalar, ok bool, err error) {
	var plugin string
	err = fields(message, func(f field) error {
		switch {
		case f.number == valueTag && f.kind == wireBytes:
			s.tag = string(f.bytes)
		case f.number == valueSimple && f.kind == wire32:
			s.value, ok = float64(math.Float32frombits(uint32(f.bits))), true
		case f.number == valueTensor && f.kind == wireBytes:
			var err error
			s.value, ok, err = tensorOf(f.bytes)
			return err
		case f.number == valueMetadata && f.kind == wireBytes:
			return fields(f.bytes, func(f field) error {
				if f.number != metadataPlugin || f.kind != wireBytes {
					return nil
				}
				return fields(f.bytes, func(f field) error {
					if f.number == pluginName && f.kind == wireBytes {
						plugin = string(f.bytes)
					}
					return nil
				})
			})
		}
		return nil
	})
	// Only the first value of a tag needs to say which plugin shows it.
	return s, ok && (plugin == "" || plugin == pluginScalars), err
}

// tensorOf returns the number in a tensor of one number.
func tensorOf(message []byte) (value float64, ok bool, err error) {
	var kind uint64
	var content []byte
	var lists []field
	size := uint64(1)
	err = fields(message, func(f field) error {
		switch {
		case f.number == tensorType && f.kind == wireVarint:
			kind = f.bits
		case f.number == tensorShape && f.kind == wireBytes:
			return fields(f.bytes, func(f field) error {
				if f.number != shapeDim || f.kind != wireBytes {
					return nil
				}
				dim := uint64(0) // as in any message, a number that is 0 is left out
				err := fields(f.bytes, func(f field) error {
					if f.number == dimSize && f.kind == wireVarint {
						dim = f.bits
					}
					return nil
				})
				if dim != 1 {
					size = 0
				}
				return err
			})
		case f.number == tensorContent && f.kind == wireBytes:
			content = f.bytes
		default:
			lists = append(lists, f)
		}
		return nil
	})
	e, known := elements[kind]
	if err != nil || !known || size != 1 {
		return 0, false, err
	}
	if len(content) > 0 {
		if len(content) != e.size {
			return 0, false, nil
		}
		var bits [8]byte
		copy(bits[:], content)
		return e.number(binary.LittleEndian.Uint64(bits[:])), true, nil
	}
	var bits uint64 // a tensor without numbers is full of zeros
	for _, f := range lists {
		if f.number == e.list {
			var n int
			if bits, n = last(f, kind); n != 1 {
				return 0, false, nil
			}
		}
	}
	return e.number(bits), true, nil
}

// last returns the last number of a list, and how many there are. Lists are packed, or have one
// field for each number.
func last(f field, kind uint64) (bits uint64, n int) {
	if f.kind != wireBytes {
		return f.bits, 1
	}
	for b := f.bytes; len(b) > 0; n++ {
		var used int
		switch kind {
		case typeFloat:
			var four uint32
			four, used = protowire.ConsumeFixed32(b)
			bits = uint64(four)
		case typeDouble:
			bits, used = protowire.ConsumeFixed64(b)
		default:
			bits, used = protowire.ConsumeVarint(b)
		}
		if used < 0 {
			return 0, 0
		}
		b = b[used:]
	}
	return bits, n
}
