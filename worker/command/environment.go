package command

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/fantasia-hpo/fantasia/internal/base/failpoint"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/worker/family"
	"github.com/fantasia-hpo/fantasia/worker/logfile"
)

// prefix is the prefix of Fantasia's own variables.
const prefix = "FANTASIA_"

// base returns the common environment of the slot's programs: the worker's, without
// variables meant for the worker itself, such as its credentials.
func (e *Evaluator) base(a *messaging.Assignment) []string {
	var env []string
	set := map[string]bool{}
	add := func(name, value string) {
		env = append(env, name+"="+value)
		set[name] = true
	}
	for _, entry := range e.options.Environ {
		if name, value, ok := strings.Cut(entry, "="); ok && !strings.HasPrefix(name, prefix) {
			add(name, value)
		}
	}
	if e.options.AllowStudyCommands {
		for name, value := range a.Run.Env {
			if !strings.HasPrefix(name, prefix) {
				add(name, value)
			}
		}
	}
	for name, value := range map[string]string{
		"OMP_NUM_THREADS":  strconv.Itoa(max(1, runtime.NumCPU()/e.options.Slots)),
		"PYTHONUNBUFFERED": "1",
	} {
		if !set[name] {
			add(name, value)
		}
	}
	if d := e.options.Devices; d != nil {
		env = slices.DeleteFunc(env, func(entry string) bool {
			name, _, _ := strings.Cut(entry, "=")
			return slices.Contains(d.Unset, name)
		})
		env = append(env, d.Environ...) // the last value of a name counts
	}
	add(prefix+"STUDY", a.StudyName)
	add(prefix+"SLOT", strconv.Itoa(e.options.Slot))
	return env
}

// place is the location of an attempt's files.
type place struct {
	dir, checkpoints, report, parameters string
}

// newPlace creates the attempt's directories, the file for its reports, and the file of
// its parameters.
func (e *Evaluator) newPlace(a *messaging.Assignment, parameters string) (place, error) {
	p := place{
		dir:         filepath.Join(e.options.Dir, logfile.Dir(a.AttemptID)),
		checkpoints: e.checkpoints(a),
	}
	p.report = filepath.Join(p.dir, "reports.jsonl")
	p.parameters = filepath.Join(p.dir, "parameters.json")
	if err := failpoint.Fail(failpoint.TrialFiles); err != nil {
		return place{}, fmt.Errorf("make the trial's folder: %w", err)
	}
	for _, dir := range []string{p.dir, p.checkpoints} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return place{}, fmt.Errorf("make the trial's folder: %w", err)
		}
	}
	if err := os.WriteFile(p.report, nil, 0o600); err != nil {
		return place{}, fmt.Errorf("make the file for reports: %w", err)
	}
	if err := os.WriteFile(p.parameters, []byte(parameters+"\n"), 0o600); err != nil {
		return place{}, fmt.Errorf("write the trial's parameters: %w", err)
	}
	return p, nil
}

// checkpoints returns the trial's checkpoint directory.
func (e *Evaluator) checkpoints(a *messaging.Assignment) string {
	return filepath.Join(e.options.Checkpoints, filepath.FromSlash(a.CheckpointKey()))
}

// parametersOf returns the point's variables, and the point as JSON.
func parametersOf(a *messaging.Assignment) (env []string, object string, err error) {
	env, err = study.Environment(a.ParameterOrder, a.Parameters)
	if err != nil {
		return nil, "", err
	}
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, prefix+"PARAMETERS="); ok {
			return env, value, nil
		}
	}
	return env, "{}", nil
}

// attemptEnv returns the variables that describe one attempt.
func attemptEnv(a *messaging.Assignment, p place, trace messaging.TraceContext) []string {
	env := []string{
		prefix + "TRIAL=" + strconv.Itoa(a.Trial),
		prefix + "ATTEMPT=" + strconv.Itoa(a.Attempt),
		prefix + "SEED=" + strconv.FormatUint(a.Seed, 10),
		family.Variable + "=" + p.dir,
		prefix + "CHECKPOINT_DIR=" + p.checkpoints,
		prefix + "REPORT=" + p.report,
	}
	if a.Checkpoint != "" {
		env = append(env, prefix+"CHECKPOINT="+a.Checkpoint)
	}
	if trace.Traceparent != "" {
		env = append(env, "TRACEPARENT="+trace.Traceparent)
	}
	if trace.Tracestate != "" {
		env = append(env, "TRACESTATE="+trace.Tracestate)
	}
	return env
}
