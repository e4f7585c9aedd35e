// Package onserver binds a study of package fantasia to a server, which leads and keeps it: it holds
// trials by leases, and keeps what they have reported and found until the server has it.
package onserver

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/library"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
)

// Server is a server of Fantasia, as fantasia.Server describes it.
type Server interface {
	Call(ctx context.Context, method string, request []byte) ([]byte, error)
	CloseIdleConnections()
}

// The codes of refusals that this package knows.
const (
	codeInvalid      = "invalid_argument"
	codeExists       = "already_exists"
	codePrecondition = "failed_precondition"
	codeNotFound     = "not_found"
)

const (
	// openingPatience is how long Minimize waits for the server: its address may be wrong.
	openingPatience = 30 * time.Second
	// handBackPatience is how long a trial that was interrupted is handed back. After that,
	// its lease ends by itself.
	handBackPatience = 5 * time.Second
	// suggestWait is how long one call waits for a trial.
	suggestWait = 10 * time.Second
)

// Study is a study that a server leads and keeps.
type Study struct {
	Options
	spec     *study.Spec // of the definition with which it was opened
	space    *space.Space
	id       string // "studies/{id}"
	log      *slog.Logger
	progress *library.Announcer

	open       context.Context // until Close begins: trials can be had
	shut       context.CancelFunc
	life       context.Context // until Close ends: calls can be made
	cancel     context.CancelFunc
	background sync.WaitGroup
	// slots are the names under which this process may hold one trial each, of those that hold
	// none.
	slots chan string

	mu     sync.Mutex
	leases map[*library.Evaluation]*lease
	over   error // how the study has ended, as Run says it
	ended  bool
}

var _ library.Binding = (*Study)(nil)

// Options are what only a study on a server has.
type Options struct {
	Server Server
	// Code returns the code of the Connect protocol with which the server has refused a request; empty
	// if an error of Server.Call is not a refusal.
	Code func(error) string
	// Patience is how long a call waits for a server that does not answer.
	Patience time.Duration
	// Parallel is how many trials this process evaluates at once, at least 1.
	Parallel int
	// Models says that the optimiser recommends a point.
	Models bool
}

// Open creates a study on the server, or goes on with the one that it has. The error wraps
// study.ErrInvalid, library.ErrDifferent or library.ErrUnavailable, or is the server's.
func Open(set library.Settings, o Options) (*Study, error) {
	u := &Study{
		Options: o, spec: &set.Definition.Spec, space: set.Space, log: set.Log, progress: library.NewAnnouncer(set.Progress),
		leases: map[*library.Evaluation]*lease{},
	}
	u.life, u.cancel = context.WithCancel(context.Background())
	u.open, u.shut = context.WithCancel(u.life)
	if err := u.begin(set.Definition); err != nil {
		u.cancel()
		return nil, err
	}
	u.slots = make(chan string, o.Parallel)
	prefix := clientPrefix()
	for n := range o.Parallel {
		u.slots <- fmt.Sprintf("%s-%d", prefix, n+1)
	}
	return u, nil
}

// begin creates the study, or has the one that there is take over what may change.
func (s *Study) begin(definition *study.Study) error {
	ctx, cancel := context.WithTimeout(s.life, openingPatience)
	defer cancel()
	file, err := json.Marshal(definition)
	if err != nil {
		return fmt.Errorf("%w: the study cannot be written as JSON: %w", study.ErrInvalid, err)
	}
	var answer studyAnswer
	err = s.call(ctx, "CreateStudy", createStudyRequest{StudyFile: string(file)}, &answer)
	if s.refused(err, codeExists) {
		return s.resume(ctx, definition)
	}
	if s.refused(err, codeInvalid) {
		return fmt.Errorf("%w: %w", study.ErrInvalid, err)
	}
	s.id = "studies/" + answer.Study.ID
	return err
}

// resume goes on with a study that the server has.
func (s *Study) resume(ctx context.Context, definition *study.Study) error {
	var answer studyAnswer
	if err := s.call(ctx, "GetStudy", nameRequest{Name: "studies/" + definition.Metadata.Name}, &answer); err != nil {
		return err
	}
	s.id = "studies/" + answer.Study.ID
	var old, changed study.Study
	file := []byte(answer.Study.StudyFile)
	if err := errors.Join(json.Unmarshal(file, &old), json.Unmarshal(file, &changed)); err != nil {
		return fmt.Errorf("read the study file of %s: %w", definition.Metadata.Name, err)
	}
	if !old.Spec.ByClients() {
		return fmt.Errorf("%w: the server has a study %q with a command; want another Options.Name",
			library.ErrDifferent, definition.Metadata.Name)
	}
	mine, to := &definition.Spec, &changed.Spec // attributes and the like stay
	changed.Metadata.Labels, to.Note = library.Noted(definition, &old)
	to.Objective, to.Several, to.Goal, to.Limits = mine.Objective, mine.Several, mine.Goal, mine.Limits
	to.Parameters, to.Constraints, to.Initial = mine.Parameters, mine.Constraints, mine.Initial
	to.Algorithm.Name, to.Algorithm.Seed, to.Algorithm.Settings = mine.Algorithm.Name, mine.Algorithm.Seed, mine.Algorithm.Settings
	to.EarlyStopping, to.Budget = mine.EarlyStopping, mine.Budget
	if differences := study.Compatible(&old, &changed); len(differences) > 0 {
		return fmt.Errorf("%w: %s", library.ErrDifferent, strings.Join(differences, "; "))
	}
	if library.Equal(&old, &changed) {
		return nil
	}
	text, err := json.Marshal(&changed)
	if err != nil {
		return fmt.Errorf("%w: the study cannot be written as JSON: %w", study.ErrInvalid, err)
	}
	err = s.call(ctx, "UpdateStudy", updateStudyRequest{Name: s.id, StudyFile: string(text)}, nil)
	switch {
	case s.refused(err, codePrecondition):
		return fmt.Errorf("%w: %w", library.ErrDifferent, err)
	case s.refused(err, codeInvalid):
		return fmt.Errorf("%w: %w", study.ErrInvalid, err)
	}
	return err
}

// refused reports whether an error is a refusal with a code.
func (s *Study) refused(err error, code string) bool { return err != nil && s.Code(err) == code }

// call calls a method of the API, and decodes its answer.
func (s *Study) call(ctx context.Context, method string, request, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	raw, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("%w: encode the request of %s: %w", study.ErrInvalid, method, err)
	}
	if raw, err = s.Server.Call(ctx, method, raw); err != nil {
		if s.life.Err() != nil {
			return library.ErrClosed
		}
		return err
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(raw, answer); err != nil {
		return fmt.Errorf("read the answer of %s: %w", method, err)
	}
	return nil
}

// Outcome implements library.Binding.
func (s *Study) Outcome() (err error, ended bool) {
	if s.life.Err() != nil {
		return library.ErrClosed, true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over, s.ended
}

// GoOn implements library.Binding.
func (s *Study) GoOn(ctx context.Context) error {
	now, err := s.get(ctx)
	if err != nil || now.State != "STUDY_STATE_FAILED" {
		return nil //nolint:nilerr // Ask tells what is wrong with the server
	}
	switch err := s.call(ctx, "ResumeStudy", nameRequest{Name: s.id}, nil); {
	case s.refused(err, codePrecondition):
		return nil
	case err != nil:
		return err
	}
	s.locked(func() { s.over, s.ended = nil, false })
	s.log.Warn(library.WentOn, "study", s.id, "reason", now.Reason)
	return nil
}

// locked calls f with s.mu held.
func (s *Study) locked(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// Close implements library.Binding.
func (s *Study) Close() error {
	var held []*library.Evaluation
	s.locked(func() {
		s.shut()
		held = slices.Collect(maps.Keys(s.leases))
	})
	for _, t := range held {
		_ = s.Tell(t, library.Measured{}, library.ErrInterrupted) // if the server is away, the leases end by themselves
	}
	s.locked(s.cancel)
	s.background.Wait()
	s.Server.CloseIdleConnections()
	return nil
}

// clientPrefix returns what the names begin with under which this Study holds trials.
func clientPrefix() string {
	host, _ := os.Hostname() // an empty name does as well
	host = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, host)
	return fmt.Sprintf("%s-%d-%s", cmp.Or(host[:min(len(host), 40)], "host"), os.Getpid(), rand.Text()[:8])
}
