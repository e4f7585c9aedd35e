package acquisition

// LogPI returns the logarithm of the probability that a normal variable with
// the given mean and standard deviation sd > 0 is below best.
func LogPI(mean, sd, best float64) float64 { return LogCDF((best - mean) / sd) }
