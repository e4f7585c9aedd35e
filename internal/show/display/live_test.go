package display

import (
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/google/go-cmp/cmp"
)

const longName = "learning_rate_of_the_second_group_of_layers_after_the_warm_up_phase_has_ended"

// example is a study 62 s after its start: 12 of 60 trials have ended.
func example(t *testing.T) (Now, time.Time) {
	t.Helper()
	at := time.Date(2026, 1, 1, 0, 1, 2, 0, time.UTC)
	p := coordinator.Progress{
		Study: record.Study{Definition: study.Study{Metadata: study.Metadata{Name: "digits"}, Spec: study.Spec{
			Objective: study.Objective{Metric: "error", Direction: study.Minimize}, Budget: study.Budget{MaxTrials: 60},
			Parameters: []study.Parameter{{Name: "C"}, {Name: longName}, {Name: "kernel"}, {Name: "degree"}},
		}}},
		Status: record.Status{
			State: study.Running, Started: at.Add(-62 * time.Second), Recommended: record.Recommendation{Trial: 4, Mean: 0.025, SD: 0.0012345},
			Counts: record.Counts{Completed: 10, Failed: 1, Infeasible: 1, Running: 3, Queued: 2},
		},
		Best: &record.Trial{Number: 4, Values: study.Values{0.0239123456},
			Point: study.Point{"C": 113.2112233, longName: 0.00123456789, "kernel": strings.Repeat("rbf", 40)}},
		LastFailed: &record.Trial{Number: 7, Attempts: []record.Attempt{{Failure: &messaging.Failure{
			Reason: "exit", ExitCode: new(3), Message: "exit code 3; see /a/log\nIts last words:\nTraceback\nValueError: the learning rate is " +
				"too large for the optimiser: the loss is not a number",
		}}}},
	}
	for i, ago := range []time.Duration{3 * time.Second, 75 * time.Second, 12 * time.Second} {
		p.Running = append(p.Running, engine.OpenAttempt{Attempt: messaging.AttemptID{Trial: 13 + i}, Claimed: at.Add(-ago)})
	}
	return NewNow(&p, at), at
}

// The lines of the screen at 80 columns; the last column stays free. Ten of sixty
// trials take a sixth of the time, so the 48 trials left take 4m08s.
func TestScreen(t *testing.T) {
	now, at := example(t)
	var got []string
	for _, line := range now.screen(80, 24, false, at) {
		got = append(got, ansi.Strip(line))
	}
	want := []string{
		"digits  12/60  1m02s elapsed, about 4m08s left",
		strings.Repeat("█", 15) + strings.Repeat("▒", 4) + strings.Repeat("░", 60),
		"running      trial 14 (1m15s), 15 (12s), 13 (3s); 2 waiting",
		"failed       1, last trial 7: exit code 3: ValueError: the learning rate is too",
		"             large for the optimiser: the loss is not a number",
		"infeasible   1",
		"best         error = 0.0239123 in trial 4",
		"             C                                  113.211",
		"             learning_rate_of_the_second_grou…  0.00123457",
		"             kernel                             " + strings.Repeat("rbf", 10) + "…",
		"recommended  trial 4 (0.025 ± 0.0012)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// At any width, no line wraps and the counter stays; from 40 columns on, so do the time
// left and every value. After the end, only the bar remains.
func TestScreenFits(t *testing.T) {
	now, at := example(t)
	for width := 10; width <= 200; width++ {
		lines := now.screen(width, 0, false, at)
		for _, line := range lines {
			if n := ansi.StringWidth(line); n >= width {
				t.Errorf("a line of %d columns in %d: %q", n, width, ansi.Strip(line))
			}
		}
		text := ansi.Strip(strings.Join(lines, "\n"))
		words := strings.Join(strings.Fields(text), " ") // ignores line breaks
		wanted := []string{"12/60"}
		if width >= 40 {
			wanted = append(wanted, "4m08s", "1m02s", "113.211", "0.00123457", "14 (1m15s)", "exit code 3", "0.0239123")
		}
		for _, want := range wanted {
			if !strings.Contains(words, want) {
				t.Errorf("%d columns lack %q:\n%s", width, want, text)
			}
		}
		if brief := now.screen(width, 0, true, at); len(brief) != 2 {
			t.Errorf("what is over has %d lines, want 2", len(brief))
		}
	}
}

// A screen with few lines leaves parameters out and says how many.
func TestScreenIsNoHigherThanTheTerminal(t *testing.T) {
	now, at := example(t)
	lines := now.screen(80, 11, false, at)
	if text := strings.Join(lines, "\n"); len(lines) > 10 || !strings.Contains(text, "and 2 more") || !strings.Contains(text, "recommended") {
		t.Errorf("%d lines:\n%s", len(lines), ansi.Strip(text))
	}
}

// The clock advances between two messages, and stops at the end.
func TestElapsed(t *testing.T) {
	now, at := example(t)
	later := at.Add(10 * time.Second)
	if line := ansi.Strip(now.screen(80, 0, true, later)[0]); line != "digits  12/60  1m12s elapsed, about 3m58s left" {
		t.Errorf("ten seconds later: %q", line)
	}
	now.State = study.Completed
	if line := ansi.Strip(now.screen(80, 0, true, later)[0]); line != "digits  12/60  1m02s elapsed, completed" {
		t.Errorf("after the end: %q", line)
	}
}
