package messaging

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fantasia-hpo/fantasia/study"
)

// Limits on what workers write into the ledger, so that a trial's record, which keeps
// texts of several attempts, always fits.
const (
	// MaxMetrics is the largest number of metrics in a result or a measurement,
	// MaxMetricName the largest length of a name in bytes, MaxMetricNames that of all
	// names together.
	MaxMetrics     = 1000
	MaxMetricName  = 256
	MaxMetricNames = 32 << 10
	// MaxValues is the largest number of values in a result.
	MaxValues = 64
	// MaxReason is the largest length of Failure.Reason and Failure.Signal in bytes.
	MaxReason = 256
	// MaxReference is the largest length, in bytes, of a reference: to a checkpoint,
	// logs, a host or its software.
	MaxReference = 4 << 10
)

// Validate implements Envelope.
func (a *Assignment) Validate() error {
	return cmp.Or(
		checkVersion(a.Version),
		a.AttemptID.validate(),
		checkToken("pool", a.Pool),
		checkText("studyName", a.StudyName),
		a.checkMetrics(),
		checkPoint(a.Parameters),
		a.checkOrder(),
		a.Reached.validate(),
	)
}

// checkMetrics checks that each objective and each limit names its metric.
func (a *Assignment) checkMetrics() (err error) {
	if len(a.Several) == 0 {
		err = checkText("objective.metric", a.Objective.Metric)
	}
	for i, o := range a.Several {
		err = cmp.Or(err, checkText(fmt.Sprintf("objectives[%d].metric", i), o.Metric))
	}
	for i, l := range a.Limits {
		err = cmp.Or(err, checkText(fmt.Sprintf("limits[%d].metric", i), l.Metric))
	}
	return err
}

// checkOrder checks that ParameterOrder lists each parameter exactly once.
func (a *Assignment) checkOrder() error {
	if len(a.ParameterOrder) != len(a.Parameters) {
		return fmt.Errorf("%w: parameterOrder has %d names, must list each of the %d parameters once",
			ErrInvalid, len(a.ParameterOrder), len(a.Parameters))
	}
	seen := make(map[string]bool, len(a.ParameterOrder))
	for _, name := range a.ParameterOrder {
		if _, ok := a.Parameters[name]; !ok || seen[name] {
			return fmt.Errorf("%w: parameterOrder names %q, must list each of the parameters once", ErrInvalid, name)
		}
		seen[name] = true
	}
	return nil
}

// Validate implements Envelope.
func (c *Claim) Validate() error {
	return cmp.Or(
		checkVersion(c.Version),
		c.AttemptID.validate(),
		checkToken("pool", c.Pool),
		checkClaimant(c.Pool, c.Worker),
		checkAtLeast("slot", c.Slot, 0),
		c.Site.validate(),
	)
}

// Validate implements Envelope.
func (r *Result) Validate() error {
	return cmp.Or(
		checkVersion(r.Version),
		r.AttemptID.validate(),
		checkWorker(r.Worker),
		r.checkOutcome(),
		checkMetrics(r.Metrics),
		r.Failure.validate(),
		checkLength("checkpoint", r.Checkpoint, MaxReference),
		r.Reached.validate(),
		checkLength("logs", r.Logs, MaxReference),
		r.Site.validate(),
	)
}

// checkOutcome checks the values: a completed attempt has finite ones, a pruned one may
// have some, any other has none.
func (r *Result) checkOutcome() error {
	switch r.Outcome {
	case OutcomeCompleted, OutcomePruned:
		if n := len(r.Values); n == 0 && r.Outcome == OutcomeCompleted || n > MaxValues {
			return fmt.Errorf("%w: outcome %q with %d values, must be 1 to %d, one for each objective",
				ErrInvalid, r.Outcome, n, MaxValues)
		}
		for _, v := range r.Values {
			if err := checkFinite("value", v); err != nil {
				return err
			}
		}
		return nil
	case OutcomeFailed, OutcomeTimeout, OutcomeInfeasible, OutcomeHandedBack, OutcomeCancelled:
		if len(r.Values) > 0 {
			return fmt.Errorf("%w: outcome %q with the values %v, only %q and %q have any",
				ErrInvalid, r.Outcome, r.Values, OutcomeCompleted, OutcomePruned)
		}
		return nil
	default:
		return fmt.Errorf("%w: outcome %q, must be completed, failed, timeout, infeasible, handed-back, cancelled or pruned",
			ErrInvalid, r.Outcome)
	}
}

func (f *Failure) validate() error {
	if f == nil {
		return nil
	}
	return cmp.Or(
		checkLength("failure.reason", f.Reason, MaxReason),
		checkLength("failure.signal", f.Signal, MaxReason),
		checkLength("failure.message", f.Message, MaxMessage),
	)
}

// Validate implements Envelope.
func (m *Measurement) Validate() error {
	return cmp.Or(
		checkVersion(m.Version),
		m.AttemptID.validate(),
		checkWorker(m.Worker),
		checkMetrics(m.Metrics, m.Diverged...),
	)
}

// Validate implements Envelope.
func (h *Heartbeat) Validate() error {
	err := cmp.Or(
		checkVersion(h.Version),
		CheckWorker(h.Pool, h.Worker),
		checkToken("instance", h.Instance),
		checkAtLeast("slots", h.Slots, 1),
		checkAtLeast("free", h.Free, 0),
		checkLength("host", h.Host, MaxReference),
		checkLength("software", h.Software, MaxReference),
	)
	if err == nil && h.Runs != "" {
		err = checkToken("runs", h.Runs)
	}
	if err != nil {
		return err
	}
	if h.Free > h.Slots {
		return fmt.Errorf("%w: free %d, at most slots %d", ErrInvalid, h.Free, h.Slots)
	}
	return cmp.Or(checkAttempts("running", h.Running), checkAttempts("spooled", h.Spooled), h.checkWaiting(), h.checkPlaces("begun", h.Begun))
}

// Validate implements Envelope.
func (c *Control) Validate() error {
	err := cmp.Or(checkVersion(c.Version), checkWorker(c.Worker))
	if err != nil {
		return err
	}
	switch c.Kind {
	case ControlReceipt:
		// The receipt of a poison result has no nonce: its subject names the attempt.
		id := c.AttemptID
		if id.Nonce == "" {
			id.Nonce = "-"
		}
		return id.validate()
	case ControlCancel, ControlPrune:
		return c.AttemptID.validate()
	case ControlLogs:
		return cmp.Or(c.AttemptID.validate(), c.Logs.validate())
	case ControlAvoid:
		return checkToken("study", c.Study)
	default:
		return fmt.Errorf("%w: kind %q, must be receipt, cancel, prune, avoid or logs", ErrInvalid, c.Kind)
	}
}

func (id AttemptID) validate() error {
	return cmp.Or(
		checkToken("study", id.Study),
		checkAtLeast("trial", id.Trial, 1),
		checkAtLeast("attempt", id.Attempt, 1),
		checkToken("nonce", id.Nonce),
	)
}

func checkAttempts(field string, ids []AttemptID) error {
	for i, id := range ids {
		if err := id.validate(); err != nil {
			return fmt.Errorf("%s[%d]: %w", field, i, err)
		}
	}
	return nil
}

func checkVersion(v int) error {
	if v != SchemaVersion {
		return fmt.Errorf("%w: version %d, must be %d", ErrVersion, v, SchemaVersion)
	}
	return nil
}

func checkToken(field, s string) error {
	if !ValidToken(s) {
		return fmt.Errorf("%w: %s %q, must be 1 to %d of A-Z a-z 0-9 - _", ErrInvalid, field, clip(s), MaxToken)
	}
	return nil
}

// checkWorker refuses invalid worker names, including the one under which only leaders
// claim.
func checkWorker(s string) error {
	if s == LeaderName {
		return fmt.Errorf("%w: worker %q, the name is reserved", ErrInvalid, s)
	}
	if !ValidWorker(s) {
		return fmt.Errorf("%w: worker %q, must be a name, or a pool and a name with a dot between, each 1 to %d of A-Z a-z 0-9 - _",
			ErrInvalid, clip(s), MaxToken)
	}
	return nil
}

// checkClaimant is checkWorker for claims in the pool, which a leader may make too.
func checkClaimant(pool, worker string) error {
	if worker == LeaderName {
		return nil
	}
	return CheckWorker(pool, worker)
}

// CheckWorker returns what is wrong with the name of a pool's worker; its error wraps
// ErrInvalid.
func CheckWorker(pool, worker string) error {
	if err := cmp.Or(checkToken("pool", pool), checkWorker(worker)); err != nil {
		return err
	}
	// A name with a pool in it belongs to that pool: the broker has only checked the name.
	if named, _, ok := strings.Cut(worker, "."); ok && named != pool {
		return fmt.Errorf("%w: worker %q of pool %q, its name is of another", ErrInvalid, clip(worker), clip(pool))
	}
	return nil
}

func checkText(field, s string) error {
	if s == "" {
		return fmt.Errorf("%w: %s is empty", ErrInvalid, field)
	}
	return nil
}

func checkLength(field, s string, most int) error {
	if len(s) > most {
		return fmt.Errorf("%w: %s of %d bytes, at most %d", ErrInvalid, field, len(s), most)
	}
	return nil
}

func checkAtLeast(field string, n, least int) error {
	if n < least {
		return fmt.Errorf("%w: %s %d, must be at least %d", ErrInvalid, field, n, least)
	}
	return nil
}

func checkFinite(field string, v float64) error {
	if !study.Finite(v) {
		return fmt.Errorf("%w: %s %v, must be finite", ErrInvalid, field, v)
	}
	return nil
}

// checkMetrics checks metrics, and the names of others without a value.
func checkMetrics(metrics map[string]float64, others ...string) error {
	names := slices.AppendSeq(slices.Clone(others), maps.Keys(metrics))
	if len(names) > MaxMetrics {
		return fmt.Errorf("%w: %d metrics, at most %d", ErrInvalid, len(names), MaxMetrics)
	}
	total := 0
	for _, name := range names {
		if name == "" {
			return fmt.Errorf("%w: a metric without a name", ErrInvalid)
		}
		if err := checkLength("the name of metric "+clip(name), name, MaxMetricName); err != nil {
			return err
		}
		if total += len(name); total > MaxMetricNames {
			return fmt.Errorf("%w: the names of %d metrics have more than %d bytes together", ErrInvalid, len(names), MaxMetricNames)
		}
		if err := checkFinite("metric "+clip(name), metrics[name]); err != nil {
			return err
		}
	}
	return nil
}

// clip shortens a value for error messages.
func clip(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return cut(s, most) + "…"
}
