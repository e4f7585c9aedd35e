package acquisition

import (
	"math"

	"github.com/fantasia-hpo/fantasia/optimizer/bayes"
)

// learntSD returns the standard deviation of the posterior mean at a point after one more
// evaluation there, and its derivative by the variance. Without noise this is the
// posterior's standard deviation; large noise makes it small (Frazier, Powell and
// Dayanik 2009, the knowledge gradient of one point).
func learntSD(variance, noise float64) (sd, slope float64) {
	total := variance + noise
	root := math.Sqrt(total)
	return variance / root, (variance + 2*noise) / (2 * total * root)
}

// Knowledge returns the logarithm of the expected gain in the best posterior mean from
// one more evaluation of a point, given the mean of its best rival. It is what a repeat of
// an evaluation is worth: also a good point gains by it, if it might have been lucky.
func Knowledge(k *bayes.Known, mean, variance, rival float64) float64 {
	sd, _ := learntSD(variance, k.Noise)
	if mean < rival {
		mean, rival = rival, mean
	}
	return LogEI(mean, sd, rival)
}
