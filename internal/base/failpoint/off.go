//go:build !failpoints

package failpoint

import "time"

// Reach marks a place where a process can die or wait.
func Reach(Point) {}

// Fail marks a place that can also fail: it returns the error that the caller must treat as
// its own, or nil.
func Fail(Point) error { return nil }

// Duration returns a time, unless a rule sets another one.
func Duration(_ Point, usual time.Duration) time.Duration { return usual }
