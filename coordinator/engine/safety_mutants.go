//go:build mutants

package engine

// switches holds the checks that are off.
type switches struct{ off safety }

// on reports whether a check is on.
func (s switches) on(c safety) bool { return s.off&c == 0 }
