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
// Fit tries every chain that the outcomes allow and keeps the one under which
// they are the most likely: the likelihood of normal z times the Jacobian
// ∏ dz/dy, so that the chains are compared as densities of the same y.
//
// # What is invariant
//
// Every chain is equivariant to a positive factor: z does not depend on the unit
// of y. Plain standardisation and the centred Yeo-Johnson do not depend on the
// origin of y either. Box-Cox and the uncentred Yeo-Johnson do, which is their
// point: a zero that means something, such as that of an error rate, is used
// when the likelihood gains by it. A shift therefore never takes the likelihood
// below the centred chain's. The order of the outcomes does not matter, not even
// in the last bit.
//
// # Outliers
//
// Lower is better, so the resolution among the low outcomes is what must be
// kept. Let the bulk be the outcomes, five or more, without the lowest twentieth
// (at least one), and R the way from its least outcome up to the median.
// Outcomes more than 3R above the median are squeezed into one further R (like
// 1 − 1/(1+r), whose density has a Cauchy tail): that they are bad is all that
// a search can use. Outcomes more than 3R below the bulk, at most a twentieth
// of all, are progress, not noise: their distance d is squeezed into 3R by its
// logarithm, l/(1 + l/3) with l = log(1 + d/R), so that they stay apart from the
// rest and, over hundreds of decades, from each other. No outcome is dropped,
// and order is kept. The fences come from the lower half alone: where most
// outcomes lie on a plateau of bad ones, the few good ones are no outliers.
//
// Clipped chains compete with unclipped ones by likelihood, so that the long
// tail of a lognormal is left to Box-Cox; but one that leaves the outcomes
// between the fences an sd below 0.2 counts as failed. And λ ends at 2, where
// Yeo-Johnson takes the logarithm of how far an outcome is below the centre: a
// larger λ, which a plateau of bad outcomes with a few good ones asks for, would
// make the good ones equal.
package transform
