//go:build !amd64

package linalg

func tile(width, terms int, a leftFactor, b, c matrix, sign float64) {
	tileGo(width, terms, a, b, c, sign)
}

func solveStrip(f *stripFactors, data []float64, first, step, groups int) {
	solveStripGo(f, data, first, step, groups)
}

func subtractGroups(dst, factors []float64, rows matrix, groups int) {
	subtractGroupsGo(dst, factors, rows, groups)
}

func squareGroups(dst []float64, rows matrix, groups int) {
	squareGroupsGo(dst, rows, groups)
}

func dotGroups(sums *[strip * lanes]float64, v []float64, rows matrix, groups int) {
	dotGroupsGo(sums, v, rows, groups)
}
