package design

import (
	_ "embed"
	"encoding/binary"
	"math/bits"
)

// table holds, for each dimension from the second on, little-endian 16-bit
// numbers: the coefficients of its primitive polynomial of degree s, leading
// and constant one included, and the s initial direction integers m_1, …, m_s
// of Joe and Kuo's new-joe-kuo-6.21201. testdata/directions.py made it.
//
//go:embed directions.bin
var table []byte

// directions returns the direction numbers of the first dim dimensions, 32 for
// each, the k-th with its first binary digit in bit 31.
func directions(dim int) []uint32 {
	all := make([]uint32, 32*dim)
	for k := range 32 {
		all[k] = 1 << (31 - k) // the first dimension is van der Corput's sequence
	}
	rest := table
	next := func() uint32 {
		v := binary.LittleEndian.Uint16(rest)
		rest = rest[2:]
		return uint32(v)
	}
	for d := 1; d < dim; d++ {
		v := all[32*d : 32*d+32]
		polynomial := next()
		s := bits.Len32(polynomial) - 1
		for k := range s {
			v[k] = next() << (31 - k)
		}
		// The recurrence of Bratley and Fox (1988), algorithm 659.
		for k := s; k < 32; k++ {
			v[k] = v[k-s] ^ v[k-s]>>s
			for i := 1; i < s; i++ {
				if polynomial>>(s-i)&1 != 0 {
					v[k] ^= v[k-i]
				}
			}
		}
	}
	return all
}
