// Package design holds the space-filling designs of the unit cube.
package design

import (
	"errors"
	"fmt"
)

// MaxDim is the largest dimension of a Sobol sequence here.
const MaxDim = 1111

// ErrDimension is the error for a dimension that a sequence does not support.
var ErrDimension = errors.New("dimension out of range")

// Sobol is a Sobol sequence with the direction numbers of Joe and Kuo (2008,
// new-joe-kuo-6.21201), in Gray code order, with random access. It is immutable
// and safe for concurrent use.
type Sobol struct {
	dim        int
	scrambled  bool
	seed       uint64
	directions []uint32 // 32 for each dimension
}

// NewSobol returns the unscrambled sequence of dim dimensions, 1 to MaxDim; point 0 is
// the origin. The error wraps ErrDimension.
func NewSobol(dim int) (*Sobol, error) {
	if dim < 1 || dim > MaxDim {
		return nil, fmt.Errorf("a Sobol sequence of %d dimensions: %w, want 1 to %d", dim, ErrDimension, MaxDim)
	}
	return &Sobol{dim: dim, directions: directions(dim)}, nil
}

// NewScrambledSobol returns the sequence with Owen's nested uniform scrambling (Owen
// 1995), drawn from seed. Points stay as evenly spread, each is uniformly distributed
// over seeds, and the origin is not a point.
func NewScrambledSobol(dim int, seed uint64) (*Sobol, error) {
	s, err := NewSobol(dim)
	if err != nil {
		return nil, err
	}
	s.scrambled, s.seed = true, seed
	return s, nil
}

// At sets dst, with a value for each dimension, to the coordinates, in [0, 1), of the point with
// the given index.
func (s *Sobol) At(dst []float64, index uint32) {
	if len(dst) != s.dim {
		panic(fmt.Sprintf("design: a point of %d dimensions into %d values", s.dim, len(dst)))
	}
	gray := index ^ index>>1
	for c := range dst {
		v := s.directions[32*c : 32*c+32]
		var x uint32
		for bits, k := gray, 0; bits != 0; bits, k = bits>>1, k+1 {
			if bits&1 != 0 {
				x ^= v[k]
			}
		}
		if s.scrambled {
			dst[c] = scramble(x, s.seed, uint64(c))
		} else {
			dst[c] = float64(x) * 0x1p-32
		}
	}
}

// scramble returns the coordinate with the given leading 32 binary digits after Owen's
// nested uniform scrambling: a random bit, determined by the digits before it, decides
// whether each digit is flipped. The next 20 digits, which are 0 in the sequence,
// become uniformly random.
func scramble(x uint32, seed, dimension uint64) float64 {
	key := mix(seed ^ mix(dimension+1))
	var flips uint32
	for k := range 32 {
		// prefix is digits 1..k with a leading 1, which keeps prefixes of different
		// lengths apart.
		prefix := uint64(1)<<k | uint64(x)>>(32-k)
		flips = flips<<1 | uint32(mix(key^prefix)>>63)
	}
	tail := mix(key^(1<<32|uint64(x))) >> 44
	return float64(uint64(x^flips)<<20|tail) * 0x1p-52
}

// mix is the output function of SplitMix64 (Steele, Lea and Flood 2014): a
// bijection whose every output bit depends on every input bit.
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
