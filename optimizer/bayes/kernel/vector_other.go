//go:build !amd64

package kernel

// The vector functions return how many elements they computed: here, none.

func distancesVector(_ []float64, _ *table, _ int, _ *table, _ int, _ []float64, _ float64) int {
	return 0
}

func productsVector(_ []float64, _ *table, _ int, _ *table, _ int, _ float64) int { return 0 }

func momentsVector(_, _ []float64, _ *table, _ int, _ *table) bool { return false }

func covariancesVector(_, _ []float64, _, _ float64) int { return 0 }

func slopesVector(_, _, _ []float64, _ *radial, _ *[4]float64) bool { return false }
