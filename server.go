package fantasia

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

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space"
)

// Server is a server of Fantasia for Options.Server. Package remote has the one for programs;
// others are for tests. Its methods are called concurrently.
type Server interface {
	// Call calls a method of the API's StudyService, such as "GetStudy", with a request as
	// JSON, and returns the answer as JSON. It repeats the call while the server does not
	// answer, has no leader, or is busy, until ctx ends: the error wraps ErrUnavailable then.
	// Calling the methods that this package uses twice does no more than calling them once.
	// What the server refuses is a *ServerError.
	Call(ctx context.Context, method string, request []byte) ([]byte, error)
	// CloseIdleConnections closes the connections that no call uses.
	CloseIdleConnections()
}

// ServerError is what a server says when it refuses a request.
type ServerError struct {
	// Code is a code of the Connect protocol, such as "permission_denied".
	Code string
	// Message says why, for people.
	Message string
}

// Error returns the message with the code.
func (e *ServerError) Error() string { return fmt.Sprintf("%s (%s)", e.Message, e.Code) }

// The codes of refusals that this package knows.
const (
	codeInvalid      = "invalid_argument"
	codeExists       = "already_exists"
	codePrecondition = "failed_precondition"
	codeNotFound     = "not_found"
)

// refused reports whether an error is a refusal with a code.
func refused(err error, code string) bool {
	e, ok := errors.AsType[*ServerError](err)
	return ok && e.Code == code
}

const (
	// openingPatience is how long Minimize waits for the server: its address may be wrong.
	openingPatience = 30 * time.Second
	// handBackPatience is how long a trial that was interrupted is handed back. After that,
	// its lease ends by itself.
	handBackPatience = 5 * time.Second
	// suggestWait is how long one call waits for a trial.
	suggestWait = 10 * time.Second
)

// onServer leads a study that a server keeps.
type onServer struct {
	space    *Space
	aims     *aims
	reported string // the metric that Trial.Report tells
	compiled *space.Space
	seed     uint64
	server   Server
	patience time.Duration
	id       string // "studies/{id}"
	log      *slog.Logger
	progress announcer
	// models reports whether the optimiser recommends a point.
	models bool

	open       context.Context // until close begins: trials can be had
	shut       context.CancelFunc
	life       context.Context // until close ends: calls can be made
	cancel     context.CancelFunc
	background sync.WaitGroup
	// slots are the names under which this process may hold one trial each, of those that hold
	// none.
	slots chan string

	mu    sync.Mutex
	held  map[*Trial]*lease
	over  error // how the study has ended, as Run says it
	ended bool
}

var _ leader = (*onServer)(nil)

// openOnServer creates a study on the server, or goes on with the one that it has.
func openOnServer(s *Space, o *Options, a *aims, definition *study.Study, compiled *space.Space) (*onServer, error) {
	u := &onServer{
		space: s, aims: a, reported: a.reported(o), compiled: compiled, seed: o.Seed, server: o.Server, patience: cmp.Or(o.Patience, defaultPatience), log: o.logger(),
		progress: announcer{call: o.Progress}, models: recommends(o), held: map[*Trial]*lease{},
	}
	u.life, u.cancel = context.WithCancel(context.Background())
	u.open, u.shut = context.WithCancel(u.life)
	if err := u.begin(definition); err != nil {
		u.cancel()
		return nil, err
	}
	parallel := max(1, o.Parallel)
	u.slots = make(chan string, parallel)
	prefix := clientPrefix()
	for n := range parallel {
		u.slots <- fmt.Sprintf("%s-%d", prefix, n+1)
	}
	return u, nil
}

// begin creates the study, or has the one that there is take over what may change.
func (s *onServer) begin(definition *study.Study) error {
	ctx, cancel := context.WithTimeout(s.life, openingPatience)
	defer cancel()
	file, err := json.Marshal(definition)
	if err != nil {
		return fmt.Errorf("%w: the study cannot be written as JSON: %w", ErrInvalid, err)
	}
	var answer studyAnswer
	err = s.call(ctx, "CreateStudy", map[string]any{"studyFile": string(file)}, &answer)
	if refused(err, codeExists) {
		return s.resume(ctx, definition)
	}
	if refused(err, codeInvalid) {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	s.id = "studies/" + answer.Study.ID
	return err
}

// resume goes on with a study that the server has.
func (s *onServer) resume(ctx context.Context, definition *study.Study) error {
	var answer studyAnswer
	if err := s.call(ctx, "GetStudy", map[string]any{"name": "studies/" + definition.Metadata.Name}, &answer); err != nil {
		return err
	}
	s.id = "studies/" + answer.Study.ID
	var old, changed study.Study
	if err := errors.Join(json.Unmarshal([]byte(answer.Study.StudyFile), &old), json.Unmarshal([]byte(answer.Study.StudyFile), &changed)); err != nil {
		return fmt.Errorf("read the study file of %s: %w", definition.Metadata.Name, err)
	}
	if !old.Spec.ByClients() {
		return fmt.Errorf("%w: the server has a study %q with a command; want another Options.Name", ErrDifferent, definition.Metadata.Name)
	}
	mine, to := &definition.Spec, &changed.Spec // attributes and the like stay
	changed.Metadata.Labels, to.Note = noted(definition, &old)
	to.Objective, to.Several, to.Goal, to.Limits = mine.Objective, mine.Several, mine.Goal, mine.Limits
	to.Parameters, to.Constraints, to.Initial = mine.Parameters, mine.Constraints, mine.Initial
	to.Algorithm.Name, to.Algorithm.Seed, to.Algorithm.Settings = mine.Algorithm.Name, mine.Algorithm.Seed, mine.Algorithm.Settings
	to.EarlyStopping, to.Budget = mine.EarlyStopping, mine.Budget
	if differences := study.Compatible(&old, &changed); len(differences) > 0 {
		return fmt.Errorf("%w: %s", ErrDifferent, strings.Join(differences, "; "))
	}
	if equal(&old, &changed) {
		return nil
	}
	file, err := json.Marshal(&changed)
	if err != nil {
		return fmt.Errorf("%w: the study cannot be written as JSON: %w", ErrInvalid, err)
	}
	err = s.call(ctx, "UpdateStudy", map[string]any{"name": s.id, "studyFile": string(file)}, nil)
	switch {
	case refused(err, codePrecondition):
		return fmt.Errorf("%w: %w", ErrDifferent, err)
	case refused(err, codeInvalid):
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return err
}

// noted returns the labels and the note of a study that is opened again: those that the program
// gives, or else those that the study has.
func noted(given, has *study.Study) (labels map[string]string, note string) {
	if labels = given.Metadata.Labels; labels == nil {
		labels = has.Metadata.Labels
	}
	return labels, cmp.Or(given.Spec.Note, has.Spec.Note)
}

// call calls a method of the API, and decodes its answer.
func (s *onServer) call(ctx context.Context, method string, request map[string]any, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	raw, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("%w: encode the request of %s: %w", ErrInvalid, method, err)
	}
	if raw, err = s.server.Call(ctx, method, raw); err != nil {
		if s.life.Err() != nil {
			return ErrClosed
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

// outcome implements leader.
func (s *onServer) outcome() (err error, ended bool) {
	if s.life.Err() != nil {
		return ErrClosed, true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over, s.ended
}

// close implements leader.
func (s *onServer) close() error {
	s.mu.Lock()
	s.shut()
	held := slices.Collect(maps.Keys(s.held))
	s.mu.Unlock()
	for _, t := range held {
		_ = s.tell(t, measured{}, ErrInterrupted) // if the server is away, the leases end by themselves
	}
	s.mu.Lock()
	s.cancel()
	s.mu.Unlock()
	s.background.Wait()
	s.server.CloseIdleConnections()
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
