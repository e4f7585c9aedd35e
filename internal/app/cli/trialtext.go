package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/view"
)

// trialTable prints a list of trials.
func trialTable(w io.Writer, trials []view.Trial) error {
	rows := make([][]string, len(trials))
	for i, t := range trials {
		rows[i] = []string{
			strconv.Itoa(t.Trial), string(t.State), trialValue(t), strconv.Itoa(t.Attempts), orDash(t.Worker),
			between(t.Times.Started, t.Times.Ended), orDash(string(t.Source)), point(t.Parameters),
		}
	}
	return table(w, []string{"TRIAL", "STATE", "VALUE", "ATTEMPTS", "WORKER", "TIME", "SOURCE", "PARAMETERS"}, rows)
}

// trialValue formats a trial's value, or the reason why it has none.
func trialValue(t view.Trial) string {
	switch {
	case t.Value != nil:
		return number(*t.Value)
	case t.Failure != nil:
		return t.Failure.Reason
	default:
		return "-"
	}
}

// trialLine formats a trial as one line of a watch.
func trialLine(t view.Trial) string {
	line := fmt.Sprintf("trial %-5d  %-10s  %-8s  %s", t.Trial, t.State, trialValue(t), point(t.Parameters))
	if t.Worker != "" {
		line += "  on " + t.Worker
	}
	if took := between(t.Times.Started, t.Times.Ended); took != "-" {
		line += " in " + took
	}
	return line
}

// trialBlock prints one trial.
func trialBlock(w io.Writer, m *fantasiav1.Trial) error {
	t := view.FromTrial(m)
	fields := []field{
		{"Trial", strconv.Itoa(t.Trial)},
		{"State", string(t.State)},
		{"Parameters", point(t.Parameters)},
	}
	if t.Value != nil {
		fields = append(fields, field{"Value", number(*t.Value)})
	}
	fields = append(fields,
		field{"Metrics", metrics(t.Metrics)},
		field{"Source", fmt.Sprintf("%s, %d observations stale", t.Source, t.Staleness)},
		field{"Why", reasons(m.GetReasons())},
		field{"Checkpoint", m.GetCheckpoint()},
		field{"Trace", t.TraceID},
	)
	for _, a := range m.GetAttempts() {
		fields = append(fields, field{fmt.Sprintf("Attempt %d", a.GetNumber()), attempt(a)})
	}
	return block(w, fields)
}

// metrics formats values by name.
func metrics(values map[string]float64) string {
	names := slices.Sorted(maps.Keys(values))
	for i, name := range names {
		names[i] = name + "=" + number(values[name])
	}
	return strings.Join(names, " ")
}

// reasons describes why a point was suggested.
func reasons(r *fantasiav1.Reasons) string {
	var parts []string
	if r.GetNote() != "" {
		parts = append(parts, r.GetNote())
	}
	if r != nil && r.Mean != nil {
		parts = append(parts, fmt.Sprintf("mean %s", view.Expected(r.GetMean(), r.GetSd())))
	}
	if text := metrics(r.GetAcquisition()); text != "" {
		parts = append(parts, text)
	}
	if r.GetPending() > 0 {
		parts = append(parts, fmt.Sprintf("%d pending", r.GetPending()))
	}
	return strings.Join(parts, "; ")
}

// attempt describes the state of an attempt.
func attempt(a *fantasiav1.Attempt) string {
	text := attemptState(a)
	if a.GetWorker() != "" {
		text += " on " + a.GetWorker()
	}
	if took := between(at(a.GetStartTime()), at(a.GetEndTime())); took != "-" {
		text += " in " + took
	}
	if f := a.GetFailure(); f != nil {
		text += "\n" + view.FailureText(view.FromFailure(f))
	}
	if a.GetLogs() != "" {
		text += "\nlog: " + a.GetLogs()
	}
	return text
}

func attemptState(a *fantasiav1.Attempt) string {
	return strings.ReplaceAll(strings.ToLower(view.EnumName(a.GetState())), "_", " ")
}

func at(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}
