package workernode

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/fantasia-hpo/fantasia/worker"
)

// CheckFlags checks the flags that all workers share.
func CheckFlags(f *pflag.FlagSet) error {
	if n, err := f.GetInt("slots"); err == nil && n < 1 {
		return fmt.Errorf("--slots is %d; want 1 or more", n)
	}
	if dir, err := f.GetString("state"); err == nil {
		if info, err := os.Stat(dir); err == nil && !info.IsDir() {
			return fmt.Errorf("--state is %q, which is not a directory", dir)
		}
	}
	return nil
}

// NewOptions are the options of a worker of that version, before its flags are read.
func NewOptions(version string, stderr io.Writer) *Options {
	return &Options{Version: version, Logs: stderr, Worker: worker.DefaultOptions()}
}

// Flags adds the flags that all workers share.
func Flags(f *pflag.FlagSet, o *Options) {
	w := &o.Worker
	f.StringSliceVar(&o.NATS, "nats", []string{"nats://localhost:4222"}, "addresses of NATS")
	o.Access.Flags(f)
	f.StringVar(&w.Name, "name", "", "name of the worker (default: random, kept in the state directory)")
	f.StringVar(&w.Pool, "pool", w.Pool, "pool whose trials to take")
	f.IntVar(&w.Slots, "slots", w.Slots, "number of trials to run at once")
	f.StringVar(&w.StateDir, "state", w.StateDir, "directory of logs and of results that are not yet acknowledged; not shared with other "+
		"workers")
	f.StringVar(&w.Checkpoints, "checkpoints", w.Checkpoints, "directory of checkpoints, best on shared storage (default: in --state)")
	f.DurationVar(&w.Drain, "drain", w.Drain, "time that running trials have to end after SIGTERM")
	f.DurationVar(&w.HeartbeatInterval, "heartbeat", w.HeartbeatInterval, "time between heartbeats; must be well below the coordinator's "+
		"--worker-lease")
	f.StringVar(&o.Listen, "listen", "", "address of /metrics, /healthz and /readyz (default: not served)")
	f.BoolFuncP("verbose", "v", "log more", func(text string) error {
		verbose, err := strconv.ParseBool(text)
		if verbose {
			o.Level = slog.LevelDebug
		}
		return err
	})
}
