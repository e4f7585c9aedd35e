package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/test/testcluster"
	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
)

// kind is one kind of fault. play brings it about, says to whom, and returns what ends
// it. Between the two passes a random time.
type kind struct {
	name  string
	lasts span
	play  func(f *fleet, r *rand.Rand) (target string, end func())
}

// span is from and to which time a fault lasts.
type span struct{ least, most time.Duration }

var (
	atOnce = span{}
	// brief is shorter than any lease, long longer than those of leaders and workers.
	brief = span{200 * time.Millisecond, time.Second}
	long  = span{workerLease + 200*time.Millisecond, 2 * testcluster.LeaseTTL}
	// some can be either.
	some = span{brief.least, long.most}
)

const (
	// lag is how long data waits on a slow connection, in each direction.
	lag = 100 * time.Millisecond
)

func nothing() {}

// process is what both Fantasia's programs and the servers are.
type process interface {
	Kill()
	Stop()
	Pause()
	Resume()
	Relaunch()
}

func killed(ps ...process) func() {
	for _, p := range ps {
		p.Kill()
	}
	return func() { relaunch(ps) }
}

func stopped(ps ...process) func() {
	for _, p := range ps {
		p.Stop()
	}
	return func() { relaunch(ps) }
}

func relaunch(ps []process) {
	for _, p := range ps {
		p.Relaunch()
	}
}

func paused(ps ...process) func() {
	for _, p := range ps {
		p.Pause()
	}
	return func() {
		for _, p := range ps {
			p.Resume()
		}
	}
}

func stalled(proxies ...*testenv.Proxy) func() {
	for _, p := range proxies {
		p.Hold()
	}
	return func() { healAll(proxies) }
}

// unanswered lets requests through and loses their answers.
func unanswered(proxies ...*testenv.Proxy) func() {
	for _, p := range proxies {
		p.HoldReplies()
	}
	return func() {
		for _, p := range proxies {
			p.Drop()
		}
		healAll(proxies)
	}
}

func cut(proxies ...*testenv.Proxy) func() {
	for _, p := range proxies {
		p.Drop()
	}
	return nothing
}

func slow(proxies ...*testenv.Proxy) func() {
	for _, p := range proxies {
		p.Slow(lag)
	}
	return func() {
		for _, p := range proxies {
			p.Slow(0)
		}
	}
}

// onLeader is a fault of the coordinator that leads.
func onLeader(do func(s *site) func()) func(*fleet, *rand.Rand) (string, func()) {
	return func(f *fleet, _ *rand.Rand) (string, func()) {
		s := f.leader()
		return s.name, do(s)
	}
}

func onFollower(do func(s *site) func()) func(*fleet, *rand.Rand) (string, func()) {
	return func(f *fleet, r *rand.Rand) (string, func()) {
		s := f.follower(r)
		return s.name, do(s)
	}
}

func onWorker(do func(s *site) func()) func(*fleet, *rand.Rand) (string, func()) {
	return func(f *fleet, r *rand.Rand) (string, func()) {
		s := f.workers[r.IntN(workers)]
		return s.name, do(s)
	}
}

// onNATS and onEtcd are faults of n servers, from a random one on. The first of the
// etcds is the one that leads.
func onNATS(n int, do func(ps ...process) func()) func(*fleet, *rand.Rand) (string, func()) {
	return func(f *fleet, r *rand.Rand) (string, func()) {
		first := r.IntN(replicas)
		var ps []process
		for i := range n {
			ps = append(ps, f.nats[(first+i)%replicas])
		}
		return names("nats", first, n), do(ps...)
	}
}

func onEtcd(n int, do func(ps ...process) func()) func(*fleet, *rand.Rand) (string, func()) {
	return func(f *fleet, _ *rand.Rand) (string, func()) {
		first := f.etcdLeader()
		var ps []process
		for i := range n {
			ps = append(ps, f.etcd[(first+i)%replicas])
		}
		return names("etcd", first, n), do(ps...)
	}
}

// names are those of n servers from the first on.
func names(kind string, first, n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("%s-%d", kind, (first+i)%replicas))
	}
	return strings.Join(all, ", ")
}

// onAny is a fault of the connections between servers of one kind.
func onAny(name string, links func(f *fleet) []*testenv.Proxy, do func(...*testenv.Proxy) func()) func(*fleet, *rand.Rand) (string,
	func()) {
	return func(f *fleet, _ *rand.Rand) (string, func()) { return name, do(links(f)...) }
}

// onStream is what an administrator does to a stream.
func onStream(name string, do func(f *fleet, name string)) func(*fleet, *rand.Rand) (string, func()) {
	return func(f *fleet, _ *rand.Rand) (string, func()) {
		do(f, name)
		return name, nothing
	}
}

func (f *fleet) natsLinks() (all []*testenv.Proxy) {
	for _, p := range f.routes {
		all = append(all, p)
	}
	return all
}

func (f *fleet) etcdLinks() []*testenv.Proxy { return f.peers }

func (f *fleet) apiLinks() (all []*testenv.Proxy) {
	for _, c := range f.coordinators {
		all = append(all, c.api)
	}
	return all
}

func processes(sites []*site) (all []process) {
	for _, s := range sites {
		all = append(all, s)
	}
	return all
}

// kinds are the kinds of faults that each run plays.
var kinds = []kind{
	{"leader killed", brief, onLeader(func(s *site) func() { return killed(s) })},
	{"leader asked to end", brief, onLeader(func(s *site) func() { return stopped(s) })},
	{"leader stopped for longer than its lease", long, onLeader(func(s *site) func() { return paused(s) })},
	{"leader split from etcd", long, onLeader(func(s *site) func() { return stalled(s.etcd...) })},
	{"leader split from NATS", long, onLeader(func(s *site) func() { return stalled(s.nats...) })},
	{"leader split from all", long, onLeader(func(s *site) func() { return stalled(s.links()...) })},
	{"leader's connections to etcd slow", some, onLeader(func(s *site) func() { return slow(s.etcd...) })},
	{"leader's connections to NATS slow", some, onLeader(func(s *site) func() { return slow(s.nats...) })},
	{"answers of etcd to the leader lost", brief, onLeader(func(s *site) func() { return unanswered(s.etcd...) })},
	{"answers of NATS to the leader lost", brief, onLeader(func(s *site) func() { return unanswered(s.nats...) })},
	{"follower split from all", some, onFollower(func(s *site) func() { return stalled(s.links()...) })},
	{"all coordinators killed", brief, func(f *fleet, _ *rand.Rand) (string, func()) {
		return "coordinators", killed(processes(f.coordinators)...)
	}},
	{"connections to the API cut", atOnce, onAny("coordinators", (*fleet).apiLinks, cut)},
	{"answers of the API lost", brief, onAny("coordinators", (*fleet).apiLinks, unanswered)},

	{"nats-server killed", brief, onNATS(1, killed)},
	{"nats-server stopped", some, onNATS(1, paused)},
	{"nats-server split from the others", long, func(f *fleet, r *rand.Rand) (string, func()) {
		i := r.IntN(replicas)
		return names("nats", i, 1), f.splitNATS(i)
	}},
	{"two nats-servers killed", brief, onNATS(2, killed)},
	{"two nats-servers stopped", some, onNATS(2, paused)},
	{"all nats-servers killed", brief, onNATS(3, killed)},
	{"stream of assignments deleted", atOnce, onStream("FANTASIA_ASSIGN", (*fleet).deleteStream)},
	{"stream of results deleted", atOnce, onStream("FANTASIA_RESULT", (*fleet).deleteStream)},
	{"connections between nats-servers cut", atOnce, onAny("nats-servers", (*fleet).natsLinks, cut)},

	{"leading etcd killed", brief, onEtcd(1, killed)},
	{"leading etcd stopped", some, onEtcd(1, paused)},
	{"leading etcd split from the others", long, func(f *fleet, _ *rand.Rand) (string, func()) {
		i := f.etcdLeader()
		return names("etcd", i, 1), f.splitEtcd(i)
	}},
	{"two etcds killed", brief, onEtcd(2, killed)},
	{"two etcds stopped", some, onEtcd(2, paused)},
	{"all etcds killed", brief, onEtcd(3, killed)},
	{"connections between etcds cut", atOnce, onAny("etcds", (*fleet).etcdLinks, cut)},

	{"worker killed", brief, onWorker(func(s *site) func() { return killed(s) })},
	{"worker killed, its directory removed", brief, func(f *fleet, r *rand.Rand) (string, func()) {
		s := f.workers[r.IntN(workers)]
		again := killed(s)
		s.wipe(f.t)
		return s.name, again
	}},
	{"worker asked to end", brief, onWorker(func(s *site) func() { return stopped(s) })},
	{"worker stopped for longer than its lease", long, onWorker(func(s *site) func() { return paused(s) })},
	{"worker split from NATS", long, onWorker(func(s *site) func() { return stalled(s.nats...) })},
	{"all workers killed", brief, func(f *fleet, _ *rand.Rand) (string, func()) {
		return "workers", killed(processes(f.workers)...)
	}},
	{"coordinators and workers killed", brief, func(f *fleet, _ *rand.Rand) (string, func()) {
		return "coordinators and workers", killed(processes(slices.Concat(f.coordinators, f.workers))...)
	}},
}

// more are kinds that only longer runs play: each is much like one of the others.
var more = []kind{
	{"leader stopped for less than its lease", brief, onLeader(func(s *site) func() { return paused(s) })},
	{"leader's connections to etcd cut", atOnce, onLeader(func(s *site) func() { return cut(s.etcd...) })},
	{"leader's connections to NATS cut", atOnce, onLeader(func(s *site) func() { return cut(s.nats...) })},
	{"follower killed", brief, onFollower(func(s *site) func() { return killed(s) })},
	{"connections to the API slow", some, onAny("coordinators", (*fleet).apiLinks, slow)},
	{"nats-server asked to end", brief, onNATS(1, stopped)},
	{"consumers of assignments deleted", atOnce, onStream("FANTASIA_ASSIGN", (*fleet).deleteConsumers)},
	{"connections between nats-servers slow", some, onAny("nats-servers", (*fleet).natsLinks, slow)},
	{"leading etcd asked to end", brief, onEtcd(1, stopped)},
	{"connections between etcds slow", some, onAny("etcds", (*fleet).etcdLinks, slow)},
	{"worker's connections cut", atOnce, onWorker(func(s *site) func() { return cut(s.nats...) })},
	{"worker's connections slow", some, onWorker(func(s *site) func() { return slow(s.nats...) })},
	{"answers of NATS to a worker lost", brief, onWorker(func(s *site) func() { return unanswered(s.nats...) })},
}
