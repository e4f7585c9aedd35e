package cli

import (
	"github.com/spf13/cobra"

	"github.com/fantasia-hpo/fantasia/internal/wire"
	"github.com/fantasia-hpo/fantasia/study"
)

func newCheckCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:  "check STUDY.yaml",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, err := a.parseStudyFile(cmd, args[0])
			return err
		},
	}
}

// parseStudyFile reads a study file that is given as an argument.
func (a *app) parseStudyFile(cmd *cobra.Command, file string) (*study.Study, error) {
	text, err := a.readStudyFile(cmd, file)
	if err != nil {
		return nil, err
	}
	return wire.ParseStudy(file, []byte(text))
}
