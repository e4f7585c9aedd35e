//go:build mutants

package engine

// switches holds the guards that are off.
type switches struct{ off guard }

// on reports whether a guard is on.
func (s switches) on(g guard) bool { return s.off&g == 0 }
