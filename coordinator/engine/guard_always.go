//go:build !mutants

package engine

// switches would say which guards are off: none can be.
type switches struct{}

// on reports whether a guard is in force.
func (switches) on(guard) bool { return true }
