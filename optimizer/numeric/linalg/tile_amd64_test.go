package linalg

import "golang.org/x/sys/cpu"

// tiles returns the versions of tile that this processor can run.
func tiles() map[string]func(width, terms int, a leftFactor, b, c matrix, sign float64) {
	all := map[string]func(width, terms int, a leftFactor, b, c matrix, sign float64){"default": tile}
	if vectors() {
		all["AVX2"] = tileByParts
	}
	if cpu.X86.HasAVX512F {
		all["AVX-512"] = tile
	}
	return all
}
