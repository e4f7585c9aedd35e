package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/fantasia-hpo/fantasia/internal/app/local"
	"github.com/fantasia-hpo/fantasia/internal/base/durable"
	"github.com/fantasia-hpo/fantasia/internal/show/figure"
	"github.com/fantasia-hpo/fantasia/internal/show/htmlreport"
	"github.com/fantasia-hpo/fantasia/internal/show/layout"
)

const compareLong = `Compares studies of the same objective: the best value and the time of each, how many
evaluations and how long each took until it was as good as all of them became, and the
best value so far by evaluations and by the clock. Studies of several objectives are
compared by the hypervolumes of their fronts.

A STUDY is one of the server, or with --state one below that directory. A STUDY with a
slash is a state directory of fantasia run. Without any STUDY, --state compares all
studies below it.`

// mostCompared is the number of studies that can be compared: a picture of more is
// unreadable.
const mostCompared = 12

func newStudyCompareCommand(a *app, r *remote) *cobra.Command {
	var page string
	c := &cobra.Command{
		Use:   "compare STUDY STUDY…",
		Short: "Compare studies: their best values by evaluations and by the clock",
		Long:  compareLong,
		Example: `  fantasia study compare digits digits-tpe
  fantasia study compare .fantasia/digits .fantasia/digits.1 --html compared.html`,
		Args: func(cmd *cobra.Command, args []string) error {
			if n := len(args); n == 1 || n == 0 && r.state == "" {
				return usagef(cmd, "studies given: %d; want 2 or more", n)
			}
			return nil
		},
		ValidArgsFunction: func(cmd *cobra.Command, _ []string, start string) ([]string, cobra.ShellCompDirective) {
			return r.completeStudy(cmd, nil, start)
		},
	}
	r.stateFlag(c)
	c.Flags().StringVar(&page, "html", "", "also write a page with the pictures to `FILE`")
	return a.shows(c, func(cmd *cobra.Command, args []string) (shown, error) {
		places, err := r.places(cmd, args)
		if err != nil {
			return shown{}, err
		}
		var names []string
		var sources []*htmlreport.Source
		for _, p := range places {
			src, err := p.readSource(cmd)
			if err != nil {
				return shown{}, err
			}
			names, sources = append(names, src.Study.Metadata.Name), append(sources, src)
		}
		compared, err := htmlreport.Compare(distinct(names, places), sources)
		if err != nil {
			return shown{}, exitWith(ExitUsage, err)
		}
		if page != "" {
			var b bytes.Buffer
			if err := htmlreport.WriteComparison(&b, compared, time.Now(), a.Version); err != nil {
				return shown{}, err
			}
			if err := durable.WriteOutput(page, b.Bytes(), 0o644); err != nil {
				return shown{}, fmt.Errorf("write %s: %w", page, err)
			}
		}
		return shown{compared, func(w screen) error { return comparedText(w, compared, page) }}, nil
	})
}

// origin is where a study to compare is kept: on a server, or in a state directory.
type origin struct {
	remote
	name string // "" for the only one of a state directory
}

// places finds the studies to compare.
func (r *remote) places(cmd *cobra.Command, args []string) (list []origin, err error) {
	var states []string
	if r.state != "" {
		if err := readable(cmd, r.state); err != nil {
			return nil, err
		}
		if states, err = local.States(r.state); err != nil {
			return nil, exitWith(ExitUsage, err)
		}
	}
	in := func(state, name string) {
		p := origin{remote: *r, name: name}
		p.state = state
		list = append(list, p)
	}
	for _, arg := range args {
		inner := filepath.Join(r.state, arg)
		switch {
		case slices.Contains(states, inner):
			in(inner, "")
		case filepath.Base(arg) != arg:
			in(arg, "")
		case r.state != "":
			return nil, usagef(cmd, "study %q is not below %s; want one of %q", arg, r.state, states)
		default:
			in("", arg)
		}
	}
	if len(args) == 0 {
		for _, state := range states {
			in(state, "")
		}
	}
	if n := len(list); n < 2 || n > mostCompared {
		return nil, usagef(cmd, "there are %d studies to compare; want 2 to %d", n, mostCompared)
	}
	return list, nil
}

// readSource reads a study without its curves.
func (p *origin) readSource(cmd *cobra.Command) (*htmlreport.Source, error) {
	name := p.name
	if p.state != "" && name == "" {
		var err error
		if name, _, err = p.studyIn(cmd, nil, 0); err != nil {
			return nil, err
		}
	}
	src, err := p.bareSource(cmd, name)
	if err != nil && !errors.Is(err, local.ErrNoState) {
		err = fmt.Errorf("study %s: %w", name, err)
	}
	return src, err
}

// distinct returns names that tell studies apart: their own, or where there are two of a
// name, their directories.
func distinct(names []string, places []origin) []string {
	labels := slices.Clone(names)
	for i, name := range names {
		shared := slices.Index(names, name) < i || slices.Contains(names[i+1:], name)
		if shared && places[i].state != "" {
			labels[i] = places[i].state
		}
	}
	return labels
}

// comparedText prints a comparison.
func comparedText(w screen, c *figure.Comparison, page string) error {
	columns := []layout.Column{
		{Head: "CURVE"}, {Head: "STUDY", Least: 8, End: true}, {Head: "STATE", Rank: 4}, {Head: "OPTIMISER", Rank: 3}, {Head: "DONE", Rank: 2},
		{Head: "TIME", Rank: 1}, {Head: "BEST"},
	}
	if c.Objectives != nil {
		columns[len(columns)-1].Head = "HYPERVOLUME"
		columns = append(columns, layout.Column{Head: "FRONT", Rank: 5})
	}
	if c.Level != nil {
		columns = append(columns, layout.Column{Head: "DONE UNTIL " + number(*c.Level)}, layout.Column{Head: "TIME UNTIL THEN"})
	}
	rows := make([][]string, len(c.Studies))
	for i, s := range c.Studies {
		best := "-"
		if s.Best != nil {
			best = number(s.Best.Value)
		} else if s.Hypervolume != nil {
			best = number(*s.Hypervolume)
		}
		rows[i] = []string{string(rune('A' + i)), s.Name, string(s.State), s.Algorithm, strconv.Itoa(s.Evaluations), human(seconds(s.Seconds)),
			best}
		if c.Objectives != nil {
			rows[i] = append(rows[i], onFront(s.FrontSize))
		}
		if s.Reached != nil {
			rows[i] = append(rows[i], strconv.Itoa(s.Reached.Evaluation), human(seconds(s.Reached.Seconds)))
		}
	}
	if err := w.table(columns, rows); err != nil {
		return err
	}
	for _, clock := range []bool{false, true} {
		if drawn := c.Picture(clock).Text(cmp.Or(w.width, 80)); drawn != "" {
			if err := say(w, "\n%s", drawn); err != nil {
				return err
			}
		}
	}
	if page != "" {
		return say(w, "\n%s written", page)
	}
	return nil
}

// onFront formats how many trials are on a front.
func onFront(size *int) string {
	if size == nil {
		return "-"
	}
	return strconv.Itoa(*size)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
