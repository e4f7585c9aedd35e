package fantasia_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia"
)

// The time of a whole study of 10,000 trials whose evaluation takes no time, in memory.
func BenchmarkStudy(b *testing.B) {
	for _, algorithm := range []string{"random", "sobol", "tpe"} {
		b.Run(algorithm, func(b *testing.B) {
			before := processorTime(b)
			for b.Loop() {
				study10000(b, fantasia.Options{Algorithm: fantasia.Algorithm{Name: algorithm}})
			}
			b.ReportMetric((processorTime(b)-before).Seconds()/float64(b.N), "cpu-s/op")
		})
	}
}

// The same with a state, in which each result is on the disk before the next trial.
func BenchmarkState(b *testing.B) {
	for _, algorithm := range []string{"random", "tpe"} {
		for _, parallel := range []int{1, 8} {
			b.Run(fmt.Sprintf("%s/parallel=%d", algorithm, parallel), func(b *testing.B) {
				before := processorTime(b)
				for b.Loop() {
					study10000(b, fantasia.Options{Algorithm: fantasia.Algorithm{Name: algorithm}, State: filepath.Join(b.TempDir(), "state"),
						Parallel: parallel})
				}
				b.ReportMetric((processorTime(b)-before).Seconds()/float64(b.N), "cpu-s/op")
			})
		}
	}
}

// What BenchmarkState cannot do without: 10,000 times, a record of the same size is written and synced.
func BenchmarkFsync(b *testing.B) {
	record := make([]byte, 1200)
	for b.Loop() {
		file, err := os.Create(filepath.Join(b.TempDir(), "file"))
		if err != nil {
			b.Fatal(err)
		}
		for range 10_000 {
			if _, err := file.Write(record); err != nil {
				b.Fatal(err)
			}
			if err := file.Sync(); err != nil {
				b.Fatal(err)
			}
		}
		if err := file.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// processorTime returns how long processors have worked for this process and in the kernel for it.
func processorTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func study10000(b *testing.B, o fantasia.Options) {
	space := fantasia.NewSpace()
	x, y := space.Float("x", 0, 1), space.Float("y", 1e-3, 1, fantasia.Log)
	kind := space.Choice("kind", []string{"a", "b", "c"})
	o.Trials = 10_000
	u, err := fantasia.Minimize(space, o)
	if err != nil {
		b.Fatal(err)
	}
	defer u.Close()
	if err := u.Run(b.Context(), func(_ context.Context, t *fantasia.Trial) (float64, error) {
		if kind.Of(t) == "a" {
			return x.Of(t) + y.Of(t), nil
		}
		return x.Of(t) * y.Of(t), nil
	}); err != nil {
		b.Fatal(err)
	}
}
