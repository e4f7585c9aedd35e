package safetensors

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// file returns the bytes of a file with a header and the bytes behind it.
func file(header string, body ...byte) []byte {
	return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...), body...)
}

// The bytes follow the format's definition: IEEE 754 numbers, little-endian.
func TestRead(t *testing.T) {
	body := []byte{0x00, 0x3c, 0x00, 0xc0, 0x01, 0x00} // 1, -2 and the smallest subnormal half
	body = binary.LittleEndian.AppendUint32(body, math.Float32bits(0.1))
	body = binary.LittleEndian.AppendUint64(body, math.Float64bits(0.1))
	body = append(body, 0x7f, 0x80, 0xff) // two's complement
	got, err := Read(file(`{"__metadata__": {"heads": "4"},
		"half": {"dtype": "F16", "shape": [1, 3], "data_offsets": [0, 6]},
		"single": {"dtype": "F32", "shape": [1], "data_offsets": [6, 10]},
		"double": {"dtype": "F64", "shape": [], "data_offsets": [10, 18]},
		"byte": {"dtype": "I8", "shape": [3], "data_offsets": [18, 21]}}`, body...))
	want := &File{Metadata: map[string]string{"heads": "4"}, Tensors: map[string]Tensor{
		"half":   {Type: "F16", Shape: []int{1, 3}, Data: []float64{1, -2, math.Ldexp(1, -24)}},
		"single": {Type: "F32", Shape: []int{1}, Data: []float64{float64(float32(0.1))}},
		"double": {Type: "F64", Shape: []int{}, Data: []float64{0.1}},
		"byte":   {Type: "I8", Shape: []int{3}, Data: []float64{127, -128, -1}},
	}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestErrors(t *testing.T) {
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"short": {[]byte{1, 2}, "the file has 2 bytes, want 8 to 67108864"},
		"long header": {binary.LittleEndian.AppendUint64(nil, math.MaxUint64),
			"the header's length is 18446744073709551615, want at most 0"},
		"no JSON":  {file("[]"), "the header is not a JSON object"},
		"metadata": {file(`{"__metadata__": {"a": 1}}`), "__metadata__: json"},
		"type": {file(`{"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}`, 0),
			`tensor "a": elements of type "U8", want F16, F32, F64 or I8`},
		"dimensions": {file(`{"a": {"dtype": "F16", "shape": [1,1,1,1,1,1,1,1,1], "data_offsets": [0, 2]}}`, 0, 0),
			"9 dimensions, want at most 8"},
		"negative shape":   {file(`{"a": {"dtype": "F16", "shape": [-1], "data_offsets": [0, 2]}}`, 0, 0), "shape [-1], want lengths from 1"},
		"product of shape": {file(`{"a": {"dtype": "F16", "shape": [67108864, 2], "data_offsets": [0, 2]}}`, 0, 0), "at most 67108864 elements"},
		"offsets": {file(`{"a": {"dtype": "F16", "shape": [1], "data_offsets": [0, 4]}}`, 0, 0, 0, 0),
			"data_offsets [0 4], want 2 bytes within the 4"},
		"beyond the end": {file(`{"a": {"dtype": "F16", "shape": [1], "data_offsets": [1, 3]}}`, 0, 0),
			"data_offsets [1 3], want 2 bytes within the 2"},
		"backwards": {file(`{"a": {"dtype": "F16", "shape": [1], "data_offsets": [2, 0]}}`, 0, 0), "data_offsets [2 0]"},
		"overlap": {
			file(`{"a": {"dtype": "F16", "shape": [1], "data_offsets": [0, 2]}, "b": {"dtype": "F16", "shape": [1], "data_offsets": [0, 2]}}`, 0, 0),
			`tensor "b": the tensors overlap`},
		"not a number": {file(`{"a": {"dtype": "F16", "shape": [1], "data_offsets": [0, 2]}}`, 0x00, 0x7e),
			"element 0 is NaN, want a finite number"},
	} {
		if _, err := Read(c.data); err == nil || !strings.HasPrefix(err.Error(), "read safetensors: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// Whatever is read keeps the promises of Read.
func FuzzRead(f *testing.F) {
	f.Add(file(`{"__metadata__": {"a": "b"}, "a": {"dtype": "F16", "shape": [2], "data_offsets": [0, 4]}}`, 0, 0, 0, 60))
	f.Add(file(`{"a": {"dtype": "F64", "shape": [], "data_offsets": [0, 8]}}`, 0, 0, 0, 0, 0, 0, 0, 0))
	f.Add(file(`{"a": {"dtype": "I8", "shape": [2], "data_offsets": [0, 2]}}`, 1, 255))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := Read(data)
		if err != nil {
			return
		}
		elements := 0
		for name, tensor := range got.Tensors {
			count := 1
			for _, n := range tensor.Shape {
				count *= n
			}
			if count != len(tensor.Data) {
				t.Errorf("%q: shape %v and %d elements", name, tensor.Shape, len(tensor.Data))
			}
			for _, v := range tensor.Data {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					t.Errorf("%q has %v", name, v)
				}
			}
			elements += count
		}
		if elements > len(data) {
			t.Errorf("%d elements of %d bytes", elements, len(data))
		}
	})
}
