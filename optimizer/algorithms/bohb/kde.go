package bohb

import (
	"math"

	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// kind is the kind of a column's kernel.
type kind int

const (
	continuous kind = iota // Gaussian
	unordered              // Aitchison and Aitken (1976)
	ordered                // Wang and van Ryzin (1981)
)

// column is one coordinate of a density: a place in [0,1], or the number of a value.
type column struct {
	optimizer.Column
	kind kind
}

func newColumns(e *optimizer.Encoding) []column {
	columns := make([]column, e.Dim())
	for i, c := range e.Columns() {
		columns[i].Column = c
		switch {
		case c.Unordered():
			columns[i].kind = unordered
		case c.Parameter.Type == study.Ordinal:
			columns[i].kind = ordered
		}
	}
	return columns
}

// value returns the density's coordinate of a place in the unit interval.
func (c column) value(u float64) float64 {
	if c.kind == continuous {
		return u
	}
	return float64(c.Level(u))
}

// gridPlace is the inverse of value.
func (c column) gridPlace(v float64) float64 {
	if c.kind == continuous {
		return v
	}
	return c.Place(int(v))
}

// density is a product kernel density estimate as statsmodels' KDEMultivariate makes it.
type density struct {
	columns []column
	data    [][]float64 // rows of coordinates
	width   []float64   // of each column
	levels  []float64   // how many values of an unordered column the data have
}

// newDensity returns the density of at least one row, with the bandwidths of the normal
// reference rule, 1.06·σ·n^(−1/(4+d)), but at least least. A bandwidth of a kernel that is a
// probability is at most that of the uniform distribution.
func newDensity(columns []column, data [][]float64, least float64) *density {
	d := &density{columns: columns, data: data, width: reference(data), levels: levels(columns, data)}
	for k, c := range columns {
		d.width[k] = max(d.width[k], least)
		switch n := float64(c.Levels); c.kind {
		case unordered:
			d.width[k] = min(d.width[k], (n-1)/n)
		case ordered:
			d.width[k] = min(d.width[k], 1-least)
		}
	}
	return d
}

// reference returns the bandwidths of the normal reference rule.
func reference(data [][]float64) []float64 {
	n, dim := float64(len(data)), len(data[0])
	width := make([]float64, dim)
	for k := range width {
		var mean, sum float64
		for _, row := range data {
			mean += row[k] / n
		}
		for _, row := range data {
			sum += (row[k] - mean) * (row[k] - mean)
		}
		width[k] = 1.06 * math.Sqrt(sum/n) * math.Pow(n, -1/(4+float64(dim)))
	}
	return width
}

// levels counts the values that the data have in each unordered column. statsmodels takes
// these for all that there are. If there is only one, its kernel is not defined, and the
// parameter's own number is taken.
func levels(columns []column, data [][]float64) []float64 {
	counts := make([]float64, len(columns))
	for k, c := range columns {
		if c.kind != unordered {
			continue
		}
		seen := map[float64]bool{}
		for _, row := range data {
			seen[row[k]] = true
		}
		if counts[k] = float64(len(seen)); len(seen) < 2 {
			counts[k] = float64(c.Levels)
		}
	}
	return counts
}

// at returns the density at a row of coordinates.
func (d *density) at(x []float64) float64 {
	var sum float64
	for _, row := range d.data {
		product := 1.0
		for k, c := range d.columns {
			h := d.width[k]
			switch {
			case c.kind == continuous:
				z := (row[k] - x[k]) / h
				product *= math.Exp(-z*z/2) / (math.Sqrt(2*math.Pi) * h)
			case row[k] == x[k]:
				product *= 1 - h
			case c.kind == unordered:
				product *= h / (d.levels[k] - 1)
			default:
				product *= (1 - h) / 2 * math.Pow(h, math.Abs(row[k]-x[k]))
			}
		}
		sum += product
	}
	return sum / float64(len(d.data))
}
