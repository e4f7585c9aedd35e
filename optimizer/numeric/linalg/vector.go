package linalg

import "math"

// solveLVec replaces b by L⁻¹·b.
func (f factor) solveLVec(b []float64) {
	n := len(b)
	for i := 0; i < n; i += strip {
		if n-i < strip {
			solveRows(&f.forward[i/strip], b, i, 1, 0, n-i, 1)
			return
		}
		f.forward[i/strip].solveOne((*[strip]float64)(b[i:]), 0, 1)
		subtractRows(b[i+strip:], b[i:i+strip], f.upper.from(i, i+strip))
	}
}

// solveLTVec replaces b by L⁻ᵀ·b.
func (f factor) solveLTVec(b []float64) {
	n := len(b)
	for i := (n - 1) / strip * strip; i >= 0; i -= strip {
		if size := n - i; size < strip {
			solveRows(&f.backward[i/strip], b, i+strip-1, -1, strip-size, strip, 1)
			continue
		}
		subtractDots(b[i:i+strip], b[i+strip:], f.upper.from(i, i+strip))
		f.backward[i/strip].solveOne((*[strip]float64)(b[i:]), strip-1, -1)
	}
}

// solveOne is solveStrip for one column.
func (f *stripFactors) solveOne(b *[strip]float64, first, step int) {
	i := 0
	for p := range strip {
		v := b[first+p*step]
		for k := range p {
			v = math.FMA(-f[i], b[first+k*step], v)
			i++
		}
		b[first+p*step] = v * f[i]
		i++
	}
}

// subtractRows subtracts from dst the rows of a strip, each times its factor, in
// their order.
func subtractRows(dst, factors []float64, rows matrix) {
	done := len(dst) / lanes * lanes
	if done > 0 {
		subtractGroups(dst, factors, rows, done/lanes)
	}
	for p, factor := range factors[:strip] {
		if done < len(dst) {
			subtract(dst[done:], rows.row(p, len(dst))[done:], factor)
		}
	}
}

// subtractGroupsGo is subtractRows for groups of lanes elements.
func subtractGroupsGo(dst, factors []float64, rows matrix, groups int) {
	for p, factor := range factors[:strip] {
		subtract(dst[:groups*lanes], rows.row(p, groups*lanes), factor)
	}
}

// subtractDots subtracts from each element of dst the product of v and a strip's row.
// The k-th term of a product is added to the (k mod lanes)-th of lanes sums, which are
// then added in pairs.
func subtractDots(dst, v []float64, rows matrix) {
	var sums [strip * lanes]float64
	done := len(v) / lanes * lanes
	if done > 0 {
		dotGroups(&sums, v, rows, done/lanes)
	}
	for p := range strip {
		s := sums[p*lanes:][:lanes]
		for k := done; k < len(v); k++ {
			s[k-done] = math.FMA(rows.data[p*rows.stride+k], v[k], s[k-done])
		}
		dst[p] -= (s[0] + s[1]) + (s[2] + s[3])
	}
}

// dotGroupsGo sets the sums of subtractDots for groups of lanes elements.
func dotGroupsGo(sums *[strip * lanes]float64, v []float64, rows matrix, groups int) {
	for p := range strip {
		s := sums[p*lanes:][:lanes]
		clear(s)
		for k, w := range rows.row(p, groups*lanes) {
			s[k%lanes] = math.FMA(w, v[k], s[k%lanes])
		}
	}
}
