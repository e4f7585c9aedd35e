package device

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// machine has the files of devices of NVIDIA and AMD, as their drivers make them.
func machine(t *testing.T, nvidia, amd int, environ ...string) Machine {
	t.Helper()
	m := Machine{Dev: t.TempDir(), Sys: t.TempDir(), Getenv: func(name string) string {
		for _, entry := range environ {
			if value, ok := strings.CutPrefix(entry, name+"="); ok {
				return value
			}
		}
		return ""
	}}
	write := func(path, text string) {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if nvidia > 0 {
		write(filepath.Join(m.Dev, "nvidiactl"), "")
		write(filepath.Join(m.Dev, "nvidia-uvm"), "")
	}
	for n := range nvidia {
		write(filepath.Join(m.Dev, "nvidia"+strconv.Itoa(n)), "")
	}
	nodes := filepath.Join(m.Sys, "class", "kfd", "kfd", "topology", "nodes")
	for n := range amd + 1 {
		if id := n * 4711; amd > 0 { // node 0 is the processor
			write(filepath.Join(nodes, strconv.Itoa(n), "gpu_id"), strconv.Itoa(id)+"\n")
		}
	}
	return m
}

func TestDeal(t *testing.T) {
	for _, tt := range []struct {
		name, list string
		slots      int
		m          Machine
		want       []string // NAME=value of each slot
	}{
		{"no device", "auto", 2, machine(t, 0, 0), nil},
		{"a device a slot", "auto", 2, machine(t, 2, 0), []string{"CUDA_VISIBLE_DEVICES=0", "CUDA_VISIBLE_DEVICES=1"}},
		{"one slot has all", "auto", 1, machine(t, 2, 0), []string{"CUDA_VISIBLE_DEVICES=0,1"}},
		{"shared", "auto", 3, machine(t, 2, 0), []string{"CUDA_VISIBLE_DEVICES=0", "CUDA_VISIBLE_DEVICES=1", "CUDA_VISIBLE_DEVICES=0"}},
		{"given to the worker", "auto", 2, machine(t, 2, 0, "CUDA_VISIBLE_DEVICES=4,GPU-5"),
			[]string{"CUDA_VISIBLE_DEVICES=4", "CUDA_VISIBLE_DEVICES=GPU-5"}},
		{"given, but not seen", "auto", 1, machine(t, 0, 0, "CUDA_VISIBLE_DEVICES=7"), []string{"CUDA_VISIBLE_DEVICES=7"}},
		{"hidden", "none", 2, machine(t, 2, 0, "CUDA_VISIBLE_DEVICES=4,5"), []string{"CUDA_VISIBLE_DEVICES=", "CUDA_VISIBLE_DEVICES="}},
		{"a list", "3, 1,0", 2, machine(t, 2, 0), []string{"CUDA_VISIBLE_DEVICES=3", "CUDA_VISIBLE_DEVICES=1,0"}},
		{"a range", "0-3", 2, machine(t, 4, 0), []string{"CUDA_VISIBLE_DEVICES=0,1", "CUDA_VISIBLE_DEVICES=2,3"}},
		{"a range and more", "0-1,4", 3, machine(t, 8, 0),
			[]string{"CUDA_VISIBLE_DEVICES=0", "CUDA_VISIBLE_DEVICES=1", "CUDA_VISIBLE_DEVICES=4"}},
		{"AMD's", "auto", 2, machine(t, 0, 2), []string{"ROCR_VISIBLE_DEVICES=0", "ROCR_VISIBLE_DEVICES=1"}},
		{"AMD's, a list", "1-2", 2, machine(t, 0, 3), []string{"ROCR_VISIBLE_DEVICES=1", "ROCR_VISIBLE_DEVICES=2"}},
		// Slurm sets all three (Generic Resource Scheduling Guide).
		{"AMD's by Slurm", "auto", 2, machine(t, 0, 4, "ROCR_VISIBLE_DEVICES=2,3", "CUDA_VISIBLE_DEVICES=2,3", "GPU_DEVICE_ORDINAL=2,3"),
			[]string{"ROCR_VISIBLE_DEVICES=2", "ROCR_VISIBLE_DEVICES=3"}},
		{"NVIDIA's by Slurm", "auto", 2, machine(t, 4, 0, "ROCR_VISIBLE_DEVICES=2,3", "CUDA_VISIBLE_DEVICES=2,3", "GPU_DEVICE_ORDINAL=2,3"),
			[]string{"CUDA_VISIBLE_DEVICES=2", "CUDA_VISIBLE_DEVICES=3"}},
		{"named", "amd:0-1", 2, machine(t, 2, 0), []string{"ROCR_VISIBLE_DEVICES=0", "ROCR_VISIBLE_DEVICES=1"}},
		{"Intel's", "intel:0,1", 2, machine(t, 0, 0), []string{"ONEAPI_DEVICE_SELECTOR=level_zero:0", "ONEAPI_DEVICE_SELECTOR=level_zero:1"}},
		{"Intel's, given", "auto", 2, machine(t, 0, 0, "ONEAPI_DEVICE_SELECTOR=level_zero:2,3"),
			[]string{"ONEAPI_DEVICE_SELECTOR=level_zero:2", "ONEAPI_DEVICE_SELECTOR=level_zero:3"}},
		{"Intel's by Slurm", "auto", 2, machine(t, 0, 0, "ZE_AFFINITY_MASK=2,3", "ONEAPI_DEVICE_SELECTOR=level_zero:0,1"),
			[]string{"ZE_AFFINITY_MASK=2", "ZE_AFFINITY_MASK=3"}},
		{"any of Intel's", "auto", 2, machine(t, 0, 0, "ONEAPI_DEVICE_SELECTOR=level_zero:*"), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			slots, err := Deal(tt.list, tt.slots, tt.m)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range slots {
				got = append(got, s.Environ...)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for _, bad := range []string{"0,,1", "1,1", "0-2,1", "3-1", "voodoo:0", "amd:", ":0"} {
		if _, err := Deal(bad, 1, machine(t, 2, 0)); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("gpus %q: %v", bad, err)
		}
	}
}

// AMD's other variables would count within the devices that ROCR_VISIBLE_DEVICES leaves.
func TestOtherVariablesOfTheMakerAreUnset(t *testing.T) {
	slots, err := Deal("amd:2,3", 2, machine(t, 0, 4))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range slots {
		if diff := cmp.Diff([]string{"HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"}, s.Unset); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
