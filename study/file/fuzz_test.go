package file_test

import (
	"os"
	"path/filepath"
	"runtime/metrics"
	"syscall"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/study/file"
	"github.com/fantasia-hpo/fantasia/study/space/celspace"
)

// Bounds on what one input may cost. The processor's time counts, as a busy machine does not
// change it; that of an instrumented build is some ten times that of others.
const (
	maxProcessorTime = 10 * time.Second
	maxFixedBytes    = 64 << 20
	maxBytesPerByte  = 1000
)

// cost returns what this process has used so far: processor time, and bytes allocated in total.
func cost(t testing.TB) (used time.Duration, bytes uint64) {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), sample[0].Value.Uint64()
}

// bounded fails if f costs more than an input of a size may.
func bounded(t testing.TB, what string, size int, f func()) {
	t.Helper()
	timeBefore, bytesBefore := cost(t)
	f()
	timeAfter, bytesAfter := cost(t)
	if used := timeAfter - timeBefore; used > maxProcessorTime {
		t.Fatalf("%s took %v of processor time for an input of %d bytes, want at most %v", what, used, size, maxProcessorTime)
	}
	if used, most := bytesAfter-bytesBefore, uint64(maxFixedBytes+maxBytesPerByte*size); used > most {
		t.Fatalf("%s allocated %d bytes for an input of %d bytes, want at most %d", what, used, size, most)
	}
}

// FuzzParse checks that no input makes Parse panic or cost much, and that what it accepts is
// read back equal from canonical JSON and compiles to a space.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/good/*.yaml", "testdata/bad/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, path := range files {
			data, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		bounded(t, "a study file", len(data), func() {
			s, err := file.Parse(data)
			if err != nil {
				_ = err.Error()
				return
			}
			mustRoundTrip(t, s)
			if _, err := celspace.Of(s); err != nil {
				t.Fatalf("the space of an accepted study does not compile: %v", err)
			}
		})
	})
}
