package study

// Levels returns the values of a fidelity, ascending: min, min·reduction, min·reduction²
// and so on. The last level is max. It takes the place of the highest product that is not
// above max, so that two levels are never nearer to each other than the reduction.
func (p Parameter) Levels() []int64 {
	low, high, factor := int64(*p.Min), int64(*p.Max), p.reduction()
	var levels []int64
	for level := low; level <= high/factor; level *= factor {
		levels = append(levels, level)
	}
	return append(levels, high)
}

// reduction returns the factor between two levels.
func (p Parameter) reduction() int64 {
	if p.Reduction == nil {
		return DefaultReduction
	}
	return int64(*p.Reduction)
}
