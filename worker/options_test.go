package worker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/internal/test/membus"
)

func TestOptionsAreChecked(t *testing.T) {
	bus, err := membus.New(membus.Options{}).Worker("w", "p")
	if err != nil {
		t.Fatal(err)
	}
	defer bus.Close()
	valid := DefaultOptions()
	valid.Bus, valid.StateDir = bus, t.TempDir()
	if _, err := New(valid); err != nil {
		t.Errorf("the default options: %v", err)
	}
	for part, change := range map[string]func(*Options){
		"name":               func(o *Options) { o.Name = "a.b.c" },
		"reserved":           func(o *Options) { o.Name = "leader" },
		"pool":               func(o *Options) { o.Pool = "" },
		"slots":              func(o *Options) { o.Slots = 0 },
		"slots 1501":         func(o *Options) { o.Slots = MaxSlots + 1 },
		"state":              func(o *Options) { o.StateDir = "" },
		"bus":                func(o *Options) { o.Bus = nil },
		"runs":               func(o *Options) { o.Runs = "a b" },
		"heartbeat interval": func(o *Options) { o.HeartbeatInterval = 0 },
		"resend interval":    func(o *Options) { o.ResendInterval = -1 },
		"drain":              func(o *Options) { o.Drain = 0 },
		"spool limit":        func(o *Options) { o.SpoolLimit = 0 },
		"gpus":               func(o *Options) { o.GPUs = "0,0" },
	} {
		o := valid
		change(&o)
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: error %v", part, err)
		}
	}
}

func TestVisibleDevices(t *testing.T) {
	two := t.TempDir()
	for _, name := range []string{"nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"} {
		if err := os.WriteFile(filepath.Join(two, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name, gpus string
		slots      int
		dev, given string
		want       []string
	}{
		{"none found", "auto", 2, t.TempDir(), "", nil},
		{"a device a slot", "auto", 2, two, "", []string{"0", "1"}},
		{"one slot has all", "auto", 1, two, "", []string{"0,1"}},
		{"shared", "auto", 3, two, "", []string{"0", "1", "0"}},
		{"given to the worker", "auto", 2, two, "4,GPU-5", []string{"4", "GPU-5"}},
		{"hidden", "none", 2, two, "4,5", []string{"", ""}},
		{"a list", "3, 1,0", 2, two, "", []string{"3", "1,0"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := visibleDevices(tt.gpus, tt.slots, tt.dev, func(string) string { return tt.given })
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for _, bad := range []string{"0,,1", "1,1"} {
		if _, err := visibleDevices(bad, 1, two, os.Getenv); err == nil {
			t.Errorf("gpus %q is accepted", bad)
		}
	}
}
