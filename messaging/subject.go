package messaging

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Shard is today's only shard. Subjects contain it so that studies can be divided among
// several leaders later.
const Shard = "0"

// LeaderName is the worker name under which a leader claims an attempt for itself. No
// worker may use it.
const LeaderName = "leader"

// MaxToken is the largest length, in bytes, of a name in a subject.
const MaxToken = 128

// Kind is the kind of message that a subject carries.
type Kind string

// The kinds of subjects.
const (
	KindAssign     Kind = "assign"
	KindFence      Kind = "fence"
	KindClaim      Kind = "claim"
	KindResult     Kind = "result"
	KindMetric     Kind = "metric"
	KindHeartbeat  Kind = "heartbeat"
	KindControl    Kind = "control"
	KindLog        Kind = "log"
	KindDeadLetter Kind = "dlq"
)

// ErrSubject means that a subject is not one of Fantasia's.
var ErrSubject = errors.New("not a subject of Fantasia")

// Subject is a parsed subject. Which fields are set depends on its Kind:
//
//	fantasia.assign.<shard>.<pool>.<study>.<trial>.<attempt>
//	fantasia.fence.<shard>
//	fantasia.claim.<shard>.<pool>.<study>.<trial>.<attempt>
//	fantasia.result.<shard>.<worker>.<study>.<trial>.<attempt>
//	fantasia.metric.<shard>.<study>.<trial>.<attempt>
//	fantasia.heartbeat.<shard>.<worker>
//	fantasia.control.<shard>.<worker>
//	fantasia.log.<shard>.<worker>
//	fantasia.dlq.<shard>.<worker>
//
// <worker> is a plain name, or two tokens <pool>.<name> (see WorkerName): with
// these a broker's permissions can confine who knows a pool's password to the
// names of that pool.
//
// <study> is the study's id and never its name: a study that is created again
// under its old name must not meet the claims of the one that it replaces. The
// <worker> of a dead letter is who put it there, LeaderName for a leader.
type Subject struct {
	Kind   Kind
	Shard  string
	Pool   string
	Worker string
	// ID has no nonce, as subjects do not contain it.
	ID AttemptID
}

const root = "fantasia"

// String formats the subject.
func (s Subject) String() string {
	b := make([]byte, 0, 96)
	b = append(b, root...)
	b = appendToken(b, string(s.Kind))
	b = appendToken(b, s.Shard)
	switch s.Kind {
	case KindAssign, KindClaim:
		b = appendAttempt(appendToken(b, s.Pool), s.ID)
	case KindResult:
		b = appendAttempt(appendToken(b, s.Worker), s.ID)
	case KindMetric:
		b = appendAttempt(b, s.ID)
	case KindHeartbeat, KindControl, KindLog, KindDeadLetter:
		b = appendToken(b, s.Worker)
	case KindFence:
	}
	return string(b)
}

func appendToken(b []byte, token string) []byte {
	return append(append(b, '.'), token...)
}

func appendAttempt(b []byte, id AttemptID) []byte {
	b = appendToken(b, id.Study)
	b = strconv.AppendInt(append(b, '.'), int64(id.Trial), 10)
	return strconv.AppendInt(append(b, '.'), int64(id.Attempt), 10)
}

// ParseSubject parses a subject. It accepts exactly what String formats from valid
// names and numbers; anything else is ErrSubject.
func ParseSubject(subject string) (Subject, error) {
	parts := strings.Split(subject, ".")
	if len(parts) < 3 || parts[0] != root {
		return Subject{}, fmt.Errorf("%w: %q", ErrSubject, subject)
	}
	s := Subject{Kind: Kind(parts[1]), Shard: parts[2]}
	rest := parts[3:]
	ok := ValidToken(s.Shard)
	switch {
	case s.Kind == KindFence && len(rest) == 0:
	case (s.Kind == KindAssign || s.Kind == KindClaim) && len(rest) == 4:
		s.Pool = rest[0]
		ok = ok && ValidToken(s.Pool) && parseAttempt(rest[1:], &s.ID)
	case s.Kind == KindResult && (len(rest) == 4 || len(rest) == 5):
		ok = ok && parseWorker(rest[:len(rest)-3], &s.Worker) && parseAttempt(rest[len(rest)-3:], &s.ID)
	case s.Kind == KindMetric && len(rest) == 3:
		ok = ok && parseAttempt(rest, &s.ID)
	case (s.Kind == KindHeartbeat || s.Kind == KindControl || s.Kind == KindLog || s.Kind == KindDeadLetter) && len(rest) <= 2:
		ok = ok && parseWorker(rest, &s.Worker)
	default:
		ok = false
	}
	if !ok {
		return Subject{}, fmt.Errorf("%w: %q", ErrSubject, subject)
	}
	return s, nil
}

// parseWorker parses a worker's name.
func parseWorker(parts []string, name *string) bool {
	*name = strings.Join(parts, ".")
	return ValidWorker(*name)
}

// parseAttempt parses study, trial and attempt.
func parseAttempt(parts []string, id *AttemptID) bool {
	var okTrial, okAttempt bool
	id.Study = parts[0]
	id.Trial, okTrial = parseNumber(parts[1])
	id.Attempt, okAttempt = parseNumber(parts[2])
	return ValidToken(id.Study) && okTrial && okAttempt
}

// parseNumber parses a positive decimal in its canonical form, so that no two subjects
// name the same attempt.
func parseNumber(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 1 && strconv.Itoa(n) == s
}

// Filter returns a filter for all subjects of a kind in a shard.
func Filter(kind Kind, shard string) string {
	if kind == KindFence {
		return root + ".fence." + shard
	}
	return root + "." + string(kind) + "." + shard + ".>"
}

// PoolFilter returns a filter for a pool's assignments.
func PoolFilter(shard, pool string) string {
	return root + ".assign." + shard + "." + pool + ".>"
}

// StudyFilters returns filters that together match a study's assignments, claims,
// results or measurements. Other kinds do not belong to a study and have none.
func StudyFilters(kind Kind, shard, studyID string) []string {
	head := root + "." + string(kind) + "." + shard + "."
	tail := studyID + ".>"
	switch kind {
	case KindMetric:
		return []string{head + tail}
	case KindResult:
		return []string{head + "*." + tail, head + "*.*." + tail}
	default:
		return []string{head + "*." + tail}
	}
}

// AttemptFilter returns a filter for the assignment or the claim of an attempt, in
// whatever pool.
func AttemptFilter(kind Kind, shard string, id AttemptID) string {
	return string(appendAttempt([]byte(root+"."+string(kind)+"."+shard+".*"), id))
}

// Subject returns the subject of an assignment.
func (a *Assignment) Subject(shard string) string {
	return Subject{Kind: KindAssign, Shard: shard, Pool: a.Pool, ID: a.AttemptID}.String()
}

// Subject returns the subject of a claim.
func (c *Claim) Subject(shard string) string {
	return Subject{Kind: KindClaim, Shard: shard, Pool: c.Pool, ID: c.AttemptID}.String()
}

// Subject returns the subject of a result.
func (r *Result) Subject(shard string) string {
	return Subject{Kind: KindResult, Shard: shard, Worker: r.Worker, ID: r.AttemptID}.String()
}

// Subject returns the subject of a measurement.
func (m *Measurement) Subject(shard string) string {
	return Subject{Kind: KindMetric, Shard: shard, ID: m.AttemptID}.String()
}

// Subject returns the subject of a heartbeat.
func (h *Heartbeat) Subject(shard string) string {
	return Subject{Kind: KindHeartbeat, Shard: shard, Worker: h.Worker}.String()
}

// Subject returns the subject of a control message.
func (c *Control) Subject(shard string) string {
	return Subject{Kind: KindControl, Shard: shard, Worker: c.Worker}.String()
}

// ValidToken reports whether s can be a name in a subject: 1 to MaxToken
// letters, digits, dashes and underscores of ASCII.
func ValidToken(s string) bool {
	return s != "" && len(s) <= MaxToken && !strings.ContainsFunc(s, func(c rune) bool { return !tokenByte(c) })
}

// ValidWorker reports whether s can be a worker's name: a valid token, or two
// with a dot between them, the pool's first (see WorkerName).
func ValidWorker(s string) bool {
	pool, name, qualified := strings.Cut(s, ".")
	return ValidToken(pool) && (!qualified || ValidToken(name))
}

// WorkerName returns a worker's name on the wire, pool.name: two tokens of a subject,
// so that a broker can distinguish the workers of different pools.
func WorkerName(pool, name string) string { return pool + "." + name }

func tokenByte(c rune) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}

// Token turns any string into a valid name, for names that come from elsewhere, such as
// a host's. It replaces invalid characters by dashes and truncates the name to
// MaxToken. Different strings can give the same name.
func Token(s string) string {
	if s == "" {
		return "-"
	}
	b := []byte(s[:min(len(s), MaxToken)])
	for i, c := range b {
		if !tokenByte(rune(c)) {
			b[i] = '-'
		}
	}
	return string(b)
}
