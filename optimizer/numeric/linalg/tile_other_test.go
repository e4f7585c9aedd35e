//go:build !amd64

package linalg

// tiles returns the versions of tile that this processor can run.
func tiles() map[string]func(width, terms int, a leftFactor, b, c matrix, sign float64) {
	return map[string]func(width, terms int, a leftFactor, b, c matrix, sign float64){"default": tile}
}
