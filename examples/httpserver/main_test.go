package main

import (
	"context"
	"runtime/debug"
	"testing"
)

// The example runs to its end, and leaves the garbage collector as it was.
func TestRun(t *testing.T) {
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	if err := run(3, 50); err != nil {
		t.Fatal(err)
	}
	if after := debug.SetGCPercent(100); after != 100 {
		t.Errorf("GOGC is %d, want 100 as before", after)
	}
}

// A measurement whose requests fail has no result.
func TestFailures(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := load(ctx, usual, 10); err == nil || err.Error() != "10 of 10 requests failed" {
		t.Errorf("error %v, want one that counts the requests", err)
	}
}
