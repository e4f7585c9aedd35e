package usage

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

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
