package server

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/quota"
)

// Lister is implemented by Bearers that know the lines of their files.
type Lister interface {
	// Lines returns what each line grants, in any order.
	Lines() []Grant
}

// Lines implements Lister.
func (t *Tokens) Lines() []Grant { return slices.Collect(maps.Values(t.file.get())) }

// Lines returns what each line grants. Their names are CLAIM=VALUE.
func (c *ClaimGrants) Lines() []Grant {
	var all []Grant
	for _, l := range c.file.get() {
		g := l.grant
		g.Name = l.claim + "=" + l.value
		all = append(all, g)
	}
	return all
}

// Quotas bound what the bearers of tokens use, and count what each bearer uses at this replica. Safe for
// concurrent use.
type Quotas struct {
	tokens Bearers
	limits quota.Limits
	now    func() time.Time

	mu      sync.Mutex
	callers map[string]*callerUse // by the grant's name
}

// callerUse is what a caller uses at this replica.
type callerUse struct {
	share   quota.Share
	streams int64
	tails   int // logs that are read now
	// logs are the bytes of programs' output that were sent since an hour began.
	logs  int64
	since time.Time
}

const (
	// logHour is for how long the bytes of logs count.
	logHour = time.Hour
	// maxLogs is how many logs a caller may read at once: a quarter of those that a replica reads.
	maxLogs = coordinator.MaxTails / 4
)

// NewQuotas returns the quotas of the bearers of tokens, who have the usual ones where neither limits nor their own
// lines name others.
func NewQuotas(tokens Bearers, limits quota.Limits, now func() time.Time) *Quotas {
	return &Quotas{tokens: tokens, limits: quota.Usual().With(limits), now: now, callers: map[string]*callerUse{}}
}

// shares returns the quotas of a grant's bearer. What is stored has a bound even if nobody has named any, but
// only for those who are limited to some studies.
func (q *Quotas) shares(g *Grant) []quota.Share {
	all := slices.Clone(g.Shares)
	for i := range all {
		s := &all[i]
		limits := q.limits.OfCallers()
		if len(s.Prefixes) > 0 {
			limits = q.limits
		}
		s.Limits = limits.With(s.Limits)
	}
	return all
}

// caller returns what a grant's bearer uses, and may use. The caller of it MUST hold the lock.
func (q *Quotas) caller(g *Grant) *callerUse {
	c := q.callers[g.Name]
	if c == nil {
		q.forget()
		c = &callerUse{}
		q.callers[g.Name] = c
	}
	if now := q.now(); now.Sub(c.since) >= logHour {
		c.since, c.logs = now, 0
	}
	c.share = quota.Share{Holder: "the token " + g.Name, Limits: quota.Limits{}}
	for _, n := range quota.Names() {
		bound := int64(-1)
		for _, s := range q.shares(g) { // rights add up
			bound = max(bound, s.Limits.Of(n))
		}
		if bound >= 0 {
			c.share.Limits[n] = bound
		}
	}
	c.share.Limits = c.share.Limits.OfCallers()
	return c
}

// forget forgets those who use nothing, if there are too many.
func (q *Quotas) forget() {
	if len(q.callers) < maxCallers {
		return
	}
	maps.DeleteFunc(q.callers, func(_ string, c *callerUse) bool {
		return c.streams == 0 && c.tails == 0 && (c.logs == 0 || q.now().Sub(c.since) >= logHour)
	})
}

// openStream counts a stream, which ends with end. The error is a *quota.Exceeded.
func (q *Quotas) openStream(g *Grant) (end func(), err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := q.caller(g)
	if c.streams >= c.share.Limits.Of(quota.Streams) {
		return nil, &quota.Exceeded{Share: c.share, Name: quota.Streams, Used: c.streams, More: 1}
	}
	c.streams++
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		c.streams--
	}, nil
}

// openLog counts a log that is read, which ends with end. The error is a *quota.Exceeded if the caller has no bytes
// left.
func (q *Quotas) openLog(g *Grant) (end func(), err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := q.caller(g)
	if c.logs >= c.share.Limits.Of(quota.LogBytes) {
		return nil, &quota.Exceeded{Share: c.share, Name: quota.LogBytes, Used: c.logs, More: 1}
	}
	if c.tails >= maxLogs {
		return nil, exhausted("the token %s reads %d logs, as many as it may at once; try again later", g.Name, c.tails)
	}
	c.tails++
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		c.tails--
	}, nil
}

// sentLog counts bytes of a log that a caller was sent.
func (q *Quotas) sentLog(g *Grant, n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.caller(g).logs += int64(n)
}

// Meter returns a backend that counts what it sends of logs, and refuses to open more of them to those who have been
// sent what they may. A log that is open goes on.
func (q *Quotas) Meter(b Backend) Backend { return metered{b, q} }

type metered struct {
	Backend
	quotas *Quotas
}

// TailLogs implements Reader.
func (m metered) TailLogs(ctx context.Context, study string, number int, o coordinator.LogTail) iter.Seq2[coordinator.LogPart, error] {
	parts := m.Backend.TailLogs(ctx, study, number, o)
	g, ok := ctx.Value(grantKey{}).(Grant)
	if !ok {
		return parts
	}
	return func(yield func(coordinator.LogPart, error) bool) {
		end, err := m.quotas.openLog(&g)
		if err != nil {
			yield(coordinator.LogPart{}, err)
			return
		}
		defer end()
		for p, err := range parts {
			m.quotas.sentLog(&g, len(p.Data))
			if !yield(p, err) {
				return
			}
		}
	}
}

// Row is a quota with what is used of it.
type Row struct {
	Share quota.Share
	Name  quota.Name
	Used  int64
}

// list adds to the rows of callers a row for each quota of stored things, such as studies.
func list(ctx context.Context, b Reader, shares []quota.Share, callers []Row) ([]Row, error) {
	uses, err := b.Used(ctx, shares)
	if err != nil {
		return nil, err
	}
	rows := callers
	for i, s := range shares {
		for _, n := range quota.Names() {
			if _, bounded := s.Limits.OfStudies()[n]; bounded && s.Write {
				rows = append(rows, Row{s, n, uses[i][n]})
			}
		}
	}
	order := quota.Names()
	slices.SortStableFunc(rows, func(a, b Row) int {
		return cmp.Or(strings.Compare(a.Share.Holder, b.Share.Holder), cmp.Compare(slices.Index(order, a.Name), slices.Index(order, b.Name)))
	})
	return rows, nil
}

// Rows returns the quotas of every line of the files, and of every caller that uses this replica.
func (q *Quotas) Rows(ctx context.Context, b Reader) ([]Row, error) {
	var shares []quota.Share
	if lister, ok := q.tokens.(Lister); ok {
		for _, g := range lister.Lines() {
			shares = append(shares, q.shares(&g)...)
		}
	}
	return list(ctx, b, shares, q.callerRows(nil))
}

// callerRows returns the quotas of those who use this replica: of one of them, or of all.
func (q *Quotas) callerRows(only *Grant) (rows []Row) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if only != nil {
		q.caller(only)
	}
	for name, c := range q.callers {
		if only != nil && name != only.Name {
			continue
		}
		share := c.share
		share.Holder = name
		rows = append(rows, Row{share, quota.Streams, c.streams}, Row{share, quota.LogBytes, c.logs})
	}
	return rows
}

// ListQuotas returns the caller's quotas, or those of all.
func (s *service) ListQuotas(
	ctx context.Context, _ *connect.Request[fantasiav1.ListQuotasRequest],
) (*connect.Response[fantasiav1.ListQuotasResponse], error) {
	g, ok := ctx.Value(grantKey{}).(Grant)
	if !ok {
		return respond(&fantasiav1.ListQuotasResponse{}, nil)
	}
	var rows []Row
	var err error
	if len(g.Prefixes) == 0 {
		rows, err = s.quotas.Rows(ctx, s.backend)
	} else {
		rows, err = list(ctx, s.backend, s.quotas.shares(&g), s.quotas.callerRows(&g))
	}
	if err != nil {
		return nil, toConnect(err)
	}
	all := &fantasiav1.ListQuotasResponse{}
	for _, r := range rows {
		all.Quotas = append(all.Quotas, toQuota(r))
	}
	return respond(all, nil)
}

func toQuota(r Row) *fantasiav1.Quota {
	m := &fantasiav1.Quota{Holder: r.Share.Holder, Quota: string(r.Name), Used: r.Used, Prefixes: r.Share.Prefixes}
	if bound := r.Share.Limits.Of(r.Name); bound != quota.None {
		m.Limit = &bound
	}
	return m
}
