package spool

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"

	"github.com/google/renameio/v2"

	"github.com/fantasia-hpo/fantasia/messaging"
)

// Remembered is the least number of claims that a Journal keeps; it drops the oldest
// once it has twice as many.
const Remembered = 100_000

// Journal records which attempts a worker has claimed, so that an attempt that is
// offered again does not run again, even after the worker was killed. It writes without
// fsync: the page cache outlives the process, and a failed machine runs nothing. It is
// safe for concurrent use.
type Journal struct {
	path string
	keep int

	mu     sync.Mutex
	file   *os.File // nil if the file must be written anew before anything is added
	order  []string
	claims map[string]struct{}
}

// OpenJournal opens the journal at path, and creates it if necessary.
func OpenJournal(path string) (*Journal, error) {
	return openJournal(path, Remembered)
}

func openJournal(path string, keep int) (*Journal, error) {
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the journal of claims: %w", err)
	}
	j := &Journal{path: path, keep: keep, claims: map[string]struct{}{}}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		j.remember(lines.Text())
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the journal of claims: %w", err)
	}
	// Rewriting also completes a last line that a kill truncated.
	if err := j.rewrite(); err != nil {
		return nil, err
	}
	return j, nil
}

// remember adds a line unless it is already there.
func (j *Journal) remember(line string) bool {
	if _, ok := j.claims[line]; ok || line == "" {
		return false
	}
	j.claims[line] = struct{}{}
	j.order = append(j.order, line)
	return true
}

// rewrite replaces the file by one with the newest claims and opens it for appending.
func (j *Journal) rewrite() error {
	if n := len(j.order) - j.keep; n > 0 {
		for _, line := range j.order[:n] {
			delete(j.claims, line)
		}
		j.order = append([]string(nil), j.order[n:]...)
	}
	if err := j.Close(); err != nil { // then file is nil until all of this has succeeded
		return err
	}
	text := strings.Join(j.order, "\n")
	if text != "" {
		text += "\n"
	}
	if err := renameio.WriteFile(j.path, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write the journal of claims: %w", err)
	}
	file, err := os.OpenFile(j.path, os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open the journal of claims: %w", err)
	}
	j.file = file
	return nil
}

// Add records a claim. If it fails, the claim is recorded in memory, and on disk with the next
// one for which there is room.
func (j *Journal) Add(id messaging.AttemptID) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	line := lineOf(id)
	if !j.remember(line) {
		return nil
	}
	if len(j.order) >= 2*j.keep || j.file == nil {
		return j.rewrite()
	}
	if _, err := j.file.WriteString(line + "\n"); err != nil {
		// A full disk may have taken a part of the line, to which the next one must not be added.
		return errors.Join(fmt.Errorf("write the journal of claims: %w", err), j.Close())
	}
	return nil
}

// Has reports whether the attempt was claimed before.
func (j *Journal) Has(id messaging.AttemptID) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, ok := j.claims[lineOf(id)]
	return ok
}

// Close closes the file; Add must not be called afterwards.
func (j *Journal) Close() error {
	if j.file == nil {
		return nil
	}
	err := j.file.Close()
	j.file = nil
	return err
}

func lineOf(id messaging.AttemptID) string {
	return fmt.Sprintf("%s %d %d %s", id.Study, id.Trial, id.Attempt, id.Nonce)
}
