package transform

import "math"

// A power transform is written here in logarithms: with the coordinate
//
//	Box-Cox      s = log(1+w), w > −1
//	Yeo-Johnson  s = sign(w)·log(1+|w|)
//
// both have log dψ/dw = (λ−1)·s, and ψ = growth(λ, s), where Yeo-Johnson has
// ψ = −growth(2−λ, −s) for s < 0 (Box and Cox 1964; Yeo and Johnson 2000). A
// Box-Cox transform of v is that of v/g = 1+w with another mean and sd.

// tiny is the |λ| below which exp(λt) − 1 = λt to rounding for every t here.
const tiny = 1e-100

// growth returns (exp(λt) − 1)/λ, t at λ = 0.
func growth(lambda, t float64) float64 {
	if math.Abs(lambda) < tiny {
		return t
	}
	return math.Expm1(lambda*t) / lambda
}

// growthInverse returns t with growth(λ, t) = v; infinite outside the range.
func growthInverse(lambda, v float64) float64 {
	if math.Abs(lambda) < tiny {
		return v
	}
	return math.Log1p(max(lambda*v, -1)) / lambda
}

// power returns ψ of the coordinate s.
func power(kind Kind, lambda, s float64) float64 {
	switch {
	case kind == KindStandard:
		return s
	case kind != KindBoxCox && s < 0:
		return -growth(2-lambda, -s)
	}
	return growth(lambda, s)
}

// powerInverse returns the coordinate s of ψ; infinite outside the range.
func powerInverse(kind Kind, lambda, v float64) float64 {
	switch {
	case kind == KindStandard:
		return v
	case kind != KindBoxCox && v < 0:
		return -growthInverse(2-lambda, -v)
	}
	return growthInverse(lambda, v)
}

// coordinate returns s of v: w itself for plain standardisation. Box-Cox has
// scale = centre = g > 0, and v ≤ 0 counts as the least positive number.
func coordinate(kind Kind, v, centre, scale float64) float64 {
	w := (v - centre) / scale
	switch {
	case kind == KindStandard:
		return w
	case kind == KindBoxCox && math.Abs(w) < 0.5: // exact where v is near g
		return math.Log1p(w)
	case kind == KindBoxCox: // v/g may overflow
		return math.Log(max(v, math.SmallestNonzeroFloat64)) - math.Log(centre)
	case math.IsInf(w, 0):
		return math.Copysign(math.Log(math.Abs(v-centre))-math.Log(scale), w)
	}
	return math.Copysign(math.Log1p(math.Abs(w)), w)
}

// fromCoordinate returns v of the coordinate s.
func fromCoordinate(kind Kind, s, centre, scale float64) float64 {
	switch kind {
	case KindStandard:
		return centre + scale*s
	case KindBoxCox:
		if s > 500 { // exp(s) may overflow where v does not
			return math.Exp(s + math.Log(centre))
		}
		return centre * math.Exp(s)
	}
	return centre + math.Copysign(scale*math.Expm1(math.Abs(s)), s)
}
