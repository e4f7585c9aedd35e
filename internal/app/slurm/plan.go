package slurm

import (
	"slices"
	"strconv"
	"strings"
)

// count is what the tasks of a fleet do.
type count struct {
	waiting, active []task
	// cancelled is how many tasks somebody else has cancelled, and broken those that have failed.
	cancelled int
	broken    []task
}

// tally sorts tasks. dismissed are those that the fleet has cancelled itself.
func tally(tasks []task, dismissed map[string]bool) count {
	var c count
	for _, t := range tasks {
		switch {
		case waiting[t.State]:
			c.waiting = append(c.waiting, t)
		case active[t.State]:
			c.active = append(c.active, t)
		case t.State == stateCancelled && !dismissed[t.ID]:
			c.cancelled++
		case broken[t.State]:
			c.broken = append(c.broken, t)
		}
	}
	return c
}

// surplus returns up to n tasks to cancel: those that wait, the youngest first, and then those whose
// workers have nothing to do.
func (c *count) surplus(n int, idle func(task) bool) []string {
	var ids []string
	for _, t := range slices.Backward(slices.SortedFunc(slices.Values(c.waiting), byAge)) {
		ids = append(ids, t.ID)
	}
	for _, t := range c.active {
		if idle(t) {
			ids = append(ids, t.ID)
		}
	}
	return ids[:min(n, len(ids))]
}

// byAge compares tasks by their jobs, which Slurm numbers, and then by their index.
func byAge(a, b task) int { return slices.Compare(a.numbers(), b.numbers()) }

// numbers returns the numbers of the job and of the index.
func (t *task) numbers() []int {
	var n []int
	for part := range strings.SplitSeq(t.ID, "_") {
		number, err := strconv.Atoi(part)
		if err != nil {
			number = -1 // no index
		}
		n = append(n, number)
	}
	return n
}
