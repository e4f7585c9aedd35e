package view

import (
	"fmt"
	"strings"

	"github.com/fantasia-hpo/fantasia/messaging"
)

// FailureText says why an attempt did not complete, each thing once: its reason,
// exit code and signal where the message does not say them, and the message.
func FailureText(f *messaging.Failure) string {
	message := strings.TrimSpace(f.Message)
	first, _, _ := strings.Cut(message, "\n")
	var parts []string
	add := func(part string) {
		if part != "" && !strings.Contains(first, part) {
			parts = append(parts, part)
		}
	}
	code := ""
	if f.ExitCode != nil {
		code = fmt.Sprintf("exit code %d", *f.ExitCode)
	}
	if f.Reason != "exit" || code == "" { // the exit code says that
		add(f.Reason)
	}
	add(code)
	add(f.Signal)
	switch head := strings.Join(parts, ", "); {
	case head == "":
		return message
	case message == "":
		return head
	default:
		return head + ": " + message
	}
}

// failureReason says in a few words why an attempt did not complete; "" for nil.
func failureReason(f *messaging.Failure) string {
	switch {
	case f == nil:
		return ""
	case f.ExitCode != nil && f.Reason == "exit":
		return fmt.Sprintf("exit code %d", *f.ExitCode)
	}
	return f.Reason
}

// FailureLine says in one line why an attempt did not complete: what was seen, and
// the last line of the program's last words, which is mostly the error itself.
func FailureLine(f *messaging.Failure) string {
	lines := strings.Split(strings.TrimSpace(FailureText(f)), "\n")
	seen, _, _ := strings.Cut(lines[0], "; see ")                                                       // the log's place
	if last := strings.TrimSpace(lines[len(lines)-1]); len(lines) > 1 && last != "" && last[0] != '{' { // a report is no error
		return strings.TrimSuffix(seen, ":") + ": " + last
	}
	return seen
}
