package observe

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// failover runs a study whose leader is killed while trials run, and returns the
// records, when that was, and the epoch of the next.
func failover(t *testing.T, endpoint, name string, trials int) (stored *ledger.Records, killed time.Time, epoch int64) {
	t.Helper()
	in := install(t, endpoint, 12)
	in.create(name, trials)
	in.await(name, 4)
	p, _, before := in.Leader(0)
	killed = time.Now()
	p.Kill()
	_, _, epoch = in.Leader(before)
	stored = in.await(name, trials)
	if stored.Status.State != study.Completed || len(stored.Trials) != trials {
		t.Fatalf("the study is %s (%s) with %d trials", stored.Status.State, stored.Status.Reason, len(stored.Trials))
	}
	for _, c := range in.Coordinators { // what is ended is flushed
		if c.State() == "" {
			c.Stop()
		}
	}
	in.worker.Stop()
	return stored, killed, epoch
}

// TestTracesGoOnUnderTheNextLeader kills the leader while trials run: every trial,
// before, across and after that, is one whole trace.
func TestTracesGoOnUnderTheNextLeader(t *testing.T) {
	const trials = 12
	backend := newReceiver(t)
	stored, killed, epoch := failover(t, backend.url, "digits", trials)
	across := 0
	for i := range stored.Trials {
		tr := &stored.Trials[i]
		spans := backend.spans(tr.TraceID)
		checkTrial(t, tr, spans)
		checkResource(t, spans)
		if tr.Times.Claimed.Before(killed) && tr.Times.Folded.After(killed) {
			across++
		}
	}
	if across == 0 {
		t.Error("no trial ran across the failover")
	}
	checkRefits(t, stored, backend, elected(backend.all(), epoch))
}

// TestNoSpanIsSentAgain kills the leader when the ledger knows which trials' spans it has
// exported: the next one does not send these again.
func TestNoSpanIsSentAgain(t *testing.T) {
	const trials = 12
	backend := newReceiver(t)
	in := install(t, backend.url, 12)
	in.create("digits", trials)
	in.await("digits", 3)
	var sent time.Time
	known := func(tr record.Trial) bool { return !tr.Times.Folded.IsZero() && !tr.Times.Folded.After(sent) }
	for began, found := time.Now(), false; !found; time.Sleep(20 * time.Millisecond) {
		snapshot, err := in.Ledger.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		sent = snapshot.Traced
		trials := in.await("digits", 3).Trials // a snapshot leaves out those of a study that has ended
		if found = slices.ContainsFunc(trials, known); !found && time.Since(began) > 30*time.Second {
			t.Fatal("the ledger never knows that spans were exported")
		}
	}
	p, _, before := in.Leader(0)
	p.Kill()
	in.Leader(before)
	stored := in.await("digits", trials)
	for _, c := range in.Coordinators {
		if c.State() == "" {
			c.Stop()
		}
	}
	in.worker.Stop()
	exported, again := 0, 0
	for i := range stored.Trials {
		tr := &stored.Trials[i]
		times := map[string]int{}
		for _, s := range backend.spans(tr.TraceID) {
			times[s.id]++
		}
		doubled := 0
		for _, n := range times {
			doubled += n - 1
		}
		again += doubled
		if !known(*tr) {
			continue
		}
		if exported++; doubled > 0 || len(times) < 7 {
			t.Errorf("trial %d, which was exported, has %d spans, and %d of them again", tr.Number, len(times), doubled)
		}
	}
	t.Logf("%d trials were known to be exported; of all %d trials, %d spans came twice", exported, trials, again)
}

// elected is when the leader of an epoch first asked its optimiser.
func elected(spans []span, epoch int64) (first time.Time) {
	for _, s := range spans {
		if s.name == telemetry.SpanRefit && s.attributes[string(telemetry.AttrEpoch)] == strconv.FormatInt(epoch, 10) &&
			(first.IsZero() || s.start.Before(first)) {
			first = s.start
		}
	}
	return first
}

// checkResource holds that each process says where in Kubernetes it runs.
func checkResource(t *testing.T, spans []span) {
	t.Helper()
	for _, s := range spans {
		for key, want := range map[string]string{
			"k8s.namespace.name": "tuning", "k8s.pod.name": "pod-0", "k8s.node.name": "node-a", "k8s.container.name": "main",
			"service.namespace": "release",
		} {
			if got := s.resource[key]; got != want {
				t.Errorf("%s of %s says %s=%q, want %q", s.name, s.service, key, got, want)
			}
		}
	}
}

// checkRefits holds that refits and trials are linked both ways. What a killed
// leader's optimiser did in its last second has not left it, and is in no ledger:
// the refits that must be there are those since another leads.
func checkRefits(t *testing.T, stored *ledger.Records, backend *receiver, since time.Time) {
	t.Helper()
	trials := map[string]int{}
	for i := range stored.Trials {
		trials[stored.Trials[i].TraceID] = stored.Trials[i].Number
	}
	refits, folded := map[string]bool{}, map[int]int{}
	for _, s := range backend.all() {
		if s.name != telemetry.SpanRefit {
			continue
		}
		refits[s.trace] = true
		for _, l := range s.links {
			if trials[l] == 0 {
				t.Errorf("a refit is linked to the trace %s, which is no trial's", l)
			}
			folded[trials[l]]++
		}
	}
	for number, n := range folded {
		if n != 1 {
			t.Errorf("trial %d was folded by %d refits", number, n)
		}
	}
	if len(folded) == 0 {
		t.Error("no refit is linked to a trial")
	}
	for _, s := range backend.all() {
		if s.name == telemetry.SpanSuggest && !s.start.Before(since) && s.attributes[string(telemetry.AttrSource)] == "random" &&
			(len(s.links) != 1 || !refits[s.links[0]]) {
			t.Errorf("a suggestion is linked to %v, want its refit: %v", s.links, s.attributes)
		}
	}
}
