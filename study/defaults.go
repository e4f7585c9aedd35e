package study

import "time"

// The defaults of a study file, beside its algorithm and the scales of its
// parameters.
const (
	DefaultTake        = TakeLast
	DefaultPool        = "default"
	DefaultParallelism = 1
	DefaultMode        = ModeProcess
	DefaultGrace       = Duration(30 * time.Second)
	// DefaultWait and DefaultFallbackAfter are Algorithm.Wait and FallbackAfter: worth
	// it for programs that answer at once, and nothing beside those that train.
	DefaultWait          = Duration(250 * time.Millisecond)
	DefaultFallbackAfter = Duration(5 * time.Second)
	// DefaultRetriesLost is how often a lost attempt is replaced; one that ran
	// into its timeout or failed is not, by default.
	DefaultRetriesLost = 2
)
