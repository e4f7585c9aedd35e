//go:build !amd64

package vecmath

// expVector and logVector return how many of the first elements they have set.

func expVector(_, _ []float64) int { return 0 }

func logVector(_, _ []float64) int { return 0 }
