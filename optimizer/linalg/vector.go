package linalg

import "math"

// solveLVec replaces b by L⁻¹·b, where u = Lᵀ.
func solveLVec(u matrix, b []float64) {
	n := len(b)
	for i := 0; i < n; i += strip {
		size := min(strip, n-i)
		var f stripFactors
		f.forward(u.from(i, i), size)
		solveRows(&f, b, i, 1, size, 1)
		if size == strip {
			subtractRows(b[i+strip:], b[i:i+strip], u.from(i, i+strip))
		}
	}
}

// solveLTVec replaces b by L⁻ᵀ·b, where u = Lᵀ.
func solveLTVec(u matrix, b []float64) {
	n := len(b)
	for i := (n - 1) / strip * strip; i >= 0; i -= strip {
		size := min(strip, n-i)
		if size == strip {
			subtractDots(b[i:i+strip], b[i+strip:], u.from(i, i+strip))
		}
		var f stripFactors
		f.backward(u.from(i, i), size)
		solveRows(&f, b, i+size-1, -1, size, 1)
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

// subtractDots subtracts from each element of dst the product of v and a strip's
// row. The terms of such a product are added up in lanes sums, the k-th to the
// (k mod lanes)-th, and these by twos.
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
