package spool

import (
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

// Remembered is the least number of claims that Claims keeps; it drops the oldest
// once it has twice as many.
const Remembered = 100_000

// longestClaim is more bytes than the line of a claim has.
const longestClaim = 64 << 10

// Claims records which attempts a worker has claimed, so that an attempt that is
// offered again does not run again, even after the worker was killed. It writes without
// fsync: the page cache outlives the process, and a failed machine runs nothing. It is
// safe for concurrent use.
type Claims struct {
	path string
	keep int

	mu     sync.Mutex
	file   *os.File // nil if the file must be written anew before anything is added
	order  []string
	claims map[string]struct{}
}

// OpenClaims reads the claims at path, and creates it if necessary.
func OpenClaims(path string) (*Claims, error) {
	return openClaims(path, Remembered)
}

func openClaims(path string, keep int) (*Claims, error) {
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the journal of claims: %w", err)
	}
	c := &Claims{path: path, keep: keep, claims: map[string]struct{}{}}
	number := 0
	for line := range bytes.Lines(data) {
		if number++; len(line) > longestClaim {
			return nil, fmt.Errorf("%s:%d: a line of %d bytes is no claim of an attempt, which has at most %d: the file is damaged; if it is moved "+
				"away, an attempt that was claimed before may be evaluated again", path, number, len(line), longestClaim)
		}
		c.remember(strings.TrimRight(string(line), "\r\n"))
	}
	// Rewriting also completes a last line that a kill truncated.
	if err := c.rewrite(); err != nil {
		return nil, err
	}
	return c, nil
}

// remember adds a line unless it is already there.
func (c *Claims) remember(line string) bool {
	if _, ok := c.claims[line]; ok || line == "" {
		return false
	}
	c.claims[line] = struct{}{}
	c.order = append(c.order, line)
	return true
}

// rewrite replaces the file by one with the newest claims and opens it for appending.
func (c *Claims) rewrite() error {
	if n := len(c.order) - c.keep; n > 0 {
		for _, line := range c.order[:n] {
			delete(c.claims, line)
		}
		c.order = append([]string(nil), c.order[n:]...)
	}
	if err := c.Close(); err != nil { // then file is nil until all of this has succeeded
		return err
	}
	text := strings.Join(c.order, "\n")
	if text != "" {
		text += "\n"
	}
	if err := renameio.WriteFile(c.path, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write the journal of claims: %w", err)
	}
	file, err := os.OpenFile(c.path, os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open the journal of claims: %w", err)
	}
	c.file = file
	return nil
}

// Add records a claim. If it fails, the claim is recorded in memory, and on disk with the next
// one for which there is space.
func (c *Claims) Add(id messaging.AttemptID) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	line := lineOf(id)
	if !c.remember(line) {
		return nil
	}
	if len(c.order) >= 2*c.keep || c.file == nil {
		return c.rewrite()
	}
	if _, err := c.file.WriteString(line + "\n"); err != nil {
		// A full disk may have taken a part of the line, to which the next one must not be added.
		return errors.Join(fmt.Errorf("write the journal of claims: %w", err), c.Close())
	}
	return nil
}

// Has reports whether the attempt was claimed before.
func (c *Claims) Has(id messaging.AttemptID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.claims[lineOf(id)]
	return ok
}

// Close closes the file; Add must not be called afterwards.
func (c *Claims) Close() error {
	if c.file == nil {
		return nil
	}
	err := c.file.Close()
	c.file = nil
	return err
}

func lineOf(id messaging.AttemptID) string {
	return fmt.Sprintf("%s %d %d %s", id.Study, id.Trial, id.Attempt, id.Nonce)
}
