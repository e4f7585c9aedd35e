package backend

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/coordinator/seal"
	"github.com/fantasia-hpo/fantasia/internal/app/inject"
	"github.com/fantasia-hpo/fantasia/internal/base/embedded"
	"github.com/fantasia-hpo/fantasia/internal/test/membus"
	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
	"github.com/fantasia-hpo/fantasia/internal/test/testleader"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/optimizer"
	"github.com/fantasia-hpo/fantasia/study"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newBackend starts a leader over an etcd and a bus in memory.
func newBackend(t *testing.T) (context.Context, *Backend, *membus.Broker) {
	t.Helper()
	r := newReplica(t, 10*time.Second)
	return r.ctx, r.Backend, r.broker
}

// replica is a leader with what it runs on.
type replica struct {
	*Backend
	ctx    context.Context
	broker *membus.Broker
	client *clientv3.Client
}

func newReplica(t testing.TB, lease time.Duration, change ...func(*coordinator.Options)) *replica {
	t.Helper()
	patience := time.Minute
	if _, ok := t.(*testing.B); ok {
		patience = time.Hour // a benchmark first fills etcd
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	var client *clientv3.Client
	l, broker := testleader.Lead(t, func(o *coordinator.Options) {
		o.LeaseTTL = lease
		for _, f := range change {
			f(o)
		}
		client = o.Etcd
	})
	return &replica{New(l.Coordinator, ledger.New(client, ledger.Options{})), ctx, broker, client}
}

// realEtcd makes a replica use a real etcd, for what one in memory has not: an address, and a disk.
func realEtcd(t testing.TB) func(*coordinator.Options) {
	t.Helper()
	etcd, err := embedded.StartEtcd(t.Context(), embedded.EtcdOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	client, err := etcd.Client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(client.Close(), etcd.Close()); err != nil {
			t.Error(err)
		}
	})
	return func(o *coordinator.Options) { o.Etcd = client }
}

// evaluate is a worker of one slot that answers x squared until the test ends.
func evaluate(t *testing.T, b *membus.Broker) {
	t.Helper()
	bus, err := b.Worker("w", "default")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- answer(ctx, bus) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		_ = bus.Close()
	})
}

// answer answers until something fails, be it only because ctx has ended.
func answer(ctx context.Context, bus *membus.Worker) error {
	for n := 0; ; n++ {
		if err := bus.Heartbeat(ctx, &messaging.Heartbeat{Worker: "w", Pool: "default", Instance: "1", Slots: 1, Free: 1, At: time.Now(),
			StudyCommands: true}); err != nil {
			return err
		}
		d, err := bus.Fetch(ctx)
		if err != nil {
			return err
		}
		a, now := d.Assignment(), time.Now()
		x := a.Parameters["x"].(float64)
		x *= x
		err = errors.Join(
			bus.Claim(ctx, fmt.Sprint(n), &messaging.Claim{AttemptID: a.AttemptID, Pool: "default", Worker: "w", At: now}),
			d.Ack(ctx),
			bus.PublishResult(ctx, &messaging.Result{AttemptID: a.AttemptID, Worker: "w", Outcome: messaging.OutcomeCompleted, Values: []float64{x},
				Started: now, Ended: now}))
		if err != nil {
			return err
		}
	}
}

const file = `
apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: %s}
spec:
  objective: {metric: loss, direction: minimize}
  parameters: [{name: x, type: float, min: -1, max: 1}]
  algorithm: {name: gp, settings: {noise: "no"}, seed: 1}
  budget: {maxTrials: %d}
  parallelism: 2
  pool: %s
  trial: {command: [/bin/true]}
`

// The watches of a study and of its trials end with the study: the one with its
// last state and its recommendation, the other with every trial's.
func TestWatchesEndWithTheStudy(t *testing.T) {
	ctx, b, broker := newBackend(t)
	const trials = 12
	created, err := b.Create(ctx, fmt.Appendf(nil, file, "watched", trials, "default"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(created.Status.Reason, `no worker of pool "default"`) {
		t.Errorf("a study without workers says %q", created.Status.Reason)
	}
	last := make(chan server.Study, 1)
	go func() {
		defer close(last)
		var s server.Study
		for next, err := range b.WatchStudy(ctx, "watched") {
			if err != nil {
				t.Error(err)
			}
			s = next
		}
		last <- s
	}()
	evaluate(t, broker)
	states := map[int]study.TrialState{}
	for tr, err := range b.WatchTrials(ctx, "watched", true) {
		if err != nil {
			t.Fatal(err)
		}
		states[tr.Number] = tr.State
	}
	for n := 1; n <= trials; n++ {
		if states[n] != study.TrialCompleted {
			t.Errorf("the watch ended with trial %d %q", n, states[n])
		}
	}
	if s := <-last; s.Status.State != study.Completed || s.Status.Counts.Completed != trials || s.Best == nil || s.Recommended == nil {
		t.Errorf("the watch ended with the study %+v (best %v, recommended %v)", s.Status, s.Best, s.Recommended)
	}
	// Lists show what the leader recommended: soon of all trials.
	testenv.Eventually(t, 30*time.Second, func(ctx context.Context) error {
		all, err := b.Studies(ctx, "", 10)
		if err != nil {
			return err
		}
		if s := all[0]; s.Recommended == nil || s.Recommended.Point == nil || s.Status.Recommended.Position != s.Status.Position {
			return fmt.Errorf("the list has the study %+v, recommended %v", s.Status, s.Recommended)
		}
		return nil
	})
	// Of an ended study: all that there is, or nothing that is new.
	for existing, want := range map[bool]int{true: trials, false: 0} {
		n := 0
		for _, err := range b.WatchTrials(ctx, "watched", existing) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n != want {
			t.Errorf("the watch of an ended study's trials (existing: %t) has %d, want %d", existing, n, want)
		}
	}
	// What a watch does not keep is read from the ledger. If there is less, the study was deleted.
	for _, numbers := range [][]int{{3, 4, 5, 9}, {11, 12, 13}} {
		w := newTrialWatch(0)
		for _, n := range numbers {
			w.order, w.trials[n] = append(w.order, n), nil
		}
		var got []int
		more := b.sendTrials(ctx, w, created.Spec.ID, func(tr record.Trial, err error) bool {
			got = append(got, tr.Number)
			return err == nil && tr.State == study.TrialCompleted
		})
		there := slices.DeleteFunc(slices.Clone(numbers), func(n int) bool { return n > trials })
		if more != (len(there) == len(numbers)) || !slices.Equal(got, there) {
			t.Errorf("trials %v are read as %v; more are wanted: %t", numbers, got, more)
		}
	}
	if list, err := b.Trials(ctx, "watched", 4, 5); err != nil || len(list) != 5 || list[0].Number != 5 {
		t.Errorf("a page of trials: %+v, %v", list, err)
	}
}

// A reader who does not come back holds nothing up: what changes meanwhile waits
// once, as it was last, and of more trials than are kept only the number.
func TestTrialsWaitForASlowReader(t *testing.T) {
	const more = 2*maxRead + 3
	w := newTrialWatch(1)
	states := []study.TrialState{study.TrialQueued, study.TrialRunning, study.TrialCompleted}
	changes := []ledger.Change{{Reset: true, Revision: 1}, {Trial: &record.Trial{Number: maxKept + more + 1}, Revision: 1}}
	for i, state := range states {
		for n := 1; n <= maxKept+more; n++ {
			changes = append(changes, ledger.Change{Revision: int64(2 + i), Trial: &record.Trial{Number: n, State: state}})
		}
	}
	for _, c := range changes {
		if err := w.receive(c); err != nil {
			t.Fatal(err)
		}
	}
	next, read := 1, []int{}
	for b := range w.waiting() {
		if b.number != next || b.trial == nil != (b.number > maxKept) ||
			b.trial != nil && (b.trial.Number != next || b.trial.State != study.TrialCompleted) {
			t.Fatalf("%+v, want trial %d as it was last", b, next)
		}
		if next += b.count; b.trial == nil {
			read = append(read, b.count)
		}
	}
	if next != maxKept+more+1 || !slices.Equal(read, []int{maxRead, maxRead, 3}) {
		t.Errorf("trials up to %d wait, want all %d; %v are read at once", next-1, maxKept+more, read)
	}
	if err := w.receive(ledger.Change{Revision: 9, Trial: &record.Trial{Number: 1, State: study.TrialCompleted}}); err != nil {
		t.Fatal(err)
	}
	if b, ok := w.takeNext(); !ok || b.number != 1 || b.trial == nil {
		t.Errorf("a change after all were taken: %+v", b)
	}
}

func TestWatchesEndWithTheStudysDeletion(t *testing.T) {
	ctx, b, _ := newBackend(t)
	if _, err := b.Create(ctx, fmt.Appendf(nil, file, "gone", 5, "default")); err != nil {
		t.Fatal(err)
	}
	n := 0
	for s, err := range b.WatchStudy(ctx, "gone") {
		if err != nil || s.Status.State != study.Running && s.Status.State != study.Stopped {
			t.Errorf("%+v, %v", s.Status, err)
		}
		if n++; n == 1 {
			if err := b.Delete(ctx, "gone", true); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n == 0 {
		t.Error("the watch showed nothing")
	}
	for _, err := range b.WatchStudy(ctx, "gone") {
		if !errors.Is(err, study.ErrNotFound) {
			t.Errorf("watch a deleted study: %v", err)
		}
	}
	for _, err := range b.WatchTrials(ctx, "gone", true) {
		if !errors.Is(err, study.ErrNotFound) {
			t.Errorf("watch a deleted study's trials: %v", err)
		}
	}
}

func TestErrorsInTheAPIsWords(t *testing.T) {
	ctx, b, _ := newBackend(t)
	if _, err := b.Create(ctx, fmt.Appendf(nil, file, "s", 5, "default")); err != nil {
		t.Fatal(err)
	}
	_, errTwice := b.Create(ctx, fmt.Appendf(nil, file, "s", 5, "default"))
	_, errFit := b.Update(ctx, "s", []byte(strings.Replace(fmt.Sprintf(file, "s", 5, "default"), "loss", "other", 1)), 0)
	_, errNone := b.Study(ctx, "none")
	_, errTrial := b.Trial(ctx, "s", 99)
	for what, pair := range map[string][2]error{
		"create twice":               {errTwice, study.ErrExists},
		"update by another":          {errFit, study.ErrPrecondition},
		"delete a running one":       {b.Delete(ctx, "s", false), study.ErrPrecondition},
		"get none":                   {errNone, study.ErrNotFound},
		"get no trial":               {errTrial, study.ErrNotFound},
		"a write of unknown outcome": {translate(fmt.Errorf("commit: %w", ledger.ErrUnknown)), study.ErrUnavailable},
	} {
		if !errors.Is(pair[0], pair[1]) {
			t.Errorf("%s: %v, want %v", what, pair[0], pair[1])
		}
	}
	_, err := b.Create(ctx, []byte("kind: Study"))
	if _, ok := errors.AsType[*study.Problems](err); !ok {
		t.Errorf("a bad study file: %v", err)
	}
}

func TestADamagedStudyHidesNoOther(t *testing.T) {
	b := newReplica(t, 10*time.Second)
	ctx, client := b.ctx, b.client
	for _, name := range []string{"damaged", "sound"} {
		if _, err := b.Create(ctx, fmt.Appendf(nil, file, name, 5, "default")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.Put(ctx, ledger.DefaultPrefix+"names/damaged", "{"); err != nil {
		t.Fatal(err)
	}
	listed, err := b.Studies(ctx, "", 10)
	if err != nil || len(listed) != 2 {
		t.Fatalf("listed %+v, %v; want two studies", listed, err)
	}
	if got := listed[0]; got.Spec.Definition.Metadata.Name != "damaged" || !strings.Contains(got.Status.Reason, "names/damaged") {
		t.Errorf("the damaged study %+v; want its name and what is damaged", got)
	}
	if got := listed[1]; got.Spec.Definition.Metadata.Name != "sound" || got.Status.State != study.Running {
		t.Errorf("the other study %+v; want it running", got)
	}
}

// A damaged trial is told with its key by the calls that read it. Other trials can be read.
func TestDamagedTrial(t *testing.T) {
	b := newReplica(t, 10*time.Second)
	ctx, client := b.ctx, b.client
	s, err := b.Create(ctx, fmt.Appendf(nil, file, "damaged", 2, "default"))
	if err != nil {
		t.Fatal(err)
	}
	evaluate(t, b.broker)
	for _, err := range b.WatchStudy(ctx, "damaged") { // until it ends
		if err != nil {
			t.Fatal(err)
		}
	}
	key := ledger.DefaultPrefix + "studies/" + s.Spec.ID + "/trials/00000002"
	found, err := client.Get(ctx, key)
	if err != nil || len(found.Kvs) != 1 {
		t.Fatal(found, err)
	}
	flipped := found.Kvs[0].Value
	flipped[len(flipped)/2] ^= 1
	if _, err := client.Put(ctx, key, string(flipped)); err != nil {
		t.Fatal(err)
	}
	_, errTrial := b.Trial(ctx, "damaged", 2)
	_, errTrials := b.Trials(ctx, "damaged", 0, 10)
	for _, err := range []error{errTrial, errTrials} {
		if !errors.Is(err, study.ErrDamaged) || !strings.Contains(err.Error(), key) || strings.Contains(err.Error(), "study "+s.Spec.ID) {
			t.Errorf("%v; want ErrDamaged with the key %s", err, key)
		}
	}
	if _, err := b.Trial(ctx, "damaged", 1); err != nil {
		t.Errorf("another trial: %v", err)
	}
}

// Only a study that is a resource has a namespace for a Job. Through the API none can be
// created, nor can a study get one later.
func TestNoJobsThroughTheAPI(t *testing.T) {
	ctx, b, _ := newBackend(t)
	const job = "job: {spec: {template: {spec: {containers: [{name: a, image: b}]}}}}"
	for name, want := range map[string]string{"digits": "spec.trial.job: only a Study resource of Kubernetes can bring a Job",
		"team-a.digits": "metadata.name"} {
		text := strings.Replace(fmt.Sprintf(file, name, 5, "default"), "{command: [/bin/true]}", "{"+job+"}", 1)
		if _, err := b.Create(ctx, []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want …%s…", name, err, want)
		}
	}
	if _, err := b.Create(ctx, fmt.Appendf(nil, file, "digits", 5, "default")); err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(fmt.Sprintf(file, "digits", 5, "default"), "{command: [/bin/true]}", "{"+job+"}", 1)
	if _, err := b.Update(ctx, "digits", []byte(text), 0); err == nil || !strings.Contains(err.Error(), "spec.trial.job was null and is") {
		t.Errorf("an update: %v", err)
	}
}

func TestIdle(t *testing.T) {
	w := func(pool string, own, studies, leaving bool) coordinator.Worker {
		return coordinator.Worker{Heartbeat: messaging.Heartbeat{Pool: pool, OwnCommand: own, StudyCommands: studies, Leaving: leaving}}
	}
	jobs := w("p", false, false, false)
	jobs.StudyJobs = true
	for _, test := range []struct {
		name    string
		workers []coordinator.Worker
		want    string // a part of it; empty where a worker may run it
		job     *study.Job
	}{
		{"nobody", nil, `no worker of pool "p" is known: start one with --pool p`, nil},
		{"another pool", []coordinator.Worker{w("q", true, true, false)}, "no worker", nil},
		{"leaving", []coordinator.Worker{w("p", true, true, true)}, "no worker", nil},
		{"runs no commands of studies", []coordinator.Worker{w("p", false, false, false), w("p", false, false, false)}, "--allow-study-commands",
			nil},
		{"a command of its own", []coordinator.Worker{w("p", false, false, false), w("p", true, false, false)}, "", nil},
		{"no Jobs of studies", []coordinator.Worker{w("p", true, true, false)}, "--study-jobs", &study.Job{}},
		{"Jobs of studies", []coordinator.Worker{w("p", true, true, false), jobs}, "", &study.Job{}},
		{"nothing but Jobs of studies", []coordinator.Worker{jobs}, "--allow-study-commands", nil},
		{"the study's command", []coordinator.Worker{w("p", false, true, false)}, "", nil},
	} {
		spec := &study.Spec{Pool: "p", Trial: study.TrialTemplate{Job: test.job}}
		if got := idle(spec, test.workers); !strings.Contains(got, test.want) || (got == "") != (test.want == "") {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// A study says which of its messages were set aside, and why.
func TestMessagesSetAsideAreShown(t *testing.T) {
	r := newReplica(t, 10*time.Second)
	ctx, b, client := r.ctx, r.Backend, r.client
	s, err := b.Create(ctx, []byte(fmt.Sprintf(file, "aside", 3, "default")))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		raw := fmt.Sprintf(`{"study":%q,"subject":"fantasia.result","reason":"reason %d","refused":"no space left","raw":"AA=="}`, s.Spec.ID, i)
		key := fmt.Sprintf("%saside/%s/%d", ledger.DefaultPrefix, s.Spec.ID, i)
		if _, err := client.Put(ctx, key, seal.Seal(key, []byte(raw))); err != nil {
			t.Fatal(err)
		}
	}
	found, err := b.Study(ctx, "aside")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"no worker of pool", "2 messages were set aside", "(no space left)", "the last one: reason 1"} {
		if !strings.Contains(found.Status.Reason, want) {
			t.Errorf("the reason is %q, without %q", found.Status.Reason, want)
		}
	}
}

// stuck is an optimiser whose model takes as long as its caller waits for it.
type stuck struct{ optimizer.Optimizer }

func (stuck) Recommend(ctx context.Context, _ *optimizer.Problem, _ optimizer.State) (*optimizer.Recommendation, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// Requests for an ended study do not wait for its model.
func TestGetAndStopFitNoModel(t *testing.T) {
	r := newReplica(t, 10*time.Second, func(o *coordinator.Options) {
		o.NewOptimizer = func(a study.Algorithm) (optimizer.Optimizer, error) {
			o, err := inject.NewOptimizer(a)
			return stuck{o}, err
		}
	})
	if _, err := r.Create(r.ctx, fmt.Appendf(nil, file, "slow", 3, "default")); err != nil {
		t.Fatal(err)
	}
	evaluate(t, r.broker)
	for {
		s, err := r.Study(r.ctx, "slow")
		if err != nil {
			t.Fatal(err)
		}
		if s.Status.State.Terminal() {
			if s.Best == nil || s.Recommended != nil {
				t.Errorf("an ended study without a model shows the best trial %v and recommends %v; want only a best trial", s.Best, s.Recommended)
			}
			break
		}
		select {
		case <-r.ctx.Done():
			t.Fatal(context.Cause(r.ctx))
		case <-time.After(5 * time.Millisecond):
		}
	}
	if _, err := r.Stop(r.ctx, "slow", ""); err != nil {
		t.Errorf("stop: %v", err)
	}
}
