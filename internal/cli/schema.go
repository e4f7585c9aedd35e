package cli

import (
	"github.com/spf13/cobra"

	"github.com/fantasia-hpo/fantasia/study"
)

func newSchemaCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of study files, for editors",
		Example: `  fantasia schema > study.schema.json
  # then, first in a study file: # yaml-language-server: $schema=study.schema.json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return say(a.Stdout, "%s", study.JSONSchema()) },
	}
}
