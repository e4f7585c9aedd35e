package worker

import (
	"strings"
	"testing"

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
