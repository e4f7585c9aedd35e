package view_test

import (
	"testing"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/messaging"
)

// A failure's text says each thing once; its line leaves out where the log is.
func TestFailures(t *testing.T) {
	for _, tt := range []struct {
		failure    messaging.Failure
		text, line string
	}{
		{messaging.Failure{Reason: "exit", ExitCode: new(2), Message: "exit code 2; see /logs/1"}, "exit code 2; see /logs/1", "exit code 2"},
		{
			messaging.Failure{Reason: "exit", ExitCode: new(1), Message: "exit code 1; see /logs/1\nIts last words:\nTraceback:\nValueError: bad\n"},
			"exit code 1; see /logs/1\nIts last words:\nTraceback:\nValueError: bad", "exit code 1: ValueError: bad",
		},
		{messaging.Failure{Reason: "exit", ExitCode: new(1), Message: "Traceback (most recent call last):\nKeyError"},
			"exit code 1: Traceback (most recent call last):\nKeyError", "exit code 1: Traceback (most recent call last): KeyError"},
		{messaging.Failure{Reason: "signal", Signal: "killed", Message: "killed by a signal"}, "killed by a signal", "killed by a signal"},
		{messaging.Failure{Reason: "timeout", Message: "ran longer than 5s"}, "timeout: ran longer than 5s", "timeout: ran longer than 5s"},
		{messaging.Failure{Reason: "timeout", Message: "timeout of 2m\n{\"fantasia\": 1}"}, "timeout of 2m\n{\"fantasia\": 1}", "timeout of 2m"},
		{messaging.Failure{Reason: "exit"}, "exit", "exit"},
		{messaging.Failure{Reason: "exit", ExitCode: new(3)}, "exit code 3", "exit code 3"},
		{messaging.Failure{}, "", ""},
	} {
		if got := view.FailureText(&tt.failure); got != tt.text {
			t.Errorf("%+v is %q, want %q", tt.failure, got, tt.text)
		}
		if got := view.FailureLine(&tt.failure); got != tt.line {
			t.Errorf("%+v in a line is %q, want %q", tt.failure, got, tt.line)
		}
	}
}
