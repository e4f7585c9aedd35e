// Package usage makes the help and the errors of a command line easy to read.
package usage

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Columns is the width of help texts.
const Columns = 100

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
