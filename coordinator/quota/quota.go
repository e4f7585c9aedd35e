// Package quota bounds what those who call the API may keep and use, so that no team takes the
// service from the others. A quota is of the studies that a token may change, whoever created
// them: it is counted from the ledger's studies, and holds whoever leads.
package quota

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/fantasia-hpo/fantasia/internal/base/each"
	"github.com/fantasia-hpo/fantasia/study"
)

// Name is the name of a quota.
type Name string

// The quotas.
const (
	// Studies is how many studies there may be, ended ones included. Archived studies do not count.
	Studies Name = "studies"
	// StudyBytes is how many bytes the studies' files may have together, as JSON.
	StudyBytes Name = "study-bytes"
	// OpenTrials is how many trials may be open at once: those that clients hold, and those that
	// the running studies with a command may have evaluated at once.
	OpenTrials Name = "open-trials"
	// TrialBytes is how many bytes the trials may have together, of the studies that a leader has in memory:
	// their records with points, notes, labels and attributes, and what was reported of open trials.
	TrialBytes Name = "trial-bytes"
	// Streams is how many streams a caller may have open at a replica, such as watches.
	Streams Name = "streams"
	// LogBytes is how many bytes of programs' output a replica sends a caller within an hour.
	LogBytes Name = "log-bytes"
)

// None is the bound of a quota that bounds nothing.
const None = math.MaxInt64

// definition is what there is to know of a quota: its usual bound, whether it is of bytes, whether
// each caller has it, and what frees it.
type definition struct {
	name   Name
	usual  int64
	bytes  bool
	caller bool
	frees  string
}

// all has the quotas in the order in which people see them.
var all = []definition{
	{Studies, 10_000, false, false, "delete or archive studies"},
	{StudyBytes, 256 << 20, true, false, "delete or archive large studies"},
	{OpenTrials, 50_000, false, false, "wait until trials end, cancel some, or stop studies"},
	{TrialBytes, 512 << 20, true, false, "stop studies with many or large trials, cancel queued ones, or shorten notes"},
	{Streams, 500, false, true, "end some streams"},
	{LogBytes, 10 << 30, true, true, "wait until the hour is over"},
}

// Names returns the names of all quotas, in the order in which people see them.
func Names() []Name {
	return each.Of(all, func(q definition) Name { return q.name })
}

// Limits are the bounds of quotas. A quota that is absent has no bound. They MUST NOT be changed in place.
type Limits map[Name]int64

// Usual returns the bounds of those who are given none. No ordinary team meets them.
func Usual() Limits {
	l := Limits{}
	for _, q := range all {
		l[q.name] = q.usual
	}
	return l
}

// Of returns the bound of a quota; None if it has none.
func (l Limits) Of(n Name) int64 {
	if bound, ok := l[n]; ok {
		return bound
	}
	return None
}

// With returns the limits with those that over has in their place.
func (l Limits) With(over Limits) Limits {
	both := Limits{}
	maps.Copy(both, l)
	maps.Copy(both, over)
	return both
}

// OfStudies returns the limits of what is stored, which all who have the same studies share.
func (l Limits) OfStudies() Limits { return l.those(false) }

// OfCallers returns the limits that each caller has at each replica.
func (l Limits) OfCallers() Limits { return l.those(true) }

func (l Limits) those(caller bool) Limits {
	some := Limits{}
	for _, q := range all {
		if bound, ok := l[q.name]; ok && q.caller == caller {
			some[q.name] = bound
		}
	}
	return some
}

// String returns the limits as Parse reads them, separated by commas.
func (l Limits) String() string {
	var words []string
	for _, n := range Names() {
		if _, ok := l[n]; ok {
			words = append(words, string(n)+"="+n.Text(l[n]))
		}
	}
	return strings.Join(words, ",")
}

// Parse reads limits as words such as studies=100, study-bytes=50MiB or open-trials=none.
func Parse(words []string) (Limits, error) {
	limits := Limits{}
	for _, word := range words {
		name, value, ok := strings.Cut(word, "=")
		q := Name(name).definition()
		if !ok || q == nil {
			return nil, fmt.Errorf("quota %q: want QUOTA=NUMBER, where QUOTA is one of %s", word, texts(Names()))
		}
		if _, twice := limits[Name(name)]; twice {
			return nil, fmt.Errorf("quota %s is given twice", name)
		}
		bound, err := parseBound(value, q.bytes)
		if err != nil {
			return nil, fmt.Errorf("quota %s: %w", name, err)
		}
		limits[Name(name)] = bound
	}
	return limits, nil
}

// unit is what a number of bytes may end with.
type unit struct {
	name string
	size int64
}

var units = []unit{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"", 1}}

func parseBound(text string, bytes bool) (int64, error) {
	if text == "none" {
		return None, nil
	}
	want, in := "a whole number, at least 0, or none", unit{size: 1}
	if bytes {
		want = "a number of bytes, such as 1000000 or 50MiB (KiB, MiB, GiB), or none"
		in = units[slices.IndexFunc(units, func(u unit) bool { return strings.HasSuffix(text, u.name) })]
	}
	n, err := strconv.ParseUint(strings.TrimSuffix(text, in.name), 10, 63)
	if err != nil || int64(n) > None/in.size { //nolint:gosec // it has 63 bits
		return 0, fmt.Errorf("got %q; want %s", text, want)
	}
	return int64(n) * in.size, nil //nolint:gosec // it has 63 bits
}

// Text returns an amount of a quota for people, such as 100 or 50MiB.
func (n Name) Text(amount int64) string {
	if amount == None {
		return "none"
	}
	if q := n.definition(); q != nil && q.bytes {
		for _, u := range units {
			if amount >= u.size && amount%u.size == 0 {
				return fmt.Sprintf("%d%s", amount/u.size, u.name)
			}
		}
	}
	return strconv.FormatInt(amount, 10)
}

// definition returns the quota's; nil if there is none of that name.
func (n Name) definition() *definition {
	at := slices.IndexFunc(all, func(q definition) bool { return q.name == n })
	if at < 0 {
		return nil
	}
	return &all[at]
}

// Share is what some studies have together: those whose names begin with its prefixes.
type Share struct {
	// Holder names the token, or the line of the grants, that has the share.
	Holder string
	// Prefixes says which studies have the share: those whose names begin with one of them. Empty means all.
	Prefixes []string
	// Write says that the holder may change the studies. Only then the quotas of what is stored count.
	Write bool
	// Limits are the share's quotas.
	Limits Limits
}

// Covers reports whether a study, by its name, is of the share.
func (s *Share) Covers(name string) bool {
	return len(s.Prefixes) == 0 || slices.ContainsFunc(s.Prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// Use is how much of the quotas is used.
type Use map[Name]int64

// Admit returns an error unless what a call adds to a study has room in one of the caller's
// shares that cover the study: rights add up. used counts what a share has in use. The error
// is an *Exceeded. If no share covers the study, nothing bounds the call.
func Admit(shares []Share, name string, used func(*Share) Use, more Use) error {
	var refused error
	for i := range shares {
		s := &shares[i]
		if !s.Write || !s.Covers(name) {
			continue
		}
		err := s.admit(used, more)
		if err == nil {
			return nil
		}
		if refused == nil {
			refused = err
		}
	}
	return refused
}

// admit asks what is in use only if a quota could be exceeded: counting it means to look at all
// studies.
func (s *Share) admit(used func(*Share) Use, more Use) error {
	var use Use
	for _, q := range all {
		bound := s.Limits.Of(q.name)
		if more[q.name] <= 0 || bound == None {
			continue
		}
		if use == nil {
			use = used(s)
		}
		if use[q.name] > bound-more[q.name] {
			return &Exceeded{Share: *s, Name: q.name, Used: use[q.name], More: more[q.name]}
		}
	}
	return nil
}

// Exceeded says that a call would exceed a quota. It had no effect. It is a study.ErrBusy.
type Exceeded struct {
	Share Share
	// Name is that of the quota, Used what is used of it, and More what the call would add.
	Name       Name
	Used, More int64
}

// Unwrap makes it a study.ErrBusy, since it may pass: what the caller has in use may end.
func (e *Exceeded) Unwrap() error { return study.ErrBusy }

// Error names the quota, its bound, what is used, and what frees it.
func (e *Exceeded) Error() string {
	whose, frees := "all studies", "use less of it"
	if len(e.Share.Prefixes) > 0 {
		whose = "studies that begin with " + strings.Join(e.Share.Prefixes, " or ")
	}
	if q := e.Name.definition(); q != nil {
		frees = q.frees
		if q.caller {
			whose = "at each replica"
		}
	}
	return fmt.Sprintf("the quota %s of %s (%s) is %s; %s are used, and this call needs %s more: %s, or ask the operator for a larger quota",
		e.Name, e.Share.Holder, whose, e.Name.Text(e.Share.Limits.Of(e.Name)), e.Name.Text(e.Used), e.Name.Text(e.More), frees)
}

// sharesKey is the context key of a caller's shares.
type sharesKey struct{}

// With returns a context of calls that the shares bound.
func With(ctx context.Context, shares []Share) context.Context {
	return context.WithValue(ctx, sharesKey{}, shares)
}

// From returns the shares that bound the calls of a context; none if nothing does.
func From(ctx context.Context) []Share {
	shares, _ := ctx.Value(sharesKey{}).([]Share)
	return shares
}

func texts(names []Name) string {
	return each.Join(names, ", ", func(n Name) string { return string(n) })
}
