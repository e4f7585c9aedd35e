package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// environmentName is the variable that gives a flag: FANTASIA_LEASE_TTL for
// --lease-ttl.
func environmentName(flag string) string {
	return "FANTASIA_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// fromEnvironment sets the flags that the command line does not, from the
// environment. An empty variable counts as none.
func (a *app) fromEnvironment(flags *pflag.FlagSet) error {
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed || f.Name == "help" || f.Name == "version" {
			return
		}
		name := environmentName(f.Name)
		value, ok := a.LookupEnv(name)
		if !ok || value == "" {
			return
		}
		if err := flags.Set(f.Name, value); err != nil {
			errs = append(errs, fmt.Errorf("variable %s: %w", name, err))
		}
	})
	return errors.Join(errs...)
}
