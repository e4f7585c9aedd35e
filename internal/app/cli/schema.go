package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fantasia-hpo/fantasia/internal/exchange/crd"
	"github.com/fantasia-hpo/fantasia/study/file"
)

func newSchemaCommand(a *app) *cobra.Command {
	var definition bool
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of study files, for editors",
		Example: `  fantasia schema > study.schema.json
  # first line of a study file: # yaml-language-server: $schema=study.schema.json
  fantasia schema --crd | kubectl apply --server-side -f -`,
		RunE: func(*cobra.Command, []string) error {
			if !definition {
				return say(a.Stdout, "%s", strings.TrimSuffix(string(file.JSONSchema()), "\n"))
			}
			text, err := crd.YAML()
			if err != nil {
				return fmt.Errorf("create the CustomResourceDefinition: %w", err)
			}
			return say(a.Stdout, "%s", strings.TrimSuffix(string(text), "\n"))
		},
	}
	cmd.Flags().BoolVar(&definition, "crd", false, "print the CustomResourceDefinition of Study resources instead")
	return cmd
}
