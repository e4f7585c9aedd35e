// Package usage makes the help and the errors of a command line easy to read, and sets flags from the
// environment.
package usage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Columns is the width of help texts.
const Columns = 100

// Main runs a program's root command with the arguments until ctx ends, and returns the
// program's exit code. An error goes to stderr after the program's name, which replaces the
// prefix.
func Main(ctx context.Context, root *cobra.Command, args []string, stderr io.Writer, prefix string) int {
	root.SetArgs(args)
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(stderr, root.Name()+":", strings.TrimPrefix(err.Error(), prefix))
		return 1
	}
	return 0
}

// Root completes the root command of a program: its flags can come from the environment, and
// check, if it is not nil, has to accept them.
func Root(root *cobra.Command, version string, check func(*pflag.FlagSet) error) *cobra.Command {
	root.Version, root.SilenceErrors, root.SilenceUsage = version, true, true
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := Environment(cmd); err != nil || check == nil {
			return err
		}
		return check(cmd.Flags())
	}
	Setup(root)
	return root
}

// Setup wraps the help of flags at Columns, and makes an invalid value of a flag an error
// that says what is accepted. It covers the subcommands of root too.
func Setup(root *cobra.Command) {
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", fmt.Sprintf(".FlagUsagesWrapped %d", Columns)))
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return explain(err) })
}

// accepted describes the values of a flag by its type.
var accepted = map[string]string{
	"int": "a whole number", "int32": "a whole number",
	"float64":  "a number",
	"duration": "a duration such as 90s, 10m or 1h30m",
	"bool":     "true or false",
	"size":     "a number of bytes with Ki, Mi, Gi or Ti, such as 10Gi",
}

// explain replaces the words of Go's parsers, such as strconv.ParseInt, by what is accepted.
func explain(err error) error {
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	flag := invalid.GetFlag()
	want, ok := accepted[flag.Value.Type()]
	if !ok {
		return err
	}
	return fmt.Errorf("--%s is %q; want %s", flag.Name, invalid.GetValue(), want)
}

// Variable returns the environment variable of a flag: FANTASIA_LEASE_TTL of --lease-ttl.
func Variable(flag string) string {
	return "FANTASIA_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// Environment sets the flags of a command that were not given from the environment. An empty variable
// counts as unset. The error names each variable with an invalid value.
func Environment(cmd *cobra.Command) error {
	var errs []error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		value := os.Getenv(Variable(f.Name))
		if value == "" || f.Changed || f.Name == "help" {
			return
		}
		if err := cmd.Flags().Set(f.Name, value); err != nil {
			errs = append(errs, fmt.Errorf("%s=%q: %w", Variable(f.Name), value, err))
		}
	})
	return errors.Join(errs...)
}
