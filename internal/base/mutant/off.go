//go:build !mutants

package mutant

// On reports whether a guard is on.
func On(Guard) bool { return true }
