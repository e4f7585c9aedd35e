// Package spool stores a worker's state on disk: results without a receipt from the
// leader, and the attempts that it has claimed.
package spool

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/renameio/v2"

	"github.com/fantasia-hpo/fantasia/internal/base/durable"
	"github.com/fantasia-hpo/fantasia/internal/base/failpoint"
	"github.com/fantasia-hpo/fantasia/messaging"
)

const (
	suffix = ".json"
	// unfinished begins the names of files that renameio has not renamed yet: a process
	// that was killed leaves one.
	unfinished = "."
	// probeBytes is what Check writes: more than most results take.
	probeBytes = 16 << 10
	// proofLasts is how long a successful probe counts. Programs can end many times a second,
	// and most run for longer than this, during which the disk may fill up as well.
	proofLasts = 5 * time.Second
	// unreadable is the directory for files that are not results.
	unreadable = "unreadable"
)

// Spool keeps each result in its own file until the leader's receipt. It is safe for
// concurrent use by one process; processes must not share a directory.
type Spool struct {
	dir string

	mu      sync.Mutex
	results map[string]*messaging.Result // by file name
	proven  time.Time                    // of the last probe that succeeded; zero after a failed write
}

// file is a result on disk, with its trace context, which the result's JSON does not
// contain.
type file struct {
	Result      *messaging.Result `json:"result"`
	Traceparent string            `json:"traceparent,omitempty"`
	Tracestate  string            `json:"tracestate,omitempty"`
}

// Open reads the spool in dir and creates it if necessary. It moves unreadable files to
// a subdirectory and names them in the second result.
func Open(dir string) (*Spool, []string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("create the spool: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("read the spool: %w", err)
	}
	s := &Spool{dir: dir, results: map[string]*messaging.Result{}}
	var bad []string
	for _, e := range entries {
		if !e.IsDir() && strings.HasPrefix(e.Name(), unfinished) {
			_ = os.Remove(filepath.Join(dir, e.Name())) // it only takes up space
			continue
		}
		if e.IsDir() || !strings.HasSuffix(e.Name(), suffix) {
			continue
		}
		r, err := s.readResult(e.Name())
		if err == nil {
			s.results[e.Name()] = r
			continue
		}
		bad = append(bad, fmt.Sprintf("%s: %v", e.Name(), err))
		if err := s.setAside(e.Name()); err != nil {
			return nil, nil, err
		}
	}
	return s, bad, nil
}

func (s *Spool) readResult(name string) (*messaging.Result, error) {
	data, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		return nil, err
	}
	var f file
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, err
	}
	if f.Result == nil || nameOf(f.Result.AttemptID) != name {
		return nil, errors.New("the result does not match the file's name")
	}
	f.Result.TraceContext = messaging.TraceContext{Traceparent: f.Traceparent, Tracestate: f.Tracestate}
	return f.Result, nil
}

func (s *Spool) setAside(name string) error {
	aside := filepath.Join(s.dir, unreadable)
	err := os.MkdirAll(aside, 0o700)
	if err == nil {
		err = os.Rename(filepath.Join(s.dir, name), filepath.Join(aside, name))
	}
	if err != nil {
		return fmt.Errorf("move an unreadable result: %w", err)
	}
	return nil
}

// Put stores a result. The result is on disk when Put returns nil; if writing failed,
// it is still kept in memory. The caller must not change the result afterwards.
func (s *Spool) Put(r *messaging.Result) error {
	name := nameOf(r.AttemptID)
	s.mu.Lock()
	s.results[name] = r
	s.mu.Unlock()
	data, err := json.Marshal(file{Result: r, Traceparent: r.Traceparent, Tracestate: r.Tracestate})
	if err != nil {
		return fmt.Errorf("spool a result: %w", err)
	}
	if err := s.write(name, data); err != nil {
		s.prove(time.Time{})
		return fmt.Errorf("spool a result: %w", err)
	}
	return nil
}

// write writes a file, which has its name only when it is complete and on disk.
func (s *Spool) write(name string, data []byte) error {
	if err := failpoint.Fail(failpoint.SpoolWrite); err != nil {
		return err
	}
	path := filepath.Join(s.dir, name)
	f, err := renameio.NewPendingFile(path, renameio.WithTempDir(s.dir), renameio.WithPermissions(0o600))
	if err != nil {
		return err
	}
	defer func() { _ = f.Cleanup() }() // it does nothing once the file has its name
	if _, err := f.Write(data); err != nil {
		return err
	}
	failpoint.Reach(failpoint.WorkerSpooling)
	return durable.Replace(f, path)
}

// Check returns why results cannot be written, such as a full disk; nil if they can. It
// tries to write, unless a try succeeded in the last 5 seconds and no result has failed to be
// written since.
func (s *Spool) Check() error {
	s.mu.Lock()
	proven := !s.proven.IsZero() && time.Since(s.proven) < proofLasts
	s.mu.Unlock()
	if proven {
		return nil
	}
	if err := s.probe(); err != nil {
		return fmt.Errorf("write to the spool: %w", err)
	}
	s.prove(time.Now())
	return nil
}

// prove records when a probe succeeded, or that results can no longer be written.
func (s *Spool) prove(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proven = at
}

// probe writes a file as large as most results.
func (s *Spool) probe() error {
	probe := filepath.Join(s.dir, "probe")
	if err := failpoint.Fail(failpoint.SpoolProbe); err != nil {
		return err
	}
	err := os.WriteFile(probe, make([]byte, probeBytes), 0o600)
	_ = os.Remove(probe) // it does not exist, or another slot has removed it
	return err
}

// Remove deletes a result and reports whether it existed. A receipt for a message that
// the leader could not read has no nonce and applies to every result of that study,
// trial and attempt.
func (s *Spool) Remove(id messaging.AttemptID) (bool, error) {
	names := []string{nameOf(id)}
	s.mu.Lock()
	if id.Nonce == "" {
		names = names[:0]
		for name, r := range s.results {
			if r.Study == id.Study && r.Trial == id.Trial && r.Attempt == id.Attempt {
				names = append(names, name)
			}
		}
	}
	before := len(s.results)
	for _, name := range names {
		delete(s.results, name)
	}
	found := len(s.results) < before
	s.mu.Unlock()
	var errs []error
	for _, name := range names {
		if err := os.Remove(filepath.Join(s.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove a spooled result: %w", err))
		}
	}
	return found, errors.Join(errs...)
}

// Has reports whether the attempt's result is stored.
func (s *Spool) Has(id messaging.AttemptID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.results[nameOf(id)]
	return ok
}

// Len returns the number of stored results.
func (s *Spool) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.results)
}

// Results returns the stored results, oldest end first.
func (s *Spool) Results() []*messaging.Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.results), func(a, b *messaging.Result) int {
		return cmp.Or(a.Ended.Compare(b.Ended), cmp.Compare(nameOf(a.AttemptID), nameOf(b.AttemptID)))
	})
}

// maxName limits file names to below the 255 bytes of file systems, with room for
// suffixes of temporary files.
const maxName = 200

// nameOf returns the name of an attempt's file. Parts of attempt ids are letters,
// digits, dashes and underscores (see messaging.ValidToken), so they are safe in file
// names.
func nameOf(id messaging.AttemptID) string {
	name := fmt.Sprintf("%s.%d.%d.%s", id.Study, id.Trial, id.Attempt, id.Nonce)
	if len(name) > maxName {
		sum := sha256.Sum256([]byte(name))
		name = hex.EncodeToString(sum[:])
	}
	return name + suffix
}
