package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"

	"github.com/fantasia-hpo/fantasia/coordinator/quota"
	"github.com/fantasia-hpo/fantasia/messaging"
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
	// WritePrefixes limit Write further, to studies whose names begin with one of them. An
	// empty list means all that the grant covers.
	WritePrefixes []string
	// Shares has the quotas of each of the grant's lines. Its limits are only those that the line names.
	Shares []quota.Share
	// Expires is when the grant ends, and with it the streams of its bearer. The zero time
	// is never.
	Expires time.Time
}

// Issued reports whether a token has the form of those that issuers sign (JWS, RFC 7515).
func Issued(token string) bool { return strings.Count(token, ".") == 2 }

// Bearers knows what the bearers of tokens may do. It is safe for concurrent use.
type Bearers interface {
	// Grant returns the grant of a token, or the *connect.Error with which to refuse its
	// bearer: connect.CodeUnauthenticated, CodePermissionDenied or CodeUnavailable, and
	// CodeCanceled if ctx has ended.
	Grant(ctx context.Context, token string) (Grant, error)
}

// Covers reports whether the grant covers the study with a name.
func (g Grant) Covers(study string) bool { return begins(study, g.Prefixes) }

// Changes reports whether the grant allows to create, change, stop and delete the study
// with a name.
func (g Grant) Changes(study string) bool {
	return g.Write && g.Covers(study) && begins(study, g.WritePrefixes)
}

// begins reports whether a name begins with one of the prefixes, or there are none.
func begins(name string, prefixes []string) bool {
	return len(prefixes) == 0 || slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// hash is the SHA-256 hash of a token.
type hash [sha256.Size]byte

// Tokens holds the grants in a file, and reads the file again when it changes. A line is
//
//	NAME HASH read|write [PREFIX,PREFIX…] [QUOTA=BOUND…]
//
// HASH is the token's SHA-256 hash in hexadecimal digits. PREFIX limits the token to
// studies whose names begin with it. QUOTA is the name of a quota (package quota). Empty lines and
// lines that begin with # are ignored. Safe for concurrent use.
type Tokens struct{ file *watched[map[hash]Grant] }

var _ Bearers = (*Tokens)(nil)

// ReadTokens reads a file of tokens; its error names the line.
func ReadTokens(file string, log *slog.Logger) (*Tokens, error) {
	w, err := watch(file, "the previous tokens stay in force", parseTokens, log)
	if err != nil {
		return nil, err
	}
	return &Tokens{w}, nil
}

// Grant implements Bearers. An unknown token is connect.CodeUnauthenticated.
func (t *Tokens) Grant(_ context.Context, token string) (Grant, error) {
	g, ok := t.file.get()[sha256.Sum256([]byte(token))]
	if !ok {
		return Grant{}, connect.NewError(connect.CodeUnauthenticated, errors.New("unknown token"))
	}
	return g, nil
}

func parseTokens(file string) (map[hash]Grant, error) {
	grants := map[hash]Grant{}
	return grants, eachLine(file, func(line string) error {
		h, g, err := parseToken(strings.Fields(line))
		if err != nil {
			return err
		}
		if other, ok := grants[h]; ok {
			return fmt.Errorf("%s has the same token as %s", g.Name, other.Name)
		}
		grants[h] = g
		return nil
	})
}

func parseToken(fields []string) (h hash, g Grant, err error) {
	if words, _ := cutQuotas(fields); len(words) < 3 || len(words) > 4 {
		return h, g, fmt.Errorf("got %d words; want NAME HASH read|write [PREFIX,PREFIX…] [QUOTA=BOUND…]", len(words))
	}
	g.Name = fields[0]
	if !messaging.ValidToken(g.Name) {
		return h, g, fmt.Errorf("name %q: must be 1 to %d of A-Z a-z 0-9 - _", g.Name, messaging.MaxToken)
	}
	if n, err := hex.Decode(h[:], []byte(fields[1][:min(len(fields[1]), 2*len(h))])); err != nil || n != len(h) || len(fields[1]) != 2*len(h) {
		return h, g, fmt.Errorf("hash of %s: must be %d hexadecimal digits, of the token's SHA-256", g.Name, 2*len(h))
	}
	return h, g, g.setRole(g.Name, fields[2:])
}

// cutQuotas returns what precedes the quotas of a line, and the quotas. No prefix of a study's name
// has an equals sign.
func cutQuotas(fields []string) (words, quotas []string) {
	if at := slices.IndexFunc(fields, func(f string) bool { return strings.Contains(f, "=") }); at >= 0 {
		return fields[:at], fields[at:]
	}
	return fields, nil
}

// setRole sets what the last fields of somebody's line grant: read|write [PREFIX,PREFIX…] [QUOTA=BOUND…].
func (g *Grant) setRole(whose string, fields []string) error {
	fields, quotas := cutQuotas(fields)
	switch fields[0] {
	case "read":
	case "write":
		g.Write = true
	default:
		return fmt.Errorf("role %q of %s: must be read or write", fields[0], whose)
	}
	if len(fields) == 2 {
		g.Prefixes = strings.Split(fields[1], ",")
		if slices.Contains(g.Prefixes, "") {
			return fmt.Errorf("prefixes %q of %s: one is empty", fields[1], whose)
		}
	}
	limits, err := quota.Parse(quotas)
	if err != nil {
		return fmt.Errorf("quotas of %s: %w", whose, err)
	}
	g.Shares = []quota.Share{{Holder: whose, Prefixes: g.Prefixes, Write: g.Write, Limits: limits}}
	return nil
}
