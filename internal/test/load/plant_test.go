package load

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/nats-io/nats.go/jetstream"
	clientv3 "go.etcd.io/etcd/client/v3"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/fantasia/v1/fantasiav1connect"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
	"github.com/fantasia-hpo/fantasia/study"
)

// plant is a nats-server, an etcd, a coordinator and crews of workers, each a process of
// its own. Its methods are for the test's own goroutine.
type plant struct {
	t           testing.TB
	dir         string // of everything but the workers
	nats        *testenv.NATS
	etcd        *testenv.Etcd
	coordinator *testenv.Process
	profiler    string
	client      *clientv3.Client
	ledger      *ledger.Ledger
	api         fantasiav1connect.StudyServiceClient
	http        *http.Client

	crews     []crew
	processes []*testenv.Process // of the crews
	studies   []planned
	stop      func() // ends the sampler
	sampler   sync.WaitGroup
	samples   []sample
}

// planned is a study and what it must come to.
type planned struct {
	name, id, pool      string
	trials, parallelism int
}

// sample is how far the studies were at a time.
type sample struct {
	at time.Time
	// created and completed are by study, in the order of plant.studies.
	created, completed []int
}

// total is the sum of a list.
func total(list []int) (n int) {
	for _, v := range list {
		n += v
	}
	return n
}

// startPlant starts everything but the workers.
func startPlant(t testing.TB) *plant {
	t.Helper()
	p := &plant{t: t, dir: t.TempDir(), http: &http.Client{Timeout: 30 * time.Second}}
	t.Cleanup(p.http.CloseIdleConnections)
	p.nats = testenv.StartNATS(t, testenv.NATSConfig{SyncAlways: *syncAlways})
	p.etcd = testenv.StartEtcd(t, "--auto-compaction-mode=periodic", "--auto-compaction-retention=1m")
	p.client = testenv.EtcdClient(t, p.etcd.URL)
	p.ledger = ledger.New(p.client, ledger.Options{})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t))
	p.profiler = fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t))
	p.coordinator = testenv.Start(t, self, []string{
		"--etcd", p.etcd.URL, "--nats", p.nats.URL, "--listen", address, "--name", "coordinator",
	}, []string{coordinatorRole + "=" + p.profiler}, func(ctx context.Context) error {
		return testenv.Answers(ctx, p.http, "http://"+address+"/readyz")
	})
	p.api = fantasiav1connect.NewStudyServiceClient(p.http, "http://"+address)
	return p
}

// create creates a study of random points.
func (p *plant) create(s planned) {
	p.t.Helper()
	file := fmt.Sprintf(`
apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: %s}
spec:
  objective: {metric: loss, direction: minimize}
  parameters: [{name: x, type: float, min: 0, max: 1}, {name: y, type: float, min: 0, max: 1}]
  algorithm: {name: random, seed: 1}
  budget: {maxTrials: %d}
  parallelism: %d
  pool: %s
  trial: {command: [unused]}
`, s.name, s.trials, s.parallelism, s.pool)
	testenv.Eventually(p.t, time.Minute, func(ctx context.Context) error { // a new leader asks to try again
		_, err := p.api.CreateStudy(ctx, connect.NewRequest(&fantasiav1.CreateStudyRequest{StudyFile: file}))
		if err == nil || connect.CodeOf(err) == connect.CodeAlreadyExists {
			s.id, err = p.ledger.ID(ctx, s.name)
		}
		return err
	})
	p.studies = append(p.studies, s)
}

// hire starts a crew and waits until its workers take trials. What workers keep on disk is
// in memory where the machine has such a directory: one disk would stand for a thousand.
func (p *plant) hire(c crew) {
	p.t.Helper()
	base := ""
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		base = "/dev/shm"
	}
	dir, err := os.MkdirTemp(base, "fantasia-load-")
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = os.RemoveAll(dir) })
	c.NATS, c.Dir, c.Name = p.nats.URL, dir, fmt.Sprintf("crew%d", len(p.crews))
	text, err := json.Marshal(c)
	if err != nil {
		p.t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	p.crews = append(p.crews, c)
	w := testenv.Start(p.t, self, nil, []string{workersRole + "=" + string(text)}, nil)
	p.processes = append(p.processes, w)
	testenv.Eventually(p.t, patience, func(context.Context) error { // a thousand connections take a while
		if state := w.State(); state != "" {
			p.t.Fatalf("workers end with %s:\n%s", state, w.Output())
		}
		_, err := os.Stat(c.begunFile())
		return err
	})
}

// observe samples the ledger until the plant is closed.
func (p *plant) observe() {
	ctx, cancel := context.WithCancel(p.t.Context())
	p.stop = cancel
	p.t.Cleanup(func() { cancel(); p.sampler.Wait() })
	studies := p.studies
	p.sampler.Go(func() {
		tick := time.NewTicker(sampleEvery)
		defer tick.Stop()
		for {
			s := sample{at: time.Now()}
			for i := range studies {
				if found, err := p.ledger.Study(ctx, studies[i].id); err == nil {
					s.created = append(s.created, found.Status.Trials)
					s.completed = append(s.completed, found.Status.Counts.Completed)
				}
			}
			if len(s.created) == len(studies) {
				p.samples = append(p.samples, s)
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
}

// await waits until a number of a study's trials have completed, and returns how many have
// by then.
func (p *plant) await(s planned, completed int) int {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	for {
		found, err := p.ledger.Study(ctx, s.name)
		if err == nil && found.Status.Counts.Completed >= completed {
			return found.Status.Counts.Completed
		}
		if err == nil && found.Status.State != study.Running {
			p.t.Fatalf("%s is %s (%s) with %+v, want %d completed trials", s.name, found.Status.State, found.Status.Reason, found.Status.Counts,
				completed)
		}
		select {
		case <-ctx.Done():
			p.t.Fatalf("%s: fewer than %d trials are completed within %s: %+v, %v", s.name, completed, patience, found.Status.Counts, err)
		case <-time.After(sampleEvery):
		}
	}
}

// close asks the crews to end, and returns what they did. Each study is held against it.
func (p *plant) close() (events []event, wrong findings) {
	p.t.Helper()
	p.stop()
	p.sampler.Wait()
	var all []event
	for i, w := range p.processes {
		w.Stop()
		if state := w.State(); state != "exit status 0" {
			p.t.Fatalf("workers end with %s, want exit status 0:\n%s", state, w.Output())
		}
		all = append(all, readEvents(p.t, p.crews[i].eventsFile())...)
	}
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	for _, s := range p.studies {
		records, err := p.ledger.LoadStudy(ctx, s.id)
		if err == nil {
			err = records.Err
		}
		if err != nil {
			p.t.Fatal(err)
		}
		wrong.judge(s, records, all)
	}
	for _, err := range wrong.all() {
		p.t.Error(err)
	}
	return all, wrong
}

func readEvents(t testing.TB, name string) (events []event) {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for d := json.NewDecoder(bufio.NewReader(file)); ; {
		var e event
		if err := d.Decode(&e); errors.Is(err, io.EOF) {
			return events
		} else if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
}

// cpu is the processor time that processes have used.
type cpu struct{ coordinator, nats, etcd, workers time.Duration }

// used is the processor time that each kind of process has used until now.
func (p *plant) used() cpu {
	c := cpu{coordinator: cpuOf(p.coordinator.PID()), nats: cpuOf(p.nats.PID()), etcd: cpuOf(p.etcd.PID())}
	for _, w := range p.processes {
		c.workers += cpuOf(w.PID())
	}
	return c
}

// cpuOf is the processor time of a process; 0 where /proc does not have it.
func cpuOf(pid int) time.Duration {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ") // the name of the program may have spaces
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	var ticks int
	for _, f := range fields[11:13] { // user and system time, in hundredths of a second
		n, err := strconv.Atoi(f)
		if err != nil {
			return 0
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// profile fetches a profile of the coordinator.
func (p *plant) profile(ctx context.Context, query string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.profiler+"/debug/pprof/"+query, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	return io.ReadAll(answer.Body)
}

// heap is what the coordinator's heap holds after a collection, in bytes.
func (p *plant) heap() int {
	p.t.Helper()
	text, err := p.profile(p.t.Context(), "heap?gc=1&debug=1")
	if err != nil {
		p.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "# HeapAlloc = ")
	number, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.Atoi(number)
	if err != nil {
		p.t.Fatalf("the heap's profile has no HeapAlloc: %v", err)
	}
	return n
}

// keepProfile writes a profile of the coordinator into the directory of profiles.
func (p *plant) keepProfile(name, query string) {
	p.t.Helper()
	data, err := p.profile(p.t.Context(), query)
	if err == nil {
		err = os.WriteFile(filepath.Join(*profiles, name), data, 0o644)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// reportsStored is how many measurements the stream has got so far.
func (p *plant) reportsStored() uint64 {
	p.t.Helper()
	js, err := jetstream.New(p.nats.Connect())
	if err != nil {
		p.t.Fatal(err)
	}
	var last uint64
	testenv.Eventually(p.t, time.Minute, func(ctx context.Context) error {
		s, err := js.Stream(ctx, "FANTASIA_METRIC")
		if err == nil {
			last = s.CachedInfo().State.LastSeq
		}
		return err
	})
	return last
}

// timed is how long a call takes that must succeed.
func timed(t testing.TB, call func(ctx context.Context) error) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	began := time.Now()
	if err := call(ctx); err != nil {
		t.Fatal(err)
	}
	return time.Since(began)
}

// measureAPI adds how long it takes to get a study, and the first and the last page of its
// trials.
func (p *plant) measureAPI(r *table, s planned, when string) {
	p.t.Helper()
	parent := "studies/" + s.name
	var get, first, later []time.Duration
	for range 20 {
		get = append(get, timed(p.t, func(ctx context.Context) error {
			_, err := p.api.GetStudy(ctx, connect.NewRequest(&fantasiav1.GetStudyRequest{Name: parent}))
			return err
		}))
		var token string
		first = append(first, timed(p.t, func(ctx context.Context) error {
			page, err := p.api.ListTrials(ctx, connect.NewRequest(&fantasiav1.ListTrialsRequest{Parent: parent}))
			if err == nil {
				token = page.Msg.GetNextPageToken()
			}
			return err
		}))
		later = append(later, timed(p.t, func(ctx context.Context) error {
			_, err := p.api.ListTrials(ctx, connect.NewRequest(&fantasiav1.ListTrialsRequest{Parent: parent, PageToken: token}))
			return err
		}))
	}
	r.times("get the study "+when, get)
	r.times("a page of 100 trials "+when, first)
	r.times("the next page "+when, later)
}
