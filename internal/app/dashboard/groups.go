package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/app/diagnosis"
	"github.com/fantasia-hpo/fantasia/internal/base/picture"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

const (
	// maxSlices bounds the parameters that are shown one by one, and maxPlanes the pairs of
	// them.
	maxSlices = 12
	maxPlanes = 3
	// sliceDots bounds the dots of all slices of a page together.
	sliceDots = 1200
)

// results fills the page on what was found.
func (d *Dashboard) results(ctx context.Context, q *request, b *bodyData) error {
	b.Panels = append(b.Panels, q.panel("history", "Values and the best so far",
		"Each dot is a completed trial, in the order in which they ended. The line is the best value so far.", q.history()))
	c, err := q.curves(ctx)
	if err != nil {
		return err
	}
	if c != nil {
		b.Panels = append(b.Panels, q.panel("curves", "Curves of running and ended trials",
			fmt.Sprintf("What the program reported while it ran: running trials, the best, and the latest, at most %d.", maxDrawnCurves), c))
	}
	b.Table = newTable(q)
	return nil
}

// insightNote says what an analysis is based on.
type insightNote struct {
	Text     string
	Coming   bool
	Findings []diagnosis.Finding
}

// note returns what the page says about the analysis.
func note(i *insight, coming bool) *insightNote {
	n := &insightNote{Coming: coming}
	switch {
	case i == nil && coming:
		n.Text = "A model is being fitted to the trials. It appears here in a few seconds."
	case i == nil:
		n.Text = "A model is fitted once all trials have been read."
	case i.problem != "":
		n.Text = "There is no model: " + i.problem + "."
	default:
		n.Text = fmt.Sprintf("The model was fitted to %s, in %s.", count(i.fitted, "completed trial", "completed trials"), took(i.took))
		if i.fitted < i.completed {
			n.Text = fmt.Sprintf("The model was fitted to %s of %s completed trials, evenly spread over the study, in %s.", thousands(i.fitted), thousands(i.completed), took(i.took))
		}
		if coming {
			n.Text += " The next one, with the latest trials, is being fitted."
		}
		n.Findings = i.report.Findings
	}
	return n
}

// insights fills the page on the parameters.
func (d *Dashboard) insights(q *request, b *bodyData) {
	last, coming := d.analyst.of(q)
	b.Insight = note(last, coming)
	b.Insight.Findings = nil // they are on the page of diagnostics
	b.Panels = append(b.Panels, q.panel("parallel", "Parallel coordinates",
		"Each line is a trial, from the dullest colour, the worst, to the strongest, the best. Drag along an axis to show only the trials in that range; the filter above does the same.", q.parallel()))
	var report *diagnosis.Report
	if last != nil {
		report = last.report
	}
	if report != nil && report.Importance != nil {
		b.Panels = append(b.Panels, q.panel("importance", "Importances",
			"How much of the objective's variation each parameter accounts for, by itself and with its interactions (Sobol indices of the model).", importances(last)))
	}
	order := ranked(q.filter.axes, report)
	order = order[:min(len(order), maxSlices)]
	for _, i := range order {
		help, pictures := "The value of each trial against this parameter.", []picture.Picture{q.slice(i, len(order))}
		if d := q.dependence(i, last); d != nil {
			help = "Above: the value of each trial against this parameter. Below: what the model expects on average over all other parameters, with the band that holds 95% of what it thinks possible."
			pictures = append(pictures, d)
		}
		b.Panels = append(b.Panels, q.half("slice-"+strconv.Itoa(i), q.filter.axes[i].Name, help, pictures...))
	}
	b.Panels = append(b.Panels, q.planes(last)...)
	b.Table = newTable(q)
}

// diagnostics fills the page on how well the search works.
func (d *Dashboard) diagnostics(q *request, b *bodyData) {
	last, coming := d.analyst.of(q)
	b.Insight = note(last, coming)
	if last != nil && last.report != nil {
		b.Panels = append(b.Panels, q.half("fit", "Predictions against outcomes",
			"Each dot is a trial that the model predicted without having seen it (leave-one-out). Near the dashed line the model is good; about 19 of 20 bars should cross it.", q.fit(last)))
	}
	b.Panels = append(b.Panels, q.half("staleness", "Staleness",
		"How many results arrived after the data from which each trial was suggested. More parallel trials mean more of them.", q.staleness()))
	b.Cost = costs(q)
	fallbacks, waits := 0, []time.Duration{}
	for _, r := range q.shown {
		if r.source == optimizer.SourceFallback {
			fallbacks++
		}
		if r.asked != 0 && r.created != 0 {
			waits = append(waits, r.created.minus(r.asked))
		}
	}
	b.Facts = append(b.Facts,
		fact{"Fallback suggestions", fmt.Sprintf("%s of %s", thousands(fallbacks), thousands(len(q.shown))), "Points of a Sobol sequence, because the optimiser had not answered in time."},
		fact{"Time for a suggestion", quantiles(waits), "From the request until the trial was created: median and 95th percentile."},
	)
}

// costRow compares trials by how many results their suggestion did not know.
type costRow struct {
	Missed    string
	Trials    int
	Completed int
	Improved  string
	Median    string
}

// costs shows what asynchrony cost: whether suggestions that knew fewer results were worse.
func costs(q *request) []costRow {
	groups := []struct {
		name      string
		low, high int
	}{{"0", 0, 0}, {"1 to 3", 1, 3}, {"4 to 15", 4, 15}, {"16 or more", 16, 1 << 30}}
	d := q.direction()
	type sum struct {
		trials, improved int
		values           []float64
	}
	sums := make([]sum, len(groups))
	best, have := 0.0, false
	for _, r := range ended(q.rows.rows) {
		better := r.completed() && (!have || d.Better(r.value, best))
		if better {
			best, have = r.value, true
		}
		for i, g := range groups {
			if r.staleness < g.low || r.staleness > g.high {
				continue
			}
			sums[i].trials++
			if r.completed() {
				sums[i].values = append(sums[i].values, r.value)
			}
			if better {
				sums[i].improved++
			}
		}
	}
	var list []costRow
	for i, g := range groups {
		s := &sums[i]
		if s.trials == 0 {
			continue
		}
		row := costRow{Missed: g.name, Trials: s.trials, Completed: len(s.values), Improved: percent(s.improved, s.trials), Median: "–"}
		if len(s.values) > 0 {
			slices.Sort(s.values)
			row.Median = fmt.Sprintf("%.6g", s.values[(len(s.values)-1)/2])
		}
		list = append(list, row)
	}
	return list
}

func percent(n, of int) string {
	if of == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(n)/float64(of))
}

// quantiles returns the median and the 95th percentile.
func quantiles(list []time.Duration) string {
	if len(list) == 0 {
		return "–"
	}
	slices.Sort(list)
	at := func(share float64) string { return took(list[int(share*float64(len(list)-1))]) }
	return at(0.5) + ", " + at(0.95)
}

// health fills the page on how the evaluations run.
func (d *Dashboard) health(q *request, b *bodyData) {
	reasons := map[string]int{}
	var busy time.Duration
	var waits []time.Duration
	queued, pending, lost, retried := 0, 0, 0, 0
	now := at(q.now)
	first, last := moment(0), moment(0)
	for _, r := range q.shown {
		switch r.state {
		case study.TrialFailed, study.TrialInfeasible:
			reason := r.failure
			if reason == "" {
				reason = stateText(r.state)
			}
			reasons[reason]++
		case study.TrialQueued:
			queued++
		case study.TrialPending:
			pending++
		}
		if len(r.attempts) > 1 {
			retried++
		}
		for i, a := range r.attempts {
			end := a.ended
			if end == 0 {
				end = now
			}
			busy += end.minus(a.claimed)
			if first == 0 || a.claimed != 0 && a.claimed < first {
				first = a.claimed
			}
			last = max(last, end)
			if a.state == study.AttemptLost {
				lost++
			}
			if i == 0 && r.created != 0 {
				waits = append(waits, a.claimed.minus(r.created))
			}
		}
	}
	bars := &picture.Bars{Caption: "trials that ended without a value", Color: 1, None: "No trial has failed."}
	names := slices.SortedFunc(maps.Keys(reasons), func(x, y string) int {
		return cmp.Or(cmp.Compare(reasons[y], reasons[x]), cmp.Compare(x, y))
	})
	for _, name := range names[:min(len(names), 20)] {
		bars.Bars = append(bars.Bars, picture.Bar{Name: name, Value: float64(reasons[name])})
	}
	idle := "–"
	if slots := q.spec().Parallelism; busy > 0 && last > first {
		share := 1 - busy.Seconds()/(last.minus(first).Seconds()*float64(slots))
		idle = fmt.Sprintf("%.1f%%", 100*max(0, share))
	}
	b.Facts = append(b.Facts,
		fact{"Idle", idle, fmt.Sprintf("The share of the time, from the first trial to the last, in which the %s the study may use were not busy with it.", count(q.spec().Parallelism, "slot", "slots"))},
		fact{"Queue", fmt.Sprintf("%d queued, %d pending", queued, pending), "Trials that wait for a worker, and trials that wait for another attempt."},
		fact{"Wait for a worker", quantiles(waits), "From the creation of a trial until its first attempt started: median and 95th percentile."},
		fact{"Lost attempts", thousands(lost), "Attempts whose worker fell silent. Their trials were tried again."},
		fact{"Trials tried again", thousands(retried), "Trials with more than one attempt."},
	)
	b.Panels = append(b.Panels,
		q.panel("gantt", "Workers", "What each worker did when; a bar is an attempt.", q.gantt()),
		q.half("pending", "Trials under way", "How many trials were evaluated at once.", q.pending()),
		q.half("failures", "Failures by reason", "Why trials ended without a value.", bars),
	)
}
