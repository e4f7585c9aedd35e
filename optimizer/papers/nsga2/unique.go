package nsga2

import (
	"math"
	"math/bits"
	"slices"
)

// uniques is a set of rows of a matrix, compared bit for bit. It is an open-addressing
// table with room for twice as many rows.
type uniques struct {
	d     int
	table []int32 // row+1, 0 where free
}

func newUniques(rows, d int) *uniques {
	return &uniques{d: d, table: make([]int32, 1<<bits.Len(uint(2*rows)))}
}

func (u *uniques) clear() { clear(u.table) }

// add adds a row of x, and returns false if an equal row exists.
func (u *uniques) add(x []float64, row int) bool {
	mask := len(u.table) - 1
	added := x[row*u.d:][:u.d]
	for at := int(hash(added)) & mask; ; at = (at + 1) & mask {
		held := int(u.table[at])
		if held == 0 {
			u.table[at] = int32(row + 1)
			return true
		}
		if slices.Equal(x[(held-1)*u.d:][:u.d], added) {
			return false
		}
	}
}

// hash mixes the bits of a row: the finaliser of SplitMix64 (Steele, Lea and
// Flood 2014) after each column.
func hash(x []float64) uint64 {
	var h uint64
	for _, v := range x {
		h = (h ^ math.Float64bits(v+0)) * 0xbf58476d1ce4e5b9 // +0: −0 equals 0
		h = (h ^ h>>27) * 0x94d049bb133111eb
		h ^= h >> 31
	}
	return h
}
