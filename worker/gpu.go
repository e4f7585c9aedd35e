package worker

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The special values of Options.GPUs.
const (
	gpusAuto = "auto"
	gpusNone = "none"
)

// variableGPUs lists the devices that CUDA programs use.
const variableGPUs = "CUDA_VISIBLE_DEVICES"

var nvidiaDevice = regexp.MustCompile(`^nvidia[0-9]+$`)

// visibleDevices returns the CUDA_VISIBLE_DEVICES of each slot, or nil if programs
// inherit the worker's. dev is /dev outside tests.
func visibleDevices(gpus string, slots int, dev string, getenv func(string) string) ([]string, error) {
	var devices []string
	switch gpus {
	case gpusNone:
		return make([]string, slots), nil // an empty list hides all
	case gpusAuto, "":
		// The devices that an administrator or a batch system gave the worker take
		// precedence.
		if visible := getenv(variableGPUs); visible != "" {
			devices = strings.Split(visible, ",")
			break
		}
		entries, err := filepath.Glob(filepath.Join(dev, "nvidia*"))
		if err != nil {
			return nil, fmt.Errorf("gpus: %w", err)
		}
		n := 0
		for _, path := range entries {
			if nvidiaDevice.MatchString(filepath.Base(path)) {
				devices = append(devices, strconv.Itoa(n))
				n++
			}
		}
		if n == 0 {
			return nil, nil
		}
	default:
		devices = strings.Split(gpus, ",")
		for i, d := range devices {
			devices[i] = strings.TrimSpace(d)
			if devices[i] == "" || slices.Contains(devices[:i], devices[i]) {
				return nil, fmt.Errorf("gpus %q, must be auto, none, or a list of different devices such as 0,1", gpus)
			}
		}
	}
	return share(devices, slots), nil
}

// share gives each slot an equal part of the devices or, if there are too few, a device
// that it shares with other slots.
func share(devices []string, slots int) []string {
	parts := make([]string, slots)
	for i := range parts {
		if len(devices) < slots {
			parts[i] = devices[i%len(devices)]
			continue
		}
		parts[i] = strings.Join(devices[i*len(devices)/slots:(i+1)*len(devices)/slots], ",")
	}
	return parts
}
