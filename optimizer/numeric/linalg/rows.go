package linalg

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas/blas64"
)

// AddRows adds to each dst[j] the sum of factors[i] times element (i, j) of rows,
// term by term in the order of i. rows has as many rows as there are factors,
// and at least as many columns as dst has elements.
func AddRows(dst, factors []float64, rows blas64.General) {
	checkRows(dst, rows)
	if rows.Rows != len(factors) {
		panic(fmt.Sprintf("linalg: %d factors of %d rows", len(factors), rows.Rows))
	}
	m := matrix{rows.Data, rows.Stride}
	i := 0
	for ; i+strip <= len(factors); i += strip {
		var negative [strip]float64
		for p := range negative {
			negative[p] = -factors[i+p]
		}
		subtractRows(dst, negative[:], m.from(i, 0))
	}
	for ; i < len(factors); i++ {
		subtract(dst, m.row(i, len(dst)), -factors[i])
	}
}

// AddSquares adds to each dst[j] the sum of the squares of column j of rows, term
// by term in the order of the rows. rows has at least as many columns as dst has
// elements.
func AddSquares(dst []float64, rows blas64.General) {
	checkRows(dst, rows)
	m := matrix{rows.Data, rows.Stride}
	i, done := 0, len(dst)/lanes*lanes
	if done > 0 {
		for ; i+strip <= rows.Rows; i += strip {
			squareGroups(dst, m.from(i, 0), done/lanes)
		}
		addSquares(dst[:done], m.from(i, 0), rows.Rows-i)
	}
	addSquares(dst[done:], m.from(0, done), rows.Rows)
}

// addSquares is AddSquares for n rows.
func addSquares(dst []float64, rows matrix, n int) {
	for i := range n {
		for j, v := range rows.row(i, len(dst)) {
			dst[j] = math.FMA(v, v, dst[j])
		}
	}
}

// squareGroupsGo is AddSquares for the rows of a strip and groups of lanes
// columns.
func squareGroupsGo(dst []float64, rows matrix, groups int) {
	addSquares(dst[:groups*lanes], rows, strip)
}

func checkRows(dst []float64, rows blas64.General) {
	if rows.Cols < len(dst) {
		panic(fmt.Sprintf("linalg: rows of %d columns added to %d elements", rows.Cols, len(dst)))
	}
}
