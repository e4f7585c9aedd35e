package local

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// A log takes at most twice its bound, loses no line before that, and goes on after a restart.
func TestLogIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fantasia.log")
	const limit = 1000
	var l *logFile
	for i := range 300 {
		if i%70 == 0 { // another process
			if l != nil {
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
			}
			var err error
			if l, err = openLog(path, limit); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := fmt.Fprintf(l, "line %03d\n", i); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path + ".1")
	if err != nil {
		t.Fatal(err)
	}
	now, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	for i := 300 - (len(before)+len(now))/9; i < 300; i++ {
		fmt.Fprintf(&want, "line %03d\n", i)
	}
	if got := append(before, now...); !bytes.Equal(got, want.Bytes()) || len(before) > limit || len(before) < limit-9 || len(now) > limit {
		t.Errorf("%d and %d bytes are left:\n%s\nwant the last lines, in two files of at most %d bytes", len(before), len(now), got, limit)
	}
}
