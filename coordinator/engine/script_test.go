package engine

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
)

var rewrite = flag.Bool("rewrite", false, "write what the engine says into testdata/*.txt")

// TestScripts plays interactions: each line "> command" is followed by what the
// engine says to it, up to an empty line. Other lines are prose.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(data))
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := gocmp.Diff(strings.Split(string(data), "\n"), strings.Split(got, "\n")); diff != "" {
				t.Errorf("%s (-script +engine):\n%s", file, diff)
			}
		})
	}
}

// play returns the script with the engine's answers in place of the expected ones.
func play(t *testing.T, script string) string {
	var b strings.Builder
	p := &player{t: t}
	answers := false
	for line := range strings.Lines(script) {
		switch {
		case strings.HasPrefix(line, "> "):
			b.WriteString(line)
			for _, l := range p.do(strings.Fields(strings.TrimSpace(line[2:]))) {
				b.WriteString(l + "\n")
			}
			answers = true
		case strings.TrimSpace(line) == "":
			answers = false
			b.WriteString(line)
		case !answers:
			b.WriteString(line)
		}
	}
	return b.String()
}

// player plays commands on one rig.
type player struct {
	t *testing.T
	r *rig
	// later: the script answers the requests for fallbacks.
	later bool
}

// do plays one command and returns what the engine says to it.
func (p *player) do(args []string) []string {
	p.t.Helper()
	cmd, args := args[0], args[1:]
	r := p.r
	if r == nil && cmd != "new" {
		p.t.Fatalf("%s before new", cmd)
	}
	switch cmd {
	case "new":
		spec, set := newSpec(0, 10, 1), Settings{}
		p.configure(&spec, &set, args)
		p.r = newRig(p.t, spec, set)
		if p.later {
			p.r.fallback = nil
		}
		return describe(p.r.out)
	case "update":
		spec := r.e.Spec()
		p.configure(&spec, &Settings{}, args)
		return describe(r.step(Update{At: r.now, Study: spec}))
	case "after":
		return describe(r.after(p.duration(args[0])))
	case "capacity":
		return describe(r.step(Capacity{At: r.now, Slots: p.number(args[0]), Free: p.number(args[1])}))
	case "suggest":
		return p.suggest(args)
	case "fall-back":
		ask := r.ask
		if r.ask, r.fell = r.fell, nil; r.ask == nil {
			p.t.Fatal("the script answers a request for fallbacks that was not made")
		}
		lines := p.suggest(args)
		r.ask = cmp.Or(r.ask, ask)
		return lines
	case "restart":
		return describe(r.restart())
	case "stop":
		return describe(r.step(Stop{At: r.now, Reason: strings.Join(args, " ")}))
	case "resume":
		return describe(r.step(Resume{At: r.now}))
	case "hand-back-all":
		return describe(r.step(HandBackAll{At: r.now}))
	case "wake":
		if r.out.Wake.IsZero() {
			return []string{"never"}
		}
		return []string{"in " + r.out.Wake.Sub(r.now).String()}
	case "show":
		return p.show(args)
	default:
		return p.attempt(cmd, args)
	}
}

// attempt plays a command about one attempt: "claim W 1/1", "lost 1/1 why".
func (p *player) attempt(cmd string, args []string) []string {
	p.t.Helper()
	r, worker := p.r, ""
	if !strings.Contains(args[0], "/") {
		worker, args = args[0], args[1:]
	}
	var trial, attempt int
	var nonce string
	name, other, forged := strings.Cut(args[0], "!")
	if _, err := fmt.Sscanf(name, "%d/%d", &trial, &attempt); err != nil {
		p.t.Fatalf("%s %s: %v", cmd, args[0], err)
	}
	id := r.id(trial, attempt)
	if nonce = other; forged {
		id.Nonce = nonce
	}
	args = args[1:]
	switch cmd {
	case "claim":
		return describe(r.step(Claimed{At: r.now, Claim: &messaging.Claim{AttemptID: id, Worker: worker, At: r.now}}))
	case "spoiled":
		id.Nonce = ""
		return describe(r.step(Spoiled{At: r.now, Attempt: id}))
	case "alive":
		return describe(r.step(Alive{At: r.now, Worker: worker, Attempt: id}))
	case "lost":
		return describe(r.step(Lost{At: r.now, Attempt: id, Reason: strings.Join(args, " ")}))
	case "published":
		return describe(r.step(Published{At: r.now, Attempt: id}))
	case "withdrawn":
		return describe(r.step(Withdrawn{At: r.now, Attempt: id, OK: args[0] == "ok"}))
	case "report":
		if r.e.Forgotten(id) {
			r.step(Recalled{At: r.now, Trial: trial, Curve: r.ledger.curve(trial)})
		}
		return describe(r.step(Measured{At: r.now, Measurement: &messaging.Measurement{
			AttemptID: id, Worker: worker, Step: int64(p.number(args[0])), Metrics: map[string]float64{"loss": p.float(args[1])},
		}}))
	case "completed", "failed", "timeout", "infeasible", "handed-back", "cancelled", "pruned":
		res := r.result(worker, trial, attempt, messaging.Outcome(cmd))
		res.AttemptID = id
		p.result(res, cmd, args)
		return describe(r.step(Finished{At: r.now, Result: res}))
	}
	p.t.Fatalf("unknown command %q", cmd)
	return nil
}

// result fills in a value, a failure's message or a checkpoint.
func (p *player) result(res *messaging.Result, cmd string, args []string) {
	if len(args) == 0 {
		return
	}
	switch cmd {
	case "completed", "pruned":
		v := p.float(args[0])
		res.Values = []float64{v}
		res.Metrics = map[string]float64{"loss": v, "broken": math.NaN()}
	case "handed-back":
		res.Checkpoint = args[0]
	default:
		res.Failure = &messaging.Failure{Reason: cmd, Message: strings.Join(args, " ")}
	}
}

// suggest answers a request: points, "error why", "exhausted", "nothing-else", "infeasible why".
func (p *player) suggest(args []string) []string {
	p.t.Helper()
	switch args[0] {
	case "error":
		return describe(p.r.answer(nil, errors.New(strings.Join(args[1:], " "))))
	case "nothing-else":
		return describe(p.r.answer(nil, optimizer.ErrNoOther))
	case "exhausted":
		return describe(p.r.answer(nil, optimizer.ErrExhausted))
	case "infeasible":
		return describe(p.r.answer(nil, fmt.Errorf("%w: %s", optimizer.ErrNoFeasible, strings.Join(args[1:], " "))))
	}
	var xs []float64
	for _, a := range args {
		x, err := strconv.ParseFloat(a, 64)
		if err != nil {
			p.t.Fatal(err)
		}
		xs = append(xs, x)
	}
	return describe(p.r.suggest(xs...))
}

// show prints what the accessors say.
func (p *player) show(args []string) []string {
	e := p.r.e
	switch args[0] {
	case "status":
		return []string{describeStatus(e.Status())}
	case "trial":
		t, ok := e.Trial(p.number(args[1]))
		if !ok {
			return []string{"none"}
		}
		lines := []string{fmt.Sprintf("%s at %v, %s, request %d place %d from %d, staleness %d, created %d ended %d",
			t.State, t.Point, t.Source, t.Request, t.Place, t.From, t.Staleness, t.Created, t.Ended)}
		if s := t.Stopped; s != nil {
			lines = append(lines, fmt.Sprintf("reached %v, stopped at step %d of attempt %d with %v: %s", t.Values, s.Step, s.Attempt, s.Values,
				s.Reason))
		}
		for _, a := range t.Attempts {
			lines = append(lines, describeAttempt(a))
		}
		return lines
	case "best":
		t, ok := e.Best()
		if !ok {
			return []string{"none"}
		}
		return []string{fmt.Sprintf("trial %d: %g", t.Number, t.Values.First())}
	case "told":
		var lines []string
		for _, o := range e.Problem().Observations {
			line := fmt.Sprintf("trial %d: %s", o.Trial, o.Outcome)
			if len(o.Values) > 0 {
				line += fmt.Sprintf(" %g", o.Values.First())
			}
			if o.Step > 0 {
				line += fmt.Sprintf(" at step %d", o.Step)
			}
			lines = append(lines, line)
		}
		return lines
	}
	p.t.Fatalf("show %s", args[0])
	return nil
}

// configure applies key=value options to a study.
func (p *player) configure(spec *record.Study, set *Settings, args []string) {
	p.t.Helper()
	s := &spec.Definition.Spec
	for _, a := range args {
		key, value, _ := strings.Cut(a, "=")
		switch key {
		case "trials":
			s.Budget.MaxTrials = p.number(value)
		case "parallelism":
			s.Parallelism = p.number(value)
		case "points":
			*spec = newSpec(p.number(value), s.Budget.MaxTrials, s.Parallelism)
			s = &spec.Definition.Spec
		case "stop-above":
			limited(spec, set, p.float(value))
		case "goal":
			g := float64(p.number(value))
			s.Objective.Goal = &g
		case "maximize":
			s.Objective.Direction = study.Maximize
		case "empty-space":
			s.Parameters = nil
		case "max-failed":
			s.Budget.MaxFailedTrials = p.number(value)
		case "duration":
			s.Budget.MaxDuration = study.Duration(p.duration(value))
		case "retry-lost":
			n := p.number(value)
			s.Trial.Retries.Lost = &n
		case "retry-timeout":
			n := p.number(value)
			s.Trial.Retries.Timeout = &n
		case "retry-failed":
			n := p.number(value)
			s.Trial.Retries.Failed = &n
		case "wait", "fallback-after":
			d := study.Duration(p.duration(value))
			if key == "wait" {
				s.Algorithm.Wait = &d
			} else {
				s.Algorithm.FallbackAfter = &d
			}
		case "blind":
			set.Blind = true
		case "fallback":
			set.Fallback = true
			p.later = value == "later"
		default:
			p.t.Fatalf("unknown option %q", a)
		}
	}
}

func (p *player) number(s string) int {
	p.t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

func (p *player) float(s string) float64 {
	p.t.Helper()
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		p.t.Fatal(err)
	}
	return v
}

func (p *player) duration(s string) time.Duration {
	p.t.Helper()
	d, err := time.ParseDuration(s)
	if err != nil {
		p.t.Fatal(err)
	}
	return d
}

// describe prints an Output, a line for each thing.
func describe(out Output) []string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for _, t := range out.Trials {
		add("trial %d %s, %s", t.Number, t.State, describeAttempt(*t.Last()))
	}
	if out.Status != nil {
		add("%s", describeStatus(*out.Status))
	}
	if out.Model != nil {
		add("model %q of request %d", out.Model.State, out.Model.Request)
	}
	if out.Study != nil {
		add("study: %d trials, parallelism %d", out.Study.Definition.Spec.Budget.MaxTrials, out.Study.Definition.Spec.Parallelism)
	}
	for _, a := range out.Publish {
		extra := ""
		if a.Checkpoint != "" {
			extra = " from " + a.Checkpoint
		}
		add("publish %s%s", name(a.AttemptID), extra)
	}
	for _, a := range out.Withdraw {
		add("withdraw %s", name(a.AttemptID))
	}
	for _, c := range out.Cancels {
		how := "cancel"
		if c.Prune {
			how = "stop early"
		}
		add("%s %s at %s: %s", how, name(c.Attempt), c.Worker, c.Reason)
	}
	for _, a := range out.Avoids {
		add("avoid %s: %s", a.Worker, a.Reason)
	}
	for _, a := range out.DeadLetters {
		add("archive %s of %s: %s", name(a.Result.AttemptID), a.Result.Worker, a.Reason)
	}
	for _, r := range out.Receipts {
		add("receipt %s to %s: %s", name(r.Attempt), r.Worker, r.Disposition)
	}
	for _, t := range out.Ended {
		add("ended: trial %d %s", t.Number, t.State)
	}
	if out.Ask != nil {
		add("ask for %d: request %d from %d", out.Ask.N, out.Ask.Request, out.Ask.From)
	}
	if out.Fallback != nil {
		add("ask for %d fallbacks: request %d from %d", out.Fallback.N, out.Fallback.Request, out.Fallback.From)
	}
	for _, w := range out.Warnings {
		add("warning: %s", w)
	}
	return lines
}

func name(id messaging.AttemptID) string { return fmt.Sprintf("%d/%d", id.Trial, id.Attempt) }

func describeAttempt(a record.Attempt) string {
	s := fmt.Sprintf("attempt %d %s", a.Number, a.State)
	if a.Worker != "" {
		s += " on " + a.Worker
	}
	if a.Failure != nil {
		s += " (" + a.Failure.Message + ")"
	}
	return s
}

func describeStatus(s record.Status) string {
	c := s.Counts
	line := fmt.Sprintf("study %s at %d", s.State, s.Position)
	for _, x := range []struct {
		n    int
		what string
	}{
		{c.Pending, "pending"}, {c.Queued, "queued"}, {c.Running, "running"}, {c.Completed, "completed"},
		{c.Failed, "failed"}, {c.Infeasible, "infeasible"}, {c.Pruned, "pruned"}, {c.Cancelled, "cancelled"},
	} {
		if x.n > 0 {
			line += fmt.Sprintf(", %d %s", x.n, x.what)
		}
	}
	if s.Reason != "" {
		line += ": " + s.Reason
	}
	return line
}
