//go:build mutants

package engine

// switches says which guards are off.
type switches struct{ off guard }

// on reports whether a guard is in force.
func (s switches) on(g guard) bool { return s.off&g == 0 }
