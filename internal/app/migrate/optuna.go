package migrate

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
)

// OptunaOptions select what to import from a storage.
type OptunaOptions struct {
	// Study is the name of the study; it may be empty if there is only one.
	Study string
	// Initial is the number of best trials to evaluate again first, 0 or more.
	Initial int
}

// optunaMetric is the name given to the objective, which has none in Optuna.
const optunaMetric = "value"

// Optuna converts a study in a storage of Optuna 3 to 5: the search space that the trials
// used, and the best points to start with. source is the path of a file of SQLite, or the URL of
// a database, as Optuna has it. Its error wraps ErrSource unless a server cannot be reached, and
// lists the existing studies if none or several match. It does not hold the URL's password.
func Optuna(ctx context.Context, source string, o OptunaOptions) (_ *Result, err error) {
	db, err := openStorage(ctx, source)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	id, name, err := chooseStudy(ctx, db, o.Study)
	if err != nil {
		return nil, err
	}
	s := &study.Study{APIVersion: study.APIVersion, Kind: study.Kind, Metadata: study.Metadata{Name: label(name)}}
	s.Spec.Objective.Metric = optunaMetric
	if s.Spec.Objective.Direction, err = direction(ctx, db, id); err != nil {
		return nil, err
	}
	trials, err := readTrials(ctx, db, id)
	if err != nil {
		return nil, err
	}
	r := &Result{}
	space := spaceOf(r, trials)
	if len(space) == 0 {
		return nil, fmt.Errorf("%w: no trial of study %q has parameters", ErrSource, name)
	}
	s.Spec.Parameters = space
	s.Spec.Initial = bestPoints(r, trials, space, s.Spec.Objective.Direction, o.Initial)
	s.Spec.Budget.MaxTrials = max(len(trials), len(s.Spec.Initial))
	s.Spec.Trial.Command = []string{"python", "train.py", "${args}"}
	r.note("write your program into spec.trial.command: Optuna keeps none. It reports its objective as %q", optunaMetric)
	return r, r.render(s)
}

type optunaStudy struct {
	id   int64
	name string
}

func chooseStudy(ctx context.Context, s *storage, want string) (int64, string, error) {
	studies, err := queried(ctx, s, func(r *sql.Rows, o *optunaStudy) error { return r.Scan(&o.id, &o.name) },
		"SELECT study_id, study_name FROM studies")
	if err != nil {
		return 0, "", err
	}
	var names []string
	for _, s := range studies {
		if s.name == want || want == "" && len(studies) == 1 {
			return s.id, s.name, nil
		}
		names = append(names, fmt.Sprintf("%q", s.name))
	}
	if len(names) == 0 {
		return 0, "", fmt.Errorf("%w: the storage has no studies", ErrSource)
	}
	slices.Sort(names) // each database has an order of its own
	if want == "" {
		return 0, "", fmt.Errorf("%w: the storage has several studies: name one of %s", ErrSource, strings.Join(names, ", "))
	}
	return 0, "", fmt.Errorf("%w: the storage has no study %q: want one of %s", ErrSource, want, strings.Join(names, ", "))
}

func direction(ctx context.Context, s *storage, id int64) (study.Direction, error) {
	directions, err := queried(ctx, s, func(r *sql.Rows, d *string) error { return r.Scan(d) },
		"SELECT direction FROM study_directions WHERE study_id = ? ORDER BY objective", id)
	if err != nil {
		return "", err
	}
	if len(directions) != 1 {
		return "", fmt.Errorf("%w: the study has %d objectives: want one", ErrSource, len(directions))
	}
	if directions[0] == "MAXIMIZE" {
		return study.Maximize, nil
	}
	return study.Minimize, nil
}

// label converts any name to a study's name, a DNS label.
func label(name string) string {
	made := strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(name), "-"), "-")
	if made == "" {
		return "imported"
	}
	return strings.TrimRight(made[:min(len(made), 63)], "-")
}

// optunaTrial is a trial with its parameters.
type optunaTrial struct {
	number     int
	value      *float64 // nil unless it completed with a finite value
	parameters []optunaParameter
}

func (t *optunaTrial) point() map[string]any {
	point := make(map[string]any, len(t.parameters))
	for _, p := range t.parameters {
		point[p.name] = p.choice()
	}
	return point
}

type optunaParameter struct {
	trial        int64
	name         string
	value        float64
	distribution string
}

type trialRow struct {
	id     int64
	number int
	value  sql.NullFloat64
}

func readTrials(ctx context.Context, s *storage, id int64) ([]*optunaTrial, error) {
	rows, err := queried(ctx, s, func(r *sql.Rows, t *trialRow) error { return r.Scan(&t.id, &t.number, &t.value) },
		`SELECT t.trial_id, t.number, v.value FROM trials t
		 LEFT JOIN trial_values v ON v.trial_id = t.trial_id AND v.objective = 0 AND t.state = 'COMPLETE'
		 WHERE t.study_id = ? ORDER BY t.number`, id)
	if err != nil {
		return nil, err
	}
	trials, at := make([]*optunaTrial, 0, len(rows)), make(map[int64]*optunaTrial, len(rows))
	for _, row := range rows {
		t := &optunaTrial{number: row.number}
		if row.value.Valid {
			t.value = &row.value.Float64
		}
		trials, at[row.id] = append(trials, t), t
	}
	parameters, err := queried(ctx, s, func(r *sql.Rows, p *optunaParameter) error {
		return r.Scan(&p.trial, &p.name, &p.value, &p.distribution)
	}, `SELECT p.trial_id, p.param_name, p.param_value, p.distribution_json FROM trial_params p
		JOIN trials t ON t.trial_id = p.trial_id WHERE t.study_id = ? ORDER BY p.param_id`, id)
	if err != nil {
		return nil, err
	}
	for _, p := range parameters {
		at[p.trial].parameters = append(at[p.trial].parameters, p)
	}
	return trials, nil
}

// bestPoints returns the points of the n best trials that belong to the space.
func bestPoints(r *Result, trials []*optunaTrial, params []study.Parameter, direction study.Direction, n int) []map[string]any {
	done := slices.DeleteFunc(slices.Clone(trials), func(t *optunaTrial) bool { return t.value == nil })
	slices.SortStableFunc(done, func(a, b *optunaTrial) int {
		return cmp.Compare(direction.Cost(*a.value), direction.Cost(*b.value))
	})
	var points []map[string]any
	for _, t := range done {
		if len(points) == n {
			break
		}
		point := t.point()
		if _, err := space.New(params, nil, []map[string]any{point}); err != nil {
			r.note("trial %d, one of the best, is not in the space of the last trials: it was left out", t.number)
			n--
			continue
		}
		points = append(points, point)
	}
	return points
}

// distribution is the distribution from which Optuna samples a parameter, under its
// names of version 3 and of earlier ones.
type distribution struct {
	Name       string `json:"name"`
	Attributes struct {
		Low, High float64
		Log       bool
		Step, Q   *float64
		Choices   []any
	} `json:"attributes"`
}

func (p *optunaParameter) parse() (d distribution, err error) {
	err = json.Unmarshal([]byte(p.distribution), &d)
	return d, err
}

// choice returns a parameter's value: for a categorical, the table contains its index.
func (p *optunaParameter) choice() any {
	d, err := p.parse()
	if err != nil {
		return nil
	}
	if d.Name != "CategoricalDistribution" {
		return p.value
	}
	if i := int(p.value); i >= 0 && i < len(d.Attributes.Choices) {
		return d.Attributes.Choices[i]
	}
	return nil
}

// spaceOf returns the search space: each parameter as in the last trial that has it, in
// the order in which parameters first appeared.
func spaceOf(r *Result, trials []*optunaTrial) []study.Parameter {
	last, count := make(map[string]optunaParameter), make(map[string]int)
	var order []string
	with := 0
	for _, t := range trials {
		for _, p := range t.parameters {
			if _, seen := last[p.name]; !seen {
				order = append(order, p.name)
			} else if last[p.name].distribution != p.distribution && count[p.name] > 0 {
				r.note("%s: its range changed while the study ran; the last one counts", p.name)
				count[p.name] = -len(trials) // noted once
			}
			last[p.name] = p
			count[p.name]++
		}
		if len(t.parameters) > 0 {
			with++
		}
	}
	var space []study.Parameter
	for _, name := range order {
		p := last[name]
		if n := count[name]; n > 0 && n < with {
			r.note("%s: only %d of %d trials have it: if it depends on another parameter, say so with when", name, n, with)
		}
		made, err := p.convert()
		if err != nil {
			r.note("%s was left out: %v", name, err)
			continue
		}
		space = append(space, made)
	}
	return space
}

func (p *optunaParameter) convert() (study.Parameter, error) {
	made := study.Parameter{Name: p.name}
	d, err := p.parse()
	if err != nil {
		return made, fmt.Errorf("distribution %q: %w", p.distribution, err)
	}
	a := d.Attributes
	switch d.Name {
	case "CategoricalDistribution":
		made.Type, made.Values = study.Categorical, a.Choices
		for _, choice := range a.Choices {
			switch choice.(type) {
			case string, bool, float64:
			default:
				return made, fmt.Errorf("the choice %v: want texts, numbers or booleans", choice)
			}
		}
		return made, nil
	case "FloatDistribution", "UniformDistribution", "LogUniformDistribution", "DiscreteUniformDistribution":
		made.Type = study.Float
	case "IntDistribution", "IntUniformDistribution", "IntLogUniformDistribution":
		made.Type = study.Int
	default:
		return made, fmt.Errorf("distribution %q is unknown", d.Name)
	}
	made.Min, made.Max, made.Step = new(a.Low), new(a.High), a.Step
	if a.Q != nil {
		made.Step = a.Q
	}
	if made.Type == study.Int && made.Step != nil && *made.Step == 1 {
		made.Step = nil
	}
	if a.Log || strings.Contains(d.Name, "Log") {
		made.Scale, made.Step = study.Log, nil
	}
	return made, nil
}
