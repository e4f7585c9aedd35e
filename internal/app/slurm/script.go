package slurm

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/show/display"
)

// Job describes what is asked of Slurm for each worker.
type Job struct {
	// Study is the study's name, which the name of the job contains.
	Study string
	// Program is the absolute path of the program fantasia, and Shared that of the directory that the
	// workers share, both as the nodes see them.
	Program, Shared string
	// Slots is the number of trials that a worker runs at once.
	Slots int
	// GPUs is divided among the slots, as worker.Options.GPUs says.
	GPUs string
	// Time is the time limit of a worker, and Partition and Gres say where it runs and with which
	// devices; each in Slurm's words, or empty for Slurm's defaults.
	Time, Partition, Gres string
	// CPUs and Memory are for each worker, 0 and empty for Slurm's defaults.
	CPUs   int
	Memory string
	// Options are more options of sbatch, such as --account=vision.
	Options []string
	// Drain is the time that running trials have to end after a signal.
	Drain time.Duration
}

// Lead is how long before its time limit a worker is told to leave. Slurm may tell it up to a
// minute earlier (sbatch(1), --signal).
func (j *Job) Lead() time.Duration { return j.Drain + 5*time.Second }

// Name returns the name of the job.
func (j *Job) Name() string { return "fantasia-" + j.Study }

// logs returns the directory of what Slurm keeps of the workers' own output.
func (j *Job) logs() string { return filepath.Join(j.Shared, "logs") }

// directives are the options of sbatch in the order of the script.
func (j *Job) directives() []string {
	d := []string{
		"--job-name=" + j.Name(), "--nodes=1", "--ntasks=1",
	}
	add := func(option, value string) {
		if value != "" {
			d = append(d, option+"="+value)
		}
	}
	add("--time", j.Time)
	add("--partition", j.Partition)
	add("--gres", j.Gres)
	if j.CPUs > 0 {
		add("--cpus-per-task", strconv.Itoa(j.CPUs))
	}
	add("--mem", j.Memory)
	d = append(d, fmt.Sprintf("--signal=B:TERM@%d", int(j.Lead().Seconds())), "--requeue", "--open-mode=append",
		"--output="+filepath.Join(j.logs(), "%A_%a.log"))
	return append(d, j.Options...)
}

// Script returns the script of an array of n workers, for sbatch.
func (j *Job) Script(n int) (string, error) {
	var b strings.Builder
	b.WriteString("#!/bin/bash\n")
	for _, d := range append([]string{"--array=0-" + strconv.Itoa(n-1)}, j.directives()...) {
		if strings.ContainsAny(d, "\n\r\"'\\ ") {
			return "", fmt.Errorf("%q cannot be an option in a script of sbatch; want no space, quote, backslash or newline", d)
		}
		b.WriteString("#SBATCH " + d + "\n")
	}
	args := []string{j.Program, "slurm", "worker", "--shared", j.Shared, "--slots", strconv.Itoa(j.Slots), "--drain", j.Drain.String()}
	if j.GPUs != "" {
		args = append(args, "--gpus", j.GPUs)
	}
	b.WriteString("# The shell becomes the worker, so that Slurm's signals reach it.\nexec " + display.Line(args) + "\n")
	return b.String(), nil
}

// slurmTime matches a time limit in Slurm's own words: minutes, [days-]hours:minutes[:seconds] and so on.
var slurmTime = regexp.MustCompile(`^(\d+-)?\d+(:\d+){0,2}$`)

// ParseTime reads a time limit, a duration such as 4h or one in Slurm's words such as 2-00:00:00, and returns it
// in Slurm's words. It must leave a worker time for trials after what lead takes.
func ParseTime(text string, lead time.Duration) (string, error) {
	if text == "" {
		return "", nil
	}
	if slurmTime.MatchString(text) {
		return text, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return "", errors.New("want a duration such as 4h or 90m, or a time of Slurm such as 2-00:00:00")
	}
	if least := lead + time.Minute; d < least {
		return "", fmt.Errorf("want at least %s: workers stop %s before their time limit, or up to a minute earlier", least, lead)
	}
	minutes := int((d + time.Minute - 1) / time.Minute)
	return fmt.Sprintf("%d:%02d:00", minutes/60, minutes%60), nil
}
