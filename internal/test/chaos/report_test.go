package chaos

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
)

// report is what a run of faults has shown. Safe for concurrent use.
type report struct {
	mu     sync.Mutex
	seed   uint64
	faults map[string]*times // by kind
	// studies and trials have ended, attempts are of these trials.
	studies, trials, attempts int
	// operations are those of clients for which an order was found.
	operations int
	// lost, toldTwice and runTwice count what must not happen.
	lost, toldTwice, runTwice int
	// answers are those of the API, by call and code.
	answers map[string]int
	wrong   []string // answers that no caller can do anything with
}

// times are how long after each fault something was committed, and something of each
// study.
type times struct{ first, all []time.Duration }

// wronged counts what must not happen.
func (r *report) wronged(f findings) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost, r.toldTwice, r.runTwice = r.lost+len(f.lost), r.toldTwice+len(f.toldTwice), r.runTwice+len(f.runTwice)
}

// recovered notes how long after a fault something was committed.
func (r *report) recovered(kind string, after time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.faults[kind] == nil {
		r.faults[kind] = &times{}
	}
	r.faults[kind].first = append(r.faults[kind].first, after)
}

// allRecovered notes how long after a fault every study had gone on.
func (r *report) allRecovered(kind string, after time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults[kind].all = append(r.faults[kind].all, after)
}

// studyEnded counts a study for whose operations an order was found.
func (r *report) studyEnded(records *ledger.Records, operations int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.studies++
	r.operations += operations
	for i := range records.Trials {
		r.trials++
		r.attempts += len(records.Trials[i].Attempts)
	}
}

// answered counts an answer. A fault of a part of the system must not look like one of
// the program: callers try again only what is unavailable.
func (r *report) answered(call string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	code := "ok"
	if err != nil {
		code = connect.CodeOf(err).String()
	}
	if code == connect.CodeCanceled.String() && !connect.IsWireError(err) {
		code = "connection lost" // nobody here cancels calls: the client's library calls it so
	}
	r.answers[call+" "+code]++
	switch connect.CodeOf(err) {
	case connect.CodeInternal, connect.CodeDataLoss, connect.CodeInvalidArgument, connect.CodeNotFound:
		if err != nil && connect.IsWireError(err) {
			r.wrong = append(r.wrong, fmt.Sprintf("%s: %v", call, err))
		}
	default:
	}
}

// percent is the least of sorted times that so many percent of them do not exceed.
func percent(sorted []time.Duration, n int) string {
	if len(sorted) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f s", sorted[(len(sorted)*n+99)/100-1].Seconds())
}

// String is the report as Markdown.
func (r *report) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var every times
	for _, t := range r.faults {
		every.first, every.all = append(every.first, t.first...), append(every.all, t.all...)
	}
	slices.Sort(every.first)
	slices.Sort(every.all)
	var b strings.Builder
	fmt.Fprintf(&b, "Seed %d: %d faults of %d kinds.\n\n", r.seed, len(every.first), len(r.faults))
	fmt.Fprintf(&b, "| | |\n| --- | ---: |\n")
	for _, row := range []struct {
		what  string
		count int
	}{
		{"studies that ended", r.studies},
		{"trials of them", r.trials},
		{"their attempts", r.attempts},
		{"trials lost", r.lost},
		{"results told twice", r.toldTwice},
		{"attempts run twice", r.runTwice},
		{"operations of clients put in order", r.operations},
	} {
		fmt.Fprintf(&b, "| %s | %d |\n", row.what, row.count)
	}
	fmt.Fprintf(&b, "\n| from a fault to a commit | median | 90%% | 99%% | longest |\n| --- | ---: | ---: | ---: | ---: |\n")
	for _, row := range []struct {
		of    string
		times []time.Duration
	}{{"of any study", every.first}, {"of every study", every.all}} {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", row.of,
			percent(row.times, 50), percent(row.times, 90), percent(row.times, 99), percent(row.times, 100))
	}
	fmt.Fprintf(&b, "\n| fault | times | median until a commit | longest |\n| --- | ---: | ---: | ---: |\n")
	for _, kind := range slices.Sorted(maps.Keys(r.faults)) {
		sorted := slices.Sorted(slices.Values(r.faults[kind].first))
		fmt.Fprintf(&b, "| %s | %d | %s | %s |\n", kind, len(sorted), percent(sorted, 50), percent(sorted, 100))
	}
	return b.String()
}
