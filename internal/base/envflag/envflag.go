// Package envflag sets a command's flags from the environment: FANTASIA_LEASE_TTL sets
// --lease-ttl, unless the flag is given. An empty variable counts as unset.
package envflag

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Prefix is the prefix of every variable.
const Prefix = "FANTASIA_"

// Name returns the variable of a flag.
func Name(flag string) string {
	return Prefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// Apply sets the flags of a command that were not given from the environment. The error
// names each variable with an invalid value.
func Apply(cmd *cobra.Command) error {
	var errs []error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		value := os.Getenv(Name(f.Name))
		if value == "" || f.Changed || f.Name == "help" {
			return
		}
		if err := cmd.Flags().Set(f.Name, value); err != nil {
			errs = append(errs, fmt.Errorf("%s=%q: %w", Name(f.Name), value, err))
		}
	})
	return errors.Join(errs...)
}
