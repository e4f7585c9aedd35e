package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/study"
)

func TestReads(t *testing.T) {
	l, w, _ := newLedger(t, Options{PageSize: 2})
	ctx := testContext(t)
	first := create(t, w, "id-z", "alpha", 3)
	for _, name := range []string{"beta", "gamma", "delta"} {
		create(t, w, "id-"+name, name, 0)
	}
	for _, nameOrID := range []string{"alpha", "id-z"} {
		got, err := l.Study(ctx, nameOrID)
		if err != nil || got.Study.ID != "id-z" || got.Status.Trials != 3 {
			t.Errorf("study %s: %+v, %v; want id-z", nameOrID, got, err)
		}
	}
	all, err := l.Studies(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, s := range all {
		ids = append(ids, s.Study.ID)
	}
	if want := []string{"id-beta", "id-delta", "id-gamma", "id-z"}; !slices.Equal(ids, want) {
		t.Errorf("studies %v; want %v (all were created at once)", ids, want)
	}
	trials, err := l.Trials(ctx, first.ID, 2, 5)
	if diff := cmp.Diff([]record.Trial{*newTrial(2), *newTrial(3)}, trials); diff != "" || err != nil {
		t.Errorf("trials from 2 on: %v (-want +got):\n%s", err, diff)
	}
	if got, err := l.Trials(ctx, first.ID, 1, 2); err != nil || len(got) != 2 {
		t.Errorf("at most 2 trials: %d, %v", len(got), err)
	}
	if got, err := l.Trial(ctx, first.ID, 3); err != nil || got.Number != 3 {
		t.Errorf("trial 3: %+v, %v", got, err)
	}
	if got, err := l.LoadStudy(ctx, first.ID); err != nil || got.Study.ID != first.ID || len(got.Trials) != 3 {
		t.Errorf("a study with its trials: %+v, %v; want 3 trials", got, err)
	}
	_, errStudy := l.Study(ctx, "id")
	_, errRecords := l.LoadStudy(ctx, "id")
	_, errTrial := l.Trial(ctx, first.ID, 4)
	for _, err := range []error{errStudy, errRecords, errTrial} {
		if !errors.Is(err, ErrNotFound) {
			t.Errorf("what does not exist: %v; want ErrNotFound", err)
		}
	}
}

// A list is read in the order of names, page by page, without what makes a study large; a
// record that cannot be read hides no other study.
func TestList(t *testing.T) {
	l, w, c := newLedger(t, Options{})
	ctx := testContext(t)
	const n = MaxOps/2 + 6
	for i := range n {
		s := newStudy(fmt.Sprintf("id%03d", (i+17)%n), fmt.Sprintf("study-%03d", i))
		s.Definition.Spec.Parameters = []study.Parameter{{Name: strings.Repeat("x", 10_000)}}
		s.Definition.Spec.Trial.Command = []string{strings.Repeat("y", 10_000)}
		s.Definition.Spec.Pool = "default"
		var b Batch
		b.PutStatus(s.ID, &record.Status{State: study.Running})
		if err := w.Create(ctx, s, &b); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Put(ctx, DefaultPrefix+nameKey("study-003"), "{"); err != nil {
		t.Fatal(err)
	}
	for _, page := range []struct {
		from  string
		limit int
		want  []int // the first, and the one after the last
	}{{"", 5, []int{0, 5}}, {"study-004\x00", 2, []int{5, 7}}, {"study-01", n, []int{10, n}}, {"", 2 * n, []int{0, n}},
		{"z", 3, []int{0, 0}}} {
		got, err := l.List(ctx, page.from, page.limit)
		if err != nil {
			t.Fatal(err)
		}
		want := page.want[0]
		for _, s := range got {
			if name := fmt.Sprintf("study-%03d", want); s.Study.Definition.Metadata.Name != name || (s.Err != nil) != (want == 3) {
				t.Fatalf("%d studies from %q on: %q, %v; want %s", page.limit, page.from, s.Study.Definition.Metadata.Name, s.Err, name)
			}
			if text, err := json.Marshal(s.Study); err != nil || len(text) > 500 || s.Err == nil && s.Study.Definition.Spec.ByClients() {
				t.Errorf("a study of a list: %s, %v; want no parameters, and that it has a command", text, err)
			}
			want++
		}
		if want != page.want[1] {
			t.Errorf("%d studies from %q on: the list ends before number %d, want %d", page.limit, page.from, want, page.want[1])
		}
	}
}

// BenchmarkList reads a page of ten studies beside 1,000 of two sizes.
func BenchmarkList(b *testing.B) {
	for _, size := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(size, "B"), func(b *testing.B) {
			l, w, _ := newLedger(b, Options{})
			for i := range 1000 {
				s := newStudy(fmt.Sprintf("id%04d", i), fmt.Sprintf("study-%04d", i))
				s.Definition.Spec.Parameters = []study.Parameter{{Name: strings.Repeat("x", size)}}
				var batch Batch
				batch.PutStatus(s.ID, &record.Status{State: study.Completed})
				if err := w.Create(testContext(b), s, &batch); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				if page, err := l.List(testContext(b), "study-05", 10); err != nil || len(page) != 10 {
					b.Fatal(len(page), err)
				}
			}
		})
	}
}

// A record that cannot be read is the error of its study alone, by its key.
func TestCorruptRecordIsItsStudysError(t *testing.T) {
	for _, leaf := range []string{specLeaf, statusLeaf, modelLeaf, trialsDir + "00000001"} {
		l, w, c := newLedger(t, Options{})
		create(t, w, "id1", "digits", 1)
		create(t, w, "id2", "letters", 1)
		key := DefaultPrefix + studyKey("id1", leaf)
		if _, err := c.Put(testContext(t), key, "{"); err != nil {
			t.Fatal(err)
		}
		snap, err := l.Load(testContext(t))
		if err != nil || len(snap.Studies) != 2 {
			t.Fatalf("%s: %+v, %v; want both studies", leaf, snap, err)
		}
		for i := range snap.Studies {
			s := &snap.Studies[i]
			broken := s.Study.ID == "id1"
			if name := s.Study.Definition.Metadata.Name; broken != (name == "digits") || broken != errors.Is(s.Err, ErrCorrupt) {
				t.Errorf("%s of id1 is corrupt: study %s (%s) has the error %v", leaf, s.Study.ID, name, s.Err)
			}
			if broken && !strings.Contains(s.Err.Error(), key) {
				t.Errorf("%v; want the key %s", s.Err, key)
			}
		}
		if listed, err := l.Studies(testContext(t)); err != nil || len(listed) != 2 {
			t.Errorf("%s: listed %+v, %v; want both studies", leaf, listed, err)
		} else if got := listed[0]; (leaf == specLeaf || leaf == statusLeaf) != errors.Is(got.Err, ErrCorrupt) || got.Study.ID != "id1" ||
			listed[1].Err != nil {
			t.Errorf("%s: listed %+v; want the error of id1 alone", leaf, listed)
		}
		_, errLoad := l.LoadStudy(testContext(t), "id1")
		errWatch := l.Watch(testContext(t), "id1", 0, func(Change) error { return nil })
		for _, err := range []error{errLoad, errWatch} {
			if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), key) {
				t.Errorf("%s: %v; want ErrCorrupt with the key", key, err)
			}
		}
	}
}

// What a later version keeps beside a study's records is in nobody's way.
func TestUnknownKeysAreIgnored(t *testing.T) {
	l, w, c := newLedger(t, Options{})
	create(t, w, "id1", "digits", 1)
	for _, key := range []string{studyKey("id1", "notes"), studyKey("id1", "notes/1"), studiesDir + "index", studyKey("id2", "notes")} {
		if _, err := c.Put(testContext(t), DefaultPrefix+key, "?"); err != nil {
			t.Fatal(err)
		}
	}
	snap, err := l.Load(testContext(t))
	if err != nil || len(snap.Studies) != 1 || snap.Studies[0].Err != nil {
		t.Errorf("%+v, %v; want study id1", snap, err)
	}
	synced := errors.New("synced")
	if err := l.Watch(testContext(t), "", 0, func(c Change) error {
		if c.Synced {
			return synced
		}
		return nil
	}); !errors.Is(err, synced) {
		t.Errorf("watch: %v", err)
	}
}

// The revision that is being read is compacted away between two pages.
func TestLoadStartsAgainAfterACompaction(t *testing.T) {
	e, c := startEtcd(t, 0)
	w := lead(t, New(c, Options{}), c)
	create(t, w, "id1", "digits", 9)
	ranges := 0
	interfering := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker,
		opts ...grpc.CallOption) error {
		if _, ok := req.(*etcdserverpb.RangeRequest); ok {
			if ranges++; ranges == 3 {
				if err := w.Commit(ctx, at("id1", 1)); err != nil {
					t.Error(err)
				}
				if _, err := c.Compact(ctx, w.head); err != nil {
					t.Error(err)
				}
			}
		}
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	slow := intercepted(t, e, interfering)
	snap, err := New(slow, Options{PageSize: 3}).Load(testContext(t))
	if err != nil || snap.Studies[0].Status.Position != 1 || len(snap.Studies[0].Trials) != 9 {
		t.Errorf("loaded %+v, %v; want position 1 and 9 trials", snap, err)
	}
	if ranges < 4 {
		t.Errorf("only %d pages were read: nothing was interrupted", ranges)
	}
}

func BenchmarkLoad10000Trials(b *testing.B) {
	l, w, _ := newLedger(b, Options{})
	create(b, w, "id1", "digits", 0)
	for n := 1; n <= 10_000; {
		var batch Batch
		for range MaxOps - 1 {
			t := newTrial(n)
			t.Checkpoint = strings.Repeat("x", 700)
			batch.PutTrial("id1", t)
			n++
		}
		if err := w.Commit(b.Context(), &batch); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if _, err := l.Load(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLoadBesideEnded loads a running study of 1,000 trials, as a takeover does, beside
// 1,000 studies that have ended with 0, 100 and 1,000 trials each.
func BenchmarkLoadBesideEnded(b *testing.B) {
	for _, trials := range []int{0, 100, 1000} {
		b.Run(fmt.Sprintf("trials=%d", 1000*trials), func(b *testing.B) {
			l, w, _ := newLedger(b, Options{})
			fill := func(id string, state study.State, trials int) {
				var batch Batch
				commit := func() {
					if err := w.Commit(b.Context(), &batch); err != nil {
						b.Fatal(err)
					}
					batch = Batch{}
				}
				for n := 1; n <= trials; n++ {
					if batch.PutTrial(id, newTrial(n)); batch.Len() == MaxOps-1 {
						commit()
					}
				}
				batch.PutStatus(id, &record.Status{State: state, Trials: trials})
				commit()
			}
			if err := w.Create(b.Context(), newStudy("running", "running"), &Batch{}); err != nil {
				b.Fatal(err)
			}
			fill("running", study.Running, 1000)
			for i := range 1000 {
				id := fmt.Sprintf("ended-%d", i)
				if err := w.Create(b.Context(), newStudy(id, id), &Batch{}); err != nil {
					b.Fatal(err)
				}
				fill(id, study.Completed, trials)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := l.Load(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A leader that takes over reads only the heads and the statuses of ended studies, and all trials of the
// others.
func TestLoadSkipsEndedStudies(t *testing.T) {
	e, c := startEtcd(t, 0)
	w := lead(t, New(c, Options{}), c)
	var read []string
	watched := intercepted(t, e, func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker,
		opts ...grpc.CallOption) error {
		err := invoker(ctx, method, req, reply, cc, opts...)
		if resp, ok := reply.(*etcdserverpb.RangeResponse); ok {
			for _, kv := range resp.Kvs {
				if len(kv.Value) > 0 { // more than its key
					read = append(read, strings.TrimPrefix(string(kv.Key), DefaultPrefix+studiesDir))
				}
			}
		}
		return err
	})
	for i, state := range []study.State{study.Completed, study.Running, study.Stopped, study.Running, study.Failed} {
		id := fmt.Sprintf("id-%d", i)
		create(t, w, id, "study-"+id, 5)
		var b Batch
		b.PutStatus(id, &record.Status{State: state, Trials: 5})
		if err := w.Commit(testContext(t), &b); err != nil {
			t.Fatal(err)
		}
	}
	snap, err := New(watched, Options{PageSize: 2}).Load(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, s := range snap.Studies {
		got[s.Study.Definition.Metadata.Name+" "+string(s.Status.State)] = len(s.Trials)
	}
	want := map[string]int{
		"study-id-0 COMPLETED": 0, "study-id-1 RUNNING": 5, "study-id-2 STOPPED": 0, "study-id-3 RUNNING": 5, "study-id-4 FAILED": 0,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("trials by study (-want +got):\n%s", diff)
	}
	for _, s := range snap.Studies {
		if want := s.Status.State != study.Running; s.Head != want || s.Bytes == 0 {
			t.Errorf("%s has %d bytes, a head alone: %t; want %t", s.Study.ID, s.Bytes, s.Head, want)
		}
	}
	for _, key := range read {
		id, leaf, ok := strings.Cut(key, "/")
		if ok && id != "" && id != "id-1" && id != "id-3" && leaf != headLeaf && leaf != statusLeaf {
			t.Errorf("read %s of an ended study", key)
		}
	}
	// A damaged head hides no study.
	if _, err := c.Put(testContext(t), DefaultPrefix+studyKey("id-0", headLeaf), "{"); err != nil {
		t.Fatal(err)
	}
	if snap, err = New(c, Options{}).Load(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if i := slices.IndexFunc(snap.Studies, func(r Records) bool { return r.Study.ID == "id-0" }); i < 0 || snap.Studies[i].Head ||
		snap.Studies[i].Err != nil {
		t.Errorf("with a damaged head: %+v", snap.Studies)
	}
	// A damaged name hides no study.
	if _, err := c.Put(testContext(t), DefaultPrefix+nameKey("study-id-1"), "{"); err != nil {
		t.Fatal(err)
	}
	snap, err = New(c, Options{}).Load(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	if i := slices.IndexFunc(snap.Studies, func(r Records) bool { return r.Study.ID == "id-1" }); i < 0 || len(snap.Studies[i].Trials) != 5 {
		t.Errorf("with a damaged name, %d studies were loaded, the damaged one at %d; want it with 5 trials", len(snap.Studies), i)
	}
}
