package study

import "time"

// The defaults of a study file, except for its algorithm and the scales of its
// parameters.
const (
	DefaultTake = TakeLast
	// DefaultReduction is the default of a fidelity's Reduction.
	DefaultReduction   = 3
	DefaultPool        = "default"
	DefaultParallelism = 1
	// DefaultClientParallelism is the default of a study without a command, whose clients
	// decide how many trials they evaluate at once.
	DefaultClientParallelism = 100
	DefaultMode              = ModeProcess
	DefaultGrace             = Duration(30 * time.Second)
	// DefaultWait and DefaultFallbackAfter are the defaults of Algorithm.Wait and
	// FallbackAfter. They matter for programs that answer at once and are negligible
	// for those that train.
	DefaultWait          = Duration(250 * time.Millisecond)
	DefaultFallbackAfter = Duration(5 * time.Second)
	// DefaultRetriesLost is the number of times that a lost attempt is replaced.
	// Attempts that time out or fail are not replaced by default.
	DefaultRetriesLost = 2
)
