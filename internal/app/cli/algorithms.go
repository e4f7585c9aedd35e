package cli

import (
	"github.com/spf13/cobra"

	"github.com/fantasia-hpo/fantasia/optimizer/registry"
)

// algorithmInfo is an algorithm in the output of `fantasia algorithms`.
type algorithmInfo struct {
	Name        string        `json:"name"`
	Description string        `json:"description"`
	Default     bool          `json:"default,omitempty"`
	Settings    []settingInfo `json:"settings,omitempty"`
}

// settingInfo is one of its settings.
type settingInfo struct {
	Name     string `json:"name"`
	Default  any    `json:"default"`
	Accepted string `json:"accepted"`
	Meaning  string `json:"meaning"`
	// Experimental marks settings for which no other value was measured to be better than the
	// default.
	Experimental bool `json:"experimental,omitempty"`
}

func newAlgorithmsCommand(a *app) *cobra.Command {
	return a.shows(&cobra.Command{
		Use:   "algorithms",
		Short: "List the algorithms that a study can name",
		Long: `Lists the algorithms that spec.algorithm.name accepts, with a line on each; the
first is the default. Their settings are in the JSON and YAML output. Of those
marked experimental, no other value was better than the default on average.`,
		Example: `  fantasia algorithms
  fantasia algorithms -o yaml    # with all settings`,
	}, func(*cobra.Command, []string) (shown, error) {
		all := algorithms()
		return shown{all, func(w screen) error {
			longest := 0
			for _, one := range all {
				longest = max(longest, len(one.Name))
			}
			for _, one := range all {
				if err := say(w, "%-*s  %s", longest, one.Name, one.Description); err != nil {
					return err
				}
			}
			return nil
		}}, nil
	})
}

func algorithms() []algorithmInfo {
	var all []algorithmInfo
	for _, e := range registry.Entries() {
		one := algorithmInfo{Name: e.Name, Description: e.Description, Default: e.Name == registry.Default}
		for _, s := range e.Settings {
			one.Settings = append(one.Settings, settingInfo{Name: s.Name, Default: s.Default, Accepted: s.Accepted(), Meaning: s.Doc,
				Experimental: s.Experimental})
		}
		all = append(all, one)
	}
	return all
}
