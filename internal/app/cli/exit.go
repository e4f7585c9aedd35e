package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"github.com/fantasia-hpo/fantasia/coordinator/journal"
	"github.com/fantasia-hpo/fantasia/study"
)

// The exit codes of every command.
const (
	ExitOK          = 0
	ExitError       = 1   // any other error
	ExitUsage       = 2   // the command line or a study file is wrong
	ExitFailed      = 3   // the study failed, or nothing completed
	ExitInUse       = 4   // another process serves the state directory
	ExitInterrupted = 130 // 128 + SIGINT, as shells have it
)

// exitError is an error with an exit code. A nil err has already been shown.
type exitError struct {
	code int
	err  error
}

// Error returns the error's own text.
func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

// Unwrap returns the error without its exit code.
func (e *exitError) Unwrap() error { return e.err }

// exitWith ends the program with the code. A nil err means that everything has already
// been shown.
func exitWith(code int, err error) error { return &exitError{code: code, err: err} }

// usageError marks the command line as wrong and points to its help.
func usageError(cmd *cobra.Command, err error) error {
	return exitWith(ExitUsage, fmt.Errorf("%w\nSee '%s --help'", err, cmd.CommandPath()))
}

// usagef is usageError with a formatted message.
func usagef(cmd *cobra.Command, format string, args ...any) error {
	return usageError(cmd, fmt.Errorf(format, args...))
}

// arguments checks for the arguments that the command's usage names before its flags;
// those in brackets are optional.
func arguments(cmd *cobra.Command, args []string) error {
	words := strings.Fields(cmd.Use)[1:]
	want := strings.Join(append([]string{cmd.CommandPath()}, words...), " ")
	if i := slices.IndexFunc(words, func(w string) bool { return w[0] == '-' }); i >= 0 {
		words = words[:i]
	}
	switch {
	case len(args) < len(words) && words[len(args)][0] != '[':
		return fmt.Errorf("%s is missing; want %s", words[len(args)], want)
	case len(args) > len(words):
		return fmt.Errorf("too many arguments: %q; want %s", args[len(words)], want)
	}
	return nil
}

// directory refuses a path of --state that exists and is not a directory.
func directory(cmd *cobra.Command, path string) error {
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return usagef(cmd, "--state is %q, which is not a directory", path)
	}
	return nil
}

// readable returns a usage error if what --state names is a file that is not the state of a Go
// program.
func readable(cmd *cobra.Command, path string) error {
	if info, err := os.Stat(path); err == nil && !info.IsDir() && !journal.Is(path) {
		return usagef(cmd, "--state is %q, which is neither a directory nor the state file of a Go program (of a damaged one, "+
			"fantasia state repair saves what can be read)", path)
	}
	return nil
}

// exit shows the error and returns its exit code.
func (a *app) exit(ctx context.Context, err error) int {
	if err == nil {
		return ExitOK
	}
	code := codeOf(ctx, err)
	if text := textOf(err); text != "" && code != ExitInterrupted {
		fmt.Fprintln(a.Stderr, text)
	}
	return code
}

// codeOf returns the exit code of an error.
func codeOf(ctx context.Context, err error) int {
	if exit, ok := errors.AsType[*exitError](err); ok {
		return exit.code
	}
	if _, ok := errors.AsType[*study.Problems](err); ok {
		return ExitUsage
	}
	if ctx.Err() != nil {
		return ExitInterrupted
	}
	if connect.CodeOf(err) == connect.CodeInvalidArgument {
		return ExitUsage
	}
	return ExitError
}

// textOf returns the text of an error for people. The problems of a study file are
// printed unchanged, one a line, so that editors find their places.
func textOf(err error) string {
	if exit, ok := errors.AsType[*exitError](err); ok && exit.err == nil {
		return ""
	}
	if problems, ok := errors.AsType[*study.Problems](err); ok {
		return problems.Error()
	}
	if bad, ok := errors.AsType[*fileError](err); ok {
		return bad.Error()
	}
	// The status code tells people nothing; what was added to the message does.
	if connected, ok := errors.AsType[*connect.Error](err); ok && connected.Error() == err.Error() {
		return "fantasia: " + connected.Message()
	}
	return "fantasia: " + err.Error()
}
