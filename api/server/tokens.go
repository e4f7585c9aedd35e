package server

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// Grant says what the bearer of a token may do.
type Grant struct {
	// Name is the token's name, for logs.
	Name string
	// Write allows the bearer to create, change, stop and delete studies.
	Write bool
	// Prefixes limit the grant to studies whose names begin with one of them. An empty
	// list means no limit.
	Prefixes []string
}

// Covers reports whether the grant covers the study with a name.
func (g Grant) Covers(study string) bool {
	return len(g.Prefixes) == 0 || slices.ContainsFunc(g.Prefixes, func(p string) bool { return strings.HasPrefix(study, p) })
}

// hash is the SHA-256 hash of a token.
type hash [sha256.Size]byte

// Tokens holds the grants in a file, and reads the file again when it changes. A line is
//
//	NAME HASH read|write [PREFIX,PREFIX…]
//
// HASH is the token's SHA-256 hash in hexadecimal digits. PREFIX limits the token to
// studies whose names begin with it. Empty lines and lines that begin with # are
// ignored. Safe for concurrent use.
type Tokens struct {
	file string
	log  *slog.Logger

	mu     sync.Mutex
	grants map[hash]Grant
	time   time.Time // of the file that was read
	size   int64
}

// ReadTokens reads a file of tokens; its error names the line.
func ReadTokens(file string, log *slog.Logger) (*Tokens, error) {
	t := &Tokens{file: file, log: log}
	if _, err := t.refresh(); err != nil {
		return nil, err
	}
	return t, nil
}

// Grant returns the grant of a token; false if the token is unknown.
func (t *Tokens) Grant(token string) (Grant, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if changed, err := t.refresh(); err != nil {
		if changed {
			t.log.Error("could not read the changed token file; the previous tokens stay in force", telemetry.LogError, err)
		}
	}
	g, ok := t.grants[sha256.Sum256([]byte(token))]
	return g, ok
}

// refresh reads the file if it has changed since it was last read.
func (t *Tokens) refresh() (changed bool, err error) {
	info, err := os.Stat(t.file)
	if err != nil {
		return false, err
	}
	if info.ModTime().Equal(t.time) && info.Size() == t.size {
		return false, nil
	}
	t.time, t.size = info.ModTime(), info.Size()
	grants, err := parseTokens(t.file)
	if err == nil {
		t.grants = grants
	}
	return true, err
}

func parseTokens(file string) (grants map[hash]Grant, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	grants = map[hash]Grant{}
	lines := bufio.NewScanner(f)
	for number := 1; lines.Scan(); number++ {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		h, g, err := parseToken(fields)
		if err == nil {
			if other, ok := grants[h]; ok {
				err = fmt.Errorf("%s has the same token as %s", g.Name, other.Name)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, number, err)
		}
		grants[h] = g
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return grants, nil
}

func parseToken(fields []string) (h hash, g Grant, err error) {
	if len(fields) < 3 || len(fields) > 4 {
		return h, g, fmt.Errorf("got %d words; want NAME HASH read|write [PREFIX,PREFIX…]", len(fields))
	}
	g.Name = fields[0]
	if !messaging.ValidToken(g.Name) {
		return h, g, fmt.Errorf("name %q: must be 1 to %d of A-Z a-z 0-9 - _", g.Name, messaging.MaxToken)
	}
	if n, err := hex.Decode(h[:], []byte(fields[1][:min(len(fields[1]), 2*len(h))])); err != nil || n != len(h) || len(fields[1]) != 2*len(h) {
		return h, g, fmt.Errorf("hash of %s: must be %d hexadecimal digits, of the token's SHA-256", g.Name, 2*len(h))
	}
	switch fields[2] {
	case "read":
	case "write":
		g.Write = true
	default:
		return h, g, fmt.Errorf("role %q of %s: must be read or write", fields[2], g.Name)
	}
	if len(fields) == 4 {
		g.Prefixes = strings.Split(fields[3], ",")
		if slices.Contains(g.Prefixes, "") {
			return h, g, fmt.Errorf("prefixes %q of %s: one is empty", fields[3], g.Name)
		}
	}
	return h, g, nil
}
