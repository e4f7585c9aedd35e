// Package transform makes outcomes look normal before a Gaussian process sees
// them, and takes predictions back to the outcomes' units: the output transform
// of HEBO (Cowen-Rivers et al. 2022, section 4.1 and appendix B.2).
//
// A transform is a chain of strictly increasing, smooth maps
//
//	y → v  a soft clip of outliers, or nothing
//	v → w  = (v − centre)/scale
//	w → ψ  Box-Cox or Yeo-Johnson with parameter λ in [−5, 2], or nothing
//	ψ → z  = (ψ − mean)/sd, so that the fitted outcomes have mean 0 and sd 1
//
// Fit tries every chain that the outcomes allow and keeps the one under which they are
// most likely. The likelihood is that of normal z times the Jacobian ∏ dz/dy, so that
// chains are compared as densities of the same y.
//
// # What is invariant
//
// Every chain is equivariant to a positive factor: z does not depend on the unit of y.
// Plain standardisation and the centred Yeo-Johnson do not depend on the origin of y
// either. Box-Cox and the uncentred Yeo-Johnson do, on purpose: a meaningful zero, such
// as that of an error rate, is used if it raises the likelihood. A shift therefore
// never lowers the likelihood below that of the centred chain. The order of the
// outcomes does not matter, not even in the last bit.
//
// # Outliers
//
// Lower is better, so the resolution among the low outcomes must be kept. Let the bulk
// be the outcomes, five or more, without the lowest twentieth (at least one), and R the
// distance from its least outcome to the median. Outcomes more than 3R above the median
// are squeezed into one further R (like 1 − 1/(1+r), whose density has a Cauchy tail):
// a search only needs to know that they are bad. Outcomes more than 3R below the bulk,
// at most a twentieth of all, are progress, not noise. Their distance d is squeezed
// into 3R by its logarithm, l/(1 + l/3) with l = log(1 + d/R), so that they stay apart
// from the rest and, over hundreds of decades, from each other. No outcome is dropped,
// and order is kept. The fences come from the lower half alone: if most outcomes lie on
// a plateau of bad ones, the few good ones are not outliers.
//
// Clipped chains compete with unclipped ones by likelihood, so that Box-Cox handles the
// long tail of a lognormal. A clipped chain fails if it leaves the outcomes between the
// fences an sd below 0.2. λ ends at 2, where Yeo-Johnson takes the logarithm of how far
// an outcome is below the centre. A plateau of bad outcomes with a few good ones asks
// for a larger λ, which would make the good ones equal.
package transform
