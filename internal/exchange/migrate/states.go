package migrate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The columns that say how a trial ended, as letters only: trial_status is trialstatus. The words are those
// that Fantasia, Optuna, MLflow, Weights & Biases, NNI, Ax, Ray Tune, Katib, Keras Tuner, SMAC3, Vizier,
// Syne Tune, Hyperopt and SageMaker write: see docs/migrate/import-export.md. flags are columns of truth values.
var (
	stateNames = []string{"state", "status", "trialstate", "trialstatus", "runstate", "runstatus", "jobstate", "jobstatus",
		"trainingjobstatus", "ststatus"}
	doneFlags   = []string{"done"}
	failedFlags = []string{"failed", "infeasible"}

	completedWords = []string{"completed", "complete", "finished", "succeeded", "success", "terminated", "done", "ok"}
	otherWords     = []string{"abandoned", "abort", "aborted", "active", "broken", "canceled", "cancelled", "candidate", "capped", "claimed",
		"crashed", "created", "deleting", "dispatched", "earlystopped", "error", "errored", "fail", "failed", "failure", "idle", "infeasible",
		"inprogress", "interrupted", "invalid", "killed", "memoryout", "memout", "metricsunavailable", "new", "paused", "pending", "preempted",
		"preempting", "pruned", "queued", "requested", "reserved", "running", "scheduled", "staged", "stale", "stopped", "stopping", "suspended",
		"syscanceled", "timedout", "timeout", "unknown", "usercanceled", "waiting"}
)

// letters returns the letters of a text, in lower case.
func letters(text string) string {
	return strings.Map(func(r rune) rune {
		if r < 'a' || r > 'z' {
			return -1
		}
		return r
	}, strings.ToLower(text))
}

// isState reports whether a column of that name says how a trial ended.
func isState(name string) bool {
	name = letters(name)
	return slices.Contains(stateNames, name) || slices.Contains(doneFlags, name) || slices.Contains(failedFlags, name)
}

// stateWord returns a state as a word of the lists: "TrialState.EARLY_STOPPED" is earlystopped.
func stateWord(state string) string {
	return letters(strings.TrimPrefix(state[strings.LastIndexByte(state, '.')+1:], "TRIAL_STATE_"))
}

// stateText returns the text of a state.
func stateText(field any) string {
	if kindOf(field) != aCell {
		return shown(field)
	}
	return fmt.Sprint(field)
}

// completed reports whether a column of isState says that the trial has completed. An empty cell says nothing.
func completed(column, state string) bool {
	yes := slices.Contains([]string{"true", "yes"}, strings.ToLower(state))
	switch {
	case state == "":
		return true
	case slices.Contains(doneFlags, letters(column)):
		return yes || state == "1"
	case slices.Contains(failedFlags, letters(column)):
		return !yes
	default:
		return slices.Contains(completedWords, stateWord(state))
	}
}

// unread are the columns of texts that nobody reads, by name.
type unread map[string]sighting

// sighting is what is known of the texts in a column.
type sighting struct {
	strange    bool   // one is no state
	place, was string // of the first state other than completed
}

// maxUnread bounds the names that are watched: each object of JSON can have others.
const maxUnread = 10_000

// ours are columns of an export of Fantasia that can have any text.
var ours = []string{"failure", "message", "worker", "source", "note", "cancelled"}

// see looks at a text in a column.
func (u unread) see(place, column string, field any) {
	text, ok := field.(string)
	at, known := u[column]
	if ok && text == "" || at.strange || !known && len(u) >= maxUnread {
		return
	}
	word := ""
	if len(text) <= maxShown {
		word = stateWord(text)
	}
	other := slices.Contains(otherWords, word)
	switch {
	case !other && !slices.Contains(completedWords, word):
		at = sighting{strange: true}
	case other && at.place == "":
		at.place, at.was = place, text
	}
	u[column] = at
}

// check returns an error if a column looks like the states of trials. An export of ours has a column of states
// (stated), and others whose texts are free.
func (u unread) check(stated bool) error {
	for _, column := range slices.Sorted(maps.Keys(u)) {
		at := u[column]
		begins := func(prefix string) bool { return strings.HasPrefix(column, prefix) }
		own := stated && (slices.Contains(ours, column) || begins("label:") || begins("attribute:"))
		if !at.strange && at.place != "" && !own && !slices.ContainsFunc(parameterPrefixes, begins) {
			return fmt.Errorf("%s: %s is %s, and the column is not read, though all its texts look like states of trials: "+
				"name it state if they are, or remove it", at.place, clipped(column), shown(at.was))
		}
	}
	return nil
}
