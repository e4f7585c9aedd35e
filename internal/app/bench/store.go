package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/gofrs/flock"
)

// ErrInUse means that another process is adding to a file of runs.
var ErrInUse = errors.New("another fantasia bench is writing to it")

// Store is a file of completed runs, one JSON object a line. It is safe for concurrent
// use.
type Store struct {
	mu   sync.Mutex
	file *os.File
	lock *flock.Flock
	runs map[string]*Run
	// Unreadable counts the lines that were skipped because they are not runs.
	Unreadable int
}

// OpenStore opens a file of runs, creating it if necessary, and locks it for this
// process until it is closed. It removes an incomplete last line, which a crash has
// left.
func OpenStore(path string) (*Store, error) {
	lock := flock.New(path, flock.SetFlag(os.O_RDWR|os.O_CREATE), flock.SetPermissions(0o644))
	locked, err := lock.TryLock()
	if err == nil && !locked {
		err = ErrInUse
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	s := &Store{lock: lock, runs: map[string]*Run{}}
	if s.file, err = os.OpenFile(path, os.O_RDWR, 0); err == nil {
		err = s.readRuns()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read the runs of %s: %w", path, err), s.Close())
	}
	return s, nil
}

// readRuns reads all complete lines, and leaves the file positioned after them.
func (s *Store) readRuns() error {
	reader, end := bufio.NewReader(s.file), int64(0)
	for {
		line, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		end += int64(len(line))
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		run := &Run{}
		if err := json.Unmarshal(line, run); err != nil || len(run.Result.Evaluations) == 0 {
			s.Unreadable++
			continue
		}
		key, err := run.Spec.Key()
		if err != nil {
			return err
		}
		s.runs[key] = run
	}
	if err := s.file.Truncate(end); err != nil {
		return err
	}
	_, err := s.file.Seek(end, io.SeekStart)
	return err
}

// Get returns the run of a spec, or nil.
func (s *Store) Get(spec *Spec) (*Run, error) {
	key, err := spec.Key()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs[key], nil
}

// Add appends a run to the file.
func (s *Store) Add(run *Run) error {
	key, err := run.Spec.Key()
	if err != nil {
		return err
	}
	line, err := json.Marshal(run)
	if err != nil {
		return fmt.Errorf("write a run: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write a run: %w", err)
	}
	s.runs[key] = run
	return nil
}

// Close closes the file.
func (s *Store) Close() error {
	var err error
	if s.file != nil {
		err = s.file.Close()
	}
	if err := errors.Join(err, s.lock.Close()); err != nil {
		return fmt.Errorf("close the file of runs: %w", err)
	}
	return nil
}
