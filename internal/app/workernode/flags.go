package workernode

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"strconv"
	"strings"

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

// SizePattern matches the sizes that Size reads, as a regular expression.
const SizePattern = `^[0-9]+((Ki|Mi|Gi|Ti)B?)?$`

// sizeUnits are the units of a size, the largest first, and 1 for bytes.
var sizeUnits = []struct {
	name  string
	bytes int64
}{{"Ti", 1 << 40}, {"Gi", 1 << 30}, {"Mi", 1 << 20}, {"Ki", 1 << 10}, {"", 1}}

// Size returns a flag that sets a number of bytes, such as 10Gi or 512MiB.
func Size(bytes *int64) pflag.Value { return (*size)(bytes) }

type size int64

// Type implements pflag.Value.
func (s *size) Type() string { return "size" }

// String implements pflag.Value. It uses the largest unit that the size is a multiple of.
func (s *size) String() string {
	for _, u := range sizeUnits {
		if n := int64(*s); n != 0 && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return "0"
}

// Set implements pflag.Value.
func (s *size) Set(text string) error {
	number := strings.TrimSuffix(text, "B")
	for _, u := range sizeUnits {
		digits, found := strings.CutSuffix(number, u.name)
		if !found || u.bytes == 1 && number != text { // a B needs a unit
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 63)
		if err != nil || n > uint64(math.MaxInt64/u.bytes) {
			break
		}
		*s = size(int64(n) * u.bytes)
		return nil
	}
	return errors.New("want a number of bytes with Ki, Mi, Gi or Ti, such as 10Gi")
}
