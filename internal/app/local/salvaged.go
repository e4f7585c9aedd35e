package local

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/journal"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/internal/base/each"
	"github.com/fantasia-hpo/fantasia/internal/base/lifecycle"
	"github.com/fantasia-hpo/fantasia/internal/show/display"
)

// isFile reports whether a state is a file, and not a directory.
func isFile(state string) bool {
	info, err := os.Stat(state)
	return err == nil && !info.IsDir()
}

// salvageFile reads what the file of a program still holds.
func salvageFile(path string) (*journal.Salvaged, error) {
	content, err := journal.Content(path)
	if errors.Is(err, journal.ErrInUse) {
		return nil, fmt.Errorf("%w: %w; its program must end first", ErrInUse, err)
	}
	if err != nil {
		return nil, err
	}
	s := journal.Salvage(content)
	if s == nil {
		return nil, fmt.Errorf("read %s: %w", path, ErrNoState)
	}
	return s, nil
}

// checkFile is CheckState of a program's file.
func checkFile(path string) (c ledger.Contents, err error) {
	s, err := salvageFile(path)
	if err != nil {
		return c, err
	}
	c = ledger.Contents{Studies: 1, Trials: len(s.Stored.Trials)}
	problems := each.Of(s.Problems, func(p string) error { return fmt.Errorf("%s is damaged: %s", path, p) })
	for _, what := range s.Lost {
		problems = append(problems, errors.New("lost: "+what))
	}
	if len(problems) > 0 {
		return c, &Damaged{State: path, Cause: errors.Join(problems...), Program: true}
	}
	_, err = (&inJournal{path, s.Stored}).result()
	return c, err
}

// repairFile is Repair of a program's file.
func repairFile(path, into string) (*Repaired, error) {
	s, err := salvageFile(path)
	if err != nil {
		return nil, err
	}
	r := &Repaired{Lost: s.Lost}
	for _, p := range s.Problems {
		r.Problems = append(r.Problems, fmt.Errorf("%s is damaged: %s", path, p))
	}
	from := &inJournal{path, s.Stored}
	if s.Stored.Study.ID != "" {
		_, err = from.result()
		if err == nil {
			r.File = into
			return r, s.Stored.Write(into)
		}
		r.Lost = append(r.Lost, fmt.Sprintf("how its records belong together: %v", errors.Unwrap(err)))
	}
	r.Table = into
	return r, writeTable(into, s.Stored.Trials, s.Stored.Study.Definition.Spec.Objectives())
}

// ConnectDamaged connects to what can be read of a damaged state. lost says, a line each, what is missing. It fails
// as Connect does.
func ConnectDamaged(state string) (c *Connection, lost []string, err error) {
	if isFile(state) {
		s, err := salvageFile(state)
		if err != nil {
			return nil, nil, err
		}
		c, err = connectTo(&salvaged{state, []*inJournal{{state, s.Stored}}})
		return c, s.Lost, err
	}
	var stack lifecycle.Stack
	defer func() { err = errors.Join(err, stack.Close(closeTimeout)) }()
	if err := Lock(state, &stack); err != nil {
		return nil, nil, err
	}
	s, _ := salvageState(state)
	from := &salvaged{path: state}
	for _, p := range append(s.Whole, s.Parts...) {
		stored := &journal.Stored{Study: p.Study, Status: p.Status, Trials: p.Trials}
		for _, n := range stored.Fill() {
			s.Lost = append(s.Lost, fmt.Sprintf("trial %d of study %s", n, p.Study.Definition.Metadata.Name))
		}
		from.all = append(from.all, &inJournal{state, stored})
	}
	c, err = connectTo(from)
	return c, s.Lost, err
}

// salvaged is what can be read of a damaged state.
type salvaged struct {
	path string
	all  []*inJournal // a study each
}

var _ source = (*salvaged)(nil)

// of returns the study with an id, which studies has returned.
func (s *salvaged) of(id string) *inJournal {
	for _, j := range s.all {
		if j.stored.Study.ID == id {
			return j
		}
	}
	return s.all[0]
}

func (s *salvaged) place() string { return s.path }

func (s *salvaged) studies(ctx context.Context) (all []ledger.Summary, err error) {
	for _, j := range s.all {
		one, err := j.studies(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, one...)
	}
	return all, nil
}

func (s *salvaged) read(_ context.Context, id string) (*display.Result, error) {
	return s.of(id).result()
}

func (s *salvaged) trial(ctx context.Context, id string, number int) (record.Trial, error) {
	return s.of(id).trial(ctx, id, number)
}

func (s *salvaged) curve(ctx context.Context, id string, number int) (*curve.Curve, error) {
	return s.of(id).curve(ctx, id, number)
}

func (s *salvaged) dirOf(a *record.Attempt) (string, error) { return (&inJournal{}).dirOf(a) }

func (s *salvaged) damaged(err error) error { return fmt.Errorf("%s: %w", s.path, err) }
