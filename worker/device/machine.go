package device

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// Machine is where devices are looked for.
type Machine struct {
	// Dev and Sys are the directories /dev and /sys.
	Dev, Sys string
	// Getenv returns a variable of this process.
	Getenv func(string) string
}

// This is this machine and this process.
func This() Machine { return Machine{Dev: "/dev", Sys: "/sys", Getenv: os.Getenv} }

var nvidiaDevice = regexp.MustCompile(`^nvidia[0-9]+$`)

// nvidia returns how many devices of NVIDIA there are.
func (m Machine) nvidia() int {
	n := 0
	entries, _ := filepath.Glob(filepath.Join(m.Dev, "nvidia*")) // the pattern is valid
	for _, path := range entries {
		if nvidiaDevice.MatchString(filepath.Base(path)) {
			n++
		}
	}
	return n
}

// amd returns how many devices of AMD there are that ROCm can use: nodes of the kernel's
// driver with a gpu_id other than 0, which is that of a processor.
func (m Machine) amd() int {
	n := 0
	entries, _ := filepath.Glob(filepath.Join(m.Sys, "class", "kfd", "kfd", "topology", "nodes", "*", "gpu_id")) // the pattern is valid
	for _, path := range entries {
		if text, err := os.ReadFile(path); err == nil && strings.TrimSpace(string(text)) != "0" {
			n++
		}
	}
	return n
}

// maker returns the maker of the machine's devices; NVIDIA if that is not known.
func (m Machine) maker() string {
	if m.nvidia() == 0 && m.amd() > 0 {
		return "amd"
	}
	return "nvidia"
}

// own returns the devices of this process, and their maker: those that a batch system or an
// administrator has given it, or all. The devices of Intel must have been given, since most
// machines that have one only draw with it.
func (m Machine) own() (*maker, []string) {
	first := makerOf(m.maker())
	if devices := m.given(first); devices != nil {
		return first, devices
	}
	switch n := max(m.nvidia(), m.amd()); {
	case n > 0:
		return first, expand("0-" + strconv.Itoa(n-1))
	default:
		for i := range makers {
			if devices := m.given(&makers[i]); devices != nil {
				return &makers[i], devices
			}
		}
	}
	return nil, nil
}

// given returns the devices of a maker that this process was given, nil if it was given none.
func (m Machine) given(by *maker) []string {
	for _, variable := range by.given {
		list, ok := strings.CutPrefix(m.Getenv(variable), by.before)
		if !ok || list == "" || strings.Trim(list, "*;") == "" {
			continue
		}
		return strings.Split(list, ",")
	}
	return nil
}
