// Package device divides the GPUs of a machine among the slots of a worker: it makes the variables by
// which the makers' libraries know what a program may use.
package device

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The special values of a list of devices.
const (
	// Auto uses all devices that the machine has, or that a batch system or an administrator has
	// given this process.
	Auto = "auto"
	// None hides the devices of NVIDIA.
	None = "none"
)

// Slot is what a slot of the worker has.
type Slot struct {
	// List are the devices, as their maker's libraries count or name them, with commas between.
	List string
	// Environ are variables (NAME=value) of the slot's programs, and Unset names of variables that they
	// must not have, because they would count from within what Environ names.
	Environ, Unset []string
}

// maker is how the libraries of a maker of devices are told which ones to use.
type maker struct {
	// name is the prefix of a list of devices, as in amd:0,1.
	name string
	// variable is set to before and the slot's list. unset are other variables of this maker.
	variable, before string
	unset            []string
	// given are variables by which a batch system or an administrator may have given this process devices.
	given []string
}

// makers are the known ones. Their documentation:
//
//   - NVIDIA: CUDA C++ Programming Guide, CUDA environment variables.
//   - AMD: ROCm, GPU isolation techniques. It recommends ROCR_VISIBLE_DEVICES on Linux. The
//     other variables, which Slurm sets as well, count within what it leaves.
//   - Intel: oneAPI DPC++, environment variables; and Level Zero, affinity mask, which Slurm sets
//     and within which the former counts.
var makers = []maker{
	{name: "nvidia", variable: "CUDA_VISIBLE_DEVICES", given: []string{"CUDA_VISIBLE_DEVICES"}},
	{
		name: "amd", variable: "ROCR_VISIBLE_DEVICES",
		unset: []string{"HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"},
		given: []string{"ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"},
	},
	{name: "level-zero", variable: "ZE_AFFINITY_MASK", unset: []string{"ONEAPI_DEVICE_SELECTOR"}, given: []string{"ZE_AFFINITY_MASK"}},
	{name: "intel", variable: "ONEAPI_DEVICE_SELECTOR", before: "level_zero:", given: []string{"ONEAPI_DEVICE_SELECTOR"}},
}

func makerOf(name string) *maker {
	i := slices.IndexFunc(makers, func(m maker) bool { return m.name == name })
	if i < 0 {
		return nil
	}
	return &makers[i]
}

// Deal divides a list of devices among slots: Auto, None, or devices such as 0,1 or 0-3, which may follow the
// name of a maker, as in amd:0-3. It returns nil if programs get what this process has.
func Deal(list string, slots int, m Machine) ([]Slot, error) {
	switch list {
	case None:
		return deal(&makers[0], make([]string, slots)), nil
	case Auto, "":
		by, devices := m.own()
		if len(devices) == 0 {
			return nil, nil
		}
		return deal(by, share(devices, slots)), nil
	}
	name, rest, named := strings.Cut(list, ":")
	if !named {
		name, rest = m.maker(), list
	}
	by, devices := makerOf(name), expand(rest)
	if by == nil || devices == nil {
		return nil, fmt.Errorf("gpus %q, must be auto, none, or a list of different devices such as 0,1 or 0-3, which may "+
			"follow the name of a maker, as in amd:0,1 (nvidia, amd, intel, level-zero)", list)
	}
	return deal(by, share(devices, slots)), nil
}

// deal returns the slots with these lists.
func deal(by *maker, lists []string) []Slot {
	slots := make([]Slot, len(lists))
	for i, list := range lists {
		slots[i] = Slot{List: list, Environ: []string{by.variable + "=" + by.before + list}, Unset: by.unset}
	}
	return slots
}

// span matches a range of devices.
var span = regexp.MustCompile(`^(\d{1,4})-(\d{1,4})$`)

// expand returns the devices of a list, nil if it is none.
func expand(list string) (devices []string) {
	for item := range strings.SplitSeq(list, ",") {
		item = strings.TrimSpace(item)
		first, last := 0, -1
		if m := span.FindStringSubmatch(item); m != nil {
			first, _ = strconv.Atoi(m[1]) // digits
			last, _ = strconv.Atoi(m[2])
			if first > last {
				return nil
			}
		} else if item == "" {
			return nil
		}
		more := []string{item}
		if last >= 0 {
			more = nil
			for n := first; n <= last; n++ {
				more = append(more, strconv.Itoa(n))
			}
		}
		for _, d := range more {
			if slices.Contains(devices, d) {
				return nil
			}
			devices = append(devices, d)
		}
	}
	return devices
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
