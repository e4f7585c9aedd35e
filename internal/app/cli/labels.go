package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/internal/base/each"
)

// remarks are the flags that change labels and the note.
type remarks struct {
	labels []string
	note   string
}

// flags adds the flags to a command.
func (m *remarks) flags(c *cobra.Command) {
	c.Flags().StringArrayVar(&m.labels, "label", nil, "set a label by `KEY=VALUE`, or remove one by KEY-. May be given several times")
	c.Flags().StringVar(&m.note, "note", "", "set the note to a `TEXT`; empty removes it")
}

// given reports whether any of the flags is set.
func (m *remarks) given(c *cobra.Command) bool { return len(m.labels) > 0 || c.Flags().Changed("note") }

// parse returns the labels to set and the keys to remove.
func (m *remarks) parse() (set map[string]string, remove []string, err error) {
	set = map[string]string{}
	for _, text := range m.labels {
		if key, ok := strings.CutSuffix(text, "-"); ok && !strings.Contains(text, "=") {
			remove = append(remove, key)
			continue
		}
		key, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, nil, fmt.Errorf("--label %s: want KEY=VALUE, or KEY- to remove a label", text)
		}
		set[key] = value
	}
	return set, remove, nil
}

// wantedLabels returns the labels of a filter's flags.
func wantedLabels(cmd *cobra.Command, flags []string) (map[string]string, error) {
	m := remarks{labels: flags}
	set, remove, err := m.parse()
	if err == nil && len(remove) > 0 {
		err = fmt.Errorf("--label %s-: want KEY=VALUE", remove[0])
	}
	if err != nil {
		return nil, usagef(cmd, "%v", err)
	}
	return set, nil
}

// labelFilter adds the flag of a filter by labels.
func labelFilter(c *cobra.Command, into *[]string) {
	c.Flags().StringArrayVar(into, "label", nil, "only those with the label `KEY=VALUE`. May be given several times")
}

// labelText writes labels in the order of their keys.
func labelText(labels map[string]string) string {
	return each.Join(slices.Sorted(maps.Keys(labels)), " ", func(key string) string { return key + "=" + labels[key] })
}

func newTrialEditCommand(a *app, r *remote) *cobra.Command {
	m := &remarks{}
	c := &cobra.Command{
		Use:   "edit STUDY TRIAL",
		Short: "Change the labels and the note of a trial",
		Example: `  fantasia trial edit digits 7 --label checked=yes --note "the loss jumps at step 40"
  fantasia trial edit digits 7 --label checked-`,
		Args: cobra.ExactArgs(2),
	}
	m.flags(c)
	return a.onStudy(r, c, func(cmd *cobra.Command, name string, args []string) (shown, error) {
		if !m.given(cmd) {
			return shown{}, usagef(cmd, "nothing to change: give --label or --note")
		}
		set, remove, err := m.parse()
		if err != nil {
			return shown{}, usagef(cmd, "%v", err)
		}
		q := &fantasiav1.EditTrialRequest{Name: name + "/trials/" + args[1], Labels: set, RemoveLabels: remove}
		if cmd.Flags().Changed("note") {
			q.Note = &m.note
		}
		resp, err := ask(cmd, r, service.EditTrial, q)
		if err == nil && resp.GetTrial() == nil {
			err = errors.New("the server returned no trial")
		}
		return line(view.FromTrial(resp.GetTrial()), "trial %d edited", resp.GetTrial().GetNumber()), err
	})
}

// attributeText writes attributes as JSON, a line for each, in the order of their names.
func attributeText(attributes map[string]any) string {
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(attributes)) {
		text, err := json.Marshal(attributes[key])
		if err != nil { // it came as JSON
			text = []byte(err.Error())
		}
		lines = append(lines, key+" = "+string(text))
	}
	return strings.Join(lines, "\n")
}
