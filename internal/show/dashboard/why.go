package dashboard

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/show/diagnosis"
	"github.com/fantasia-hpo/fantasia/internal/show/figure"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

// why returns what is recorded of the trial's suggestion.
func why(t *record.Trial) []fact {
	origin := map[string]string{
		"initial": "An initial point of the study file.", "design": "A point of the optimiser's initial design.",
		"random": "Drawn at random.", "model": "The optimiser's model chose it.",
		"fallback": "A point of a Sobol sequence, because the optimiser had not answered in time.", "requested": "Somebody asked for it.",
		"promoted": "A trial at the level below was among the best.",
	}
	list := []fact{{"Source", string(t.Source), origin[string(t.Source)]}}
	r := &t.Reasons
	if r.Note != "" {
		list = append(list, fact{"Reason", r.Note, ""})
	}
	if r.Mean != nil && r.SD != nil {
		list = append(list, fact{"Expected value", view.Expected(*r.Mean, *r.SD),
			"The model's posterior mean and standard deviation when the point was suggested."})
	}
	for _, name := range slices.Sorted(maps.Keys(r.Acquisition)) {
		help := "Value of the acquisition function; larger is better."
		if name == "feasible" {
			help = "Probability that the evaluation completes."
		}
		list = append(list, fact{name, view.Number(r.Acquisition[name]), help})
	}
	return append(list,
		fact{"Pending", strconv.Itoa(r.Pending), "Points that were queued or running when it was suggested, and that the suggestion took into " +
			"account."},
		fact{"Missed results", strconv.Itoa(t.Staleness), "Results that arrived after the data from which it was suggested (its staleness)."},
	)
}

// maxMeanwhile bounds the trials that a page names as under way.
const maxMeanwhile = 40

// meanwhile returns the trials that had been created but had not ended when a trial was
// created: what its suggestion took into account, except for what changed while it was made.
func meanwhile(name string, rows []*figure.Trial, t *record.Trial) (list []link, more int) {
	for _, r := range rows {
		if r.Number == t.Number || r.Made >= t.Created || r.Position != 0 && r.Position < t.Created {
			continue
		}
		if len(list) == maxMeanwhile {
			more++
			continue
		}
		list = append(list, link{strconv.Itoa(r.Number), trialAddress(name, r.Number)})
	}
	return list, more
}

const (
	// maxLines bounds the parameters along which a choice is shown.
	maxLines = 6
	// maxKnown bounds the ended trials that the model of a choice is chosen from.
	maxKnown = 2000
)

// motive is why a model chose the point of a trial. It is never changed.
type motive struct {
	*diagnosis.Choice
	// problem says why there is nothing to show.
	problem string
	// known are the trials that had ended when the point was chosen, in that order, and
	// open those that had not.
	known, open []*figure.Trial
}

// choosing is a trial whose motive is to be found.
type choosing struct {
	id    string
	study *study.Study
	trial *record.Trial
	rows  []*figure.Trial
}

func (n *choosing) key() string { return n.id + "/" + strconv.Itoa(n.trial.Number) }

// motiveOf returns the motive of a trial, nil if it is not known yet. It then asks for it.
// What a point was chosen from never changes, so each motive is found once.
func (a *analyst) motiveOf(n *choosing) *motive {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := n.key()
	if c, known := a.answers[key].found.(*motive); known || a.asked[key] {
		return c
	}
	a.ask(n)
	return nil
}

// do fits a model to what the optimiser knew.
func (n *choosing) do(ctx context.Context) any {
	ctx, cancel := context.WithTimeout(ctx, fitTimeout)
	defer cancel()
	c := &motive{}
	c.known, c.open = n.then()
	p, err := n.problem(c)
	if err == nil {
		c.Choice, err = diagnosis.Explain(ctx, n.study, p, n.trial.Point, maxLines)
	}
	c.problem = problemOf(err)
	return c
}

// then returns the trials that had ended when the point was requested, in that order, and
// those that were open then, with the earlier points of the same request.
func (n *choosing) then() (known, open []*figure.Trial) {
	t := n.trial
	for _, r := range n.rows {
		switch {
		case r.Number == t.Number:
		case r.Made <= t.From && (r.Position == 0 || r.Position > t.From), r.Request == t.Request && r.Made > t.From && r.Made < t.Created:
			open = append(open, r)
		case r.Position != 0 && r.Position <= t.From:
			known = append(known, r)
		}
	}
	return figure.Ended(known), open
}

// problem returns what the optimiser knew, of very many trials the latest and an even share
// of the others, with the best.
func (n *choosing) problem(c *motive) (*optimizer.Problem, error) {
	used := c.known
	if len(used) > maxKnown {
		early, latest := used[:len(used)-maxKnown/2], used[len(used)-maxKnown/2:]
		keep := map[*figure.Trial]bool{}
		for _, r := range figure.Top(early, n.study.Spec.FirstObjective().Direction, maxKnown/4) {
			keep[r] = true
		}
		for k := range maxKnown / 4 {
			keep[early[k*len(early)/(maxKnown/4)]] = true
		}
		used = slices.Concat(slices.DeleteFunc(slices.Clone(early), func(r *figure.Trial) bool { return !keep[r] }), latest)
	}
	p, _, err := figure.Problem(n.study, used)
	if err != nil {
		return nil, err
	}
	axes := figure.AxesOf(n.study)
	p.First = 1 + n.trial.Place
	for _, r := range n.rows {
		if r.Made <= n.trial.From {
			p.First++
		}
	}
	for _, r := range c.open {
		point, err := p.Space.Normalize(r.View(axes).Parameters)
		if err != nil {
			continue // the space was edited
		}
		p.Pending = append(p.Pending, optimizer.Pending{Trial: r.Number, Point: point})
	}
	return p, nil
}

// around fills what the page shows of the model around the point.
func (d *Dashboard) around(q *request, t *record.Trial, data *trialData) {
	switch {
	case t.Source != optimizer.SourceModel:
		data.AroundNote = "There is no picture of the model, since no model chose this point."
		return
	case !q.rows.complete:
		data.AroundNote, data.AroundWait = "A model is fitted once all trials have been read.", true
		return
	}
	c := d.analyst.motiveOf(&choosing{q.study.Spec.ID, &q.study.Spec.Definition, t, q.rows.rows})
	switch {
	case c == nil:
		data.AroundNote, data.AroundWait = "A model is being fitted to what was known when the point was chosen. It appears here in a few "+
			"seconds.", true
		return
	case c.Choice == nil:
		data.AroundNote = "There is no picture of the model: " + c.problem + "."
		return
	}
	data.AroundNote = c.note(q.Spec.Algorithm.Name)
	data.Around = q.panels(q.Choice(c.Choice, t.Number, c.known, c.open)...)
}

// note says which model the pictures show.
func (c *motive) note(algorithm string) string {
	model := fmt.Sprintf("The model is the Gaussian process of %s, fitted again", algorithm)
	if !c.Own {
		model = fmt.Sprintf("The algorithm %s has no model of this kind. These are pictures of the Gaussian process of hebo, which did not "+
			"choose the point. It was fitted", algorithm)
	}
	trials := count(c.Used, "trial", "trials")
	if c.Used < len(c.known) {
		trials = fmt.Sprintf("%s of the %s trials", thousands(c.Used), thousands(len(c.known)))
	}
	text := fmt.Sprintf("%s to %s that had ended, with %s.", model, trials, count(c.Pending, "pending point", "pending points"))
	if c.Assumed < c.Pending {
		text += fmt.Sprintf(" It knows only the latest %s of these.", thousands(c.Assumed))
	}
	if c.Own {
		text += " It can differ a little from the model that chose the point, which continued from an earlier fit."
	}
	if c.Again {
		text += " The point had been evaluated before. It was chosen to learn whether that value was luck, not by the acquisition function alone."
	}
	return text
}
