// Package safetensors reads tensors of numbers from files in the
// safetensors format (https://github.com/huggingface/safetensors): an 8-byte little-endian
// length, a JSON header of that length, then the tensors' bytes.
package safetensors

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/x448/float16"
)

// The bounds on a file.
const (
	// MaxSize is the largest size of a file in bytes.
	MaxSize = 64 << 20
	// maxHeader is the largest size of the header in bytes, maxTensors the largest number
	// of tensors, maxDimensions that of a tensor's dimensions.
	maxHeader     = 1 << 20
	maxTensors    = 10_000
	maxDimensions = 8
)

// Tensor is an array of finite numbers.
type Tensor struct {
	// Type is that of the elements in the file: F16, F32, F64 or I8.
	Type string
	// Shape has the length of each dimension; a scalar has none.
	Shape []int
	// Data holds the elements, the last dimension's beside each other.
	Data []float64
}

// File is the content of a file.
type File struct {
	// Metadata holds texts by name.
	Metadata map[string]string
	Tensors  map[string]Tensor
}

// entry describes a tensor in the header.
type entry struct {
	Type    string   `json:"dtype"`
	Shape   []int    `json:"shape"`
	Offsets []uint64 `json:"data_offsets"`
}

// Read returns the content of a file, given its bytes. The elements of tensors must be
// finite, and of type F16, F32, F64 or I8. It keeps no reference to data.
func Read(data []byte) (*File, error) {
	header, body, err := split(data)
	if err != nil {
		return nil, fmt.Errorf("read safetensors: %w", err)
	}
	f := &File{Tensors: make(map[string]Tensor, len(header))}
	if raw, ok := header["__metadata__"]; ok {
		if err := json.Unmarshal(raw, &f.Metadata); err != nil {
			return nil, fmt.Errorf("read safetensors: __metadata__: %w", err)
		}
		delete(header, "__metadata__")
	}
	if len(header) > maxTensors {
		return nil, fmt.Errorf("read safetensors: %d tensors, want at most %d", len(header), maxTensors)
	}
	var used uint64 // tensors may not overlap, so that their total is bounded
	for _, name := range slices.Sorted(maps.Keys(header)) {
		t, size, err := tensor(header[name], body)
		if err == nil && used+size > uint64(len(body)) {
			err = errors.New("the tensors overlap")
		}
		if err != nil {
			return nil, fmt.Errorf("read safetensors: tensor %q: %w", name, err)
		}
		used += size
		f.Tensors[name] = t
	}
	return f, nil
}

// split returns the header's fields and the bytes behind the header.
func split(data []byte) (map[string]json.RawMessage, []byte, error) {
	if len(data) < 8 || len(data) > MaxSize {
		return nil, nil, fmt.Errorf("the file has %d bytes, want 8 to %d", len(data), MaxSize)
	}
	length := binary.LittleEndian.Uint64(data)
	if limit := uint64(min(maxHeader, len(data)-8)); length > limit {
		return nil, nil, fmt.Errorf("the header's length is %d, want at most %d", length, limit)
	}
	var header map[string]json.RawMessage
	if err := json.Unmarshal(data[8:8+length], &header); err != nil {
		return nil, nil, fmt.Errorf("the header is not a JSON object: %w", err)
	}
	return header, data[8+length:], nil
}

// tensor reads a tensor of the body and returns its size in bytes.
func tensor(raw json.RawMessage, body []byte) (t Tensor, size uint64, err error) {
	var e entry
	if err := json.Unmarshal(raw, &e); err != nil {
		return t, 0, err
	}
	width, ok := map[string]int{"I8": 1, "F16": 2, "F32": 4, "F64": 8}[e.Type]
	if !ok {
		return t, 0, fmt.Errorf("elements of type %q, want F16, F32, F64 or I8", e.Type)
	}
	if len(e.Shape) > maxDimensions {
		return t, 0, fmt.Errorf("%d dimensions, want at most %d", len(e.Shape), maxDimensions)
	}
	count := 1
	for _, n := range e.Shape {
		if n < 1 || n > MaxSize || count > MaxSize/n {
			return t, 0, fmt.Errorf("shape %v, want lengths from 1 and at most %d elements", e.Shape, MaxSize)
		}
		count *= n
	}
	if len(e.Offsets) != 2 || e.Offsets[0] > e.Offsets[1] || e.Offsets[1] > uint64(len(body)) ||
		e.Offsets[1]-e.Offsets[0] != uint64(count*width) {
		return t, 0, fmt.Errorf("data_offsets %v, want %d bytes within the %d behind the header", e.Offsets, count*width, len(body))
	}
	t = Tensor{Type: e.Type, Shape: e.Shape, Data: make([]float64, count)}
	at := body[e.Offsets[0]:e.Offsets[1]]
	for i := range t.Data {
		t.Data[i] = number(at[i*width:], width)
		if math.IsNaN(t.Data[i]) || math.IsInf(t.Data[i], 0) {
			return t, 0, fmt.Errorf("element %d is %v, want a finite number", i, t.Data[i])
		}
	}
	return t, uint64(count * width), nil
}

// number reads a number of the given width in bytes.
func number(b []byte, width int) float64 {
	switch width {
	case 1:
		return float64(int8(b[0]))
	case 2:
		return float64(float16.Frombits(binary.LittleEndian.Uint16(b)).Float32())
	case 4:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	default:
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	}
}
