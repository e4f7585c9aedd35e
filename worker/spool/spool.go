// Package spool is what a worker remembers on its disk: results that wait for
// the leader's receipt, and which attempts it has claimed.
package spool

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/google/renameio/v2"

	"github.com/fantasia-hpo/fantasia/messaging"
)

const (
	suffix = ".json"
	// unreadable is the folder for files that are no results.
	unreadable = "unreadable"
)

// Spool keeps each result in a file of its own until the leader's receipt for
// it. It is safe for concurrent use by one process; two must not share a folder.
type Spool struct {
	dir string

	mu      sync.Mutex
	results map[string]*messaging.Result // by file name
}

// file is a result on disk: its trace context is no part of its JSON.
type file struct {
	Result      *messaging.Result `json:"result"`
	Traceparent string            `json:"traceparent,omitempty"`
	Tracestate  string            `json:"tracestate,omitempty"`
}

// Open reads the spool in dir, which is made if need be. Files that cannot be
// read are moved to a folder beside the others and named in the second value.
func Open(dir string) (*Spool, []string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("make the spool: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("read the spool: %w", err)
	}
	s := &Spool{dir: dir, results: map[string]*messaging.Result{}}
	var bad []string
	for _, e := range entries {
		if e.IsDir() || !strings.HasSuffix(e.Name(), suffix) {
			continue
		}
		r, err := s.read(e.Name())
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

func (s *Spool) read(name string) (*messaging.Result, error) {
	data, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		return nil, err
	}
	var f file
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, err
	}
	if f.Result == nil || nameOf(f.Result.AttemptID) != name {
		return nil, errors.New("not the result that its name says")
	}
	f.Result.TraceContext = messaging.TraceContext{Traceparent: f.Traceparent, Tracestate: f.Tracestate}
	return f.Result, nil
}

func (s *Spool) setAside(name string) error {
	aside := filepath.Join(s.dir, unreadable)
	if err := os.MkdirAll(aside, 0o700); err != nil {
		return fmt.Errorf("set an unreadable result aside: %w", err)
	}
	if err := os.Rename(filepath.Join(s.dir, name), filepath.Join(aside, name)); err != nil {
		return fmt.Errorf("set an unreadable result aside: %w", err)
	}
	return nil
}

// Put keeps a result. It is on disk when Put returns nil; where writing failed,
// the result is kept in memory all the same. The result must not be changed
// afterwards.
func (s *Spool) Put(r *messaging.Result) error {
	name := nameOf(r.AttemptID)
	s.mu.Lock()
	s.results[name] = r
	s.mu.Unlock()
	data, err := json.Marshal(file{Result: r, Traceparent: r.Traceparent, Tracestate: r.Tracestate})
	if err != nil {
		return fmt.Errorf("spool a result: %w", err)
	}
	if err := renameio.WriteFile(filepath.Join(s.dir, name), data, 0o600, renameio.WithTempDir(s.dir)); err != nil {
		return fmt.Errorf("spool a result: %w", err)
	}
	return nil
}

// Remove forgets a result and reports whether it was there. A receipt for a
// message that the leader could not read has no nonce: it is for every result
// of that study, trial and attempt.
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
	found := false
	for _, name := range names {
		if _, ok := s.results[name]; ok {
			found = true
			delete(s.results, name)
		}
	}
	s.mu.Unlock()
	var errs []error
	for _, name := range names {
		if err := os.Remove(filepath.Join(s.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove a spooled result: %w", err))
		}
	}
	return found, errors.Join(errs...)
}

// Has reports whether the attempt's result waits here.
func (s *Spool) Has(id messaging.AttemptID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.results[nameOf(id)]
	return ok
}

// Len is the number of results that wait.
func (s *Spool) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.results)
}

// Results returns the results that wait, the oldest end first.
func (s *Spool) Results() []*messaging.Result {
	s.mu.Lock()
	results := make([]*messaging.Result, 0, len(s.results))
	for _, r := range s.results {
		results = append(results, r)
	}
	s.mu.Unlock()
	slices.SortFunc(results, func(a, b *messaging.Result) int {
		return cmp.Or(a.Ended.Compare(b.Ended), cmp.Compare(nameOf(a.AttemptID), nameOf(b.AttemptID)))
	})
	return results
}

// maxName keeps names of files below the 255 bytes that file systems allow, with
// room for the suffixes of temporary files.
const maxName = 200

// nameOf is the name of an attempt's file. Ids of attempts are letters, digits,
// dashes and underscores (see messaging.ValidToken), so they are plain names.
func nameOf(id messaging.AttemptID) string {
	name := fmt.Sprintf("%s.%d.%d.%s", id.Study, id.Trial, id.Attempt, id.Nonce)
	if len(name) > maxName {
		sum := sha256.Sum256([]byte(name))
		name = hex.EncodeToString(sum[:])
	}
	return name + suffix
}
