package backend

import (
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/study"
)

// Those who watch a study at the same time share its reads: a change costs one read of the study for
// all of them, and what they read does not grow with its file.
func TestWatchesShareTheirReads(t *testing.T) {
	const watching = 50
	ctx, b, _ := newBackend(t)
	s, err := b.Create(ctx, fmt.Appendf(nil, file, "shared", 5, "default"))
	if err != nil {
		t.Fatal(err)
	}
	all := make([]func() (server.Study, error, bool), watching)
	for i := range all {
		next, stop := iter.Pull2(b.WatchStudy(ctx, []string{"shared", s.Spec.ID}[i%2]))
		defer stop()
		all[i] = next
		if got, err, ok := next(); !ok || err != nil || got.Status.State != study.Running {
			t.Fatalf("the watch begins with %+v, %v", got.Status, err)
		}
	}
	b.watches.mu.Lock()
	shared, n := b.watches.all[s.Spec.ID], len(b.watches.all)
	b.watches.mu.Unlock()
	if n != 1 || shared.readers != watching {
		t.Fatalf("%d watches, of which this has %d readers; want one with %d", n, shared.readers, watching)
	}
	before := shared.begin()
	if _, err := b.Stop(ctx, "shared", "enough"); err != nil {
		t.Fatal(err)
	}
	for i, next := range all {
		for {
			got, err, ok := next()
			if !ok || err != nil {
				t.Fatalf("watch %d ends with %v before the study does", i, err)
			}
			if got.Status.State == study.Stopped {
				break
			}
		}
		if _, err, ok := next(); ok {
			t.Fatalf("watch %d goes on after the study's end: %v", i, err)
		}
	}
	if reads := shared.begin() - before - 1; reads > watching/2 {
		t.Errorf("%d watches read the study %d times while it was stopped", watching, reads)
	}
	if len(b.watches.all) != 0 {
		t.Errorf("%d watches go on without readers", len(b.watches.all))
	}
}

// What a token with prefixes needs to know of a study, and what a watch shows of a running one, is
// found without the study's specification, which may be large.
func TestNamesAndWatchesReadNoSpecification(t *testing.T) {
	r := newReplica(t, 10*time.Second)
	ctx, b := r.ctx, r.Backend
	s, err := b.Create(ctx, fmt.Appendf(nil, file, "large", 5, "default"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.client.Put(ctx, ledger.DefaultPrefix+"studies/"+s.Spec.ID+"/spec", "unreadable"); err != nil {
		t.Fatal(err)
	}
	for _, nameOrID := range []string{"large", s.Spec.ID} {
		if name, err := b.Name(ctx, nameOrID); err != nil || name != "large" {
			t.Errorf("the study %s has the name %q, %v", nameOrID, name, err)
		}
	}
	watch, stop := iter.Pull2(b.WatchStudy(ctx, "large"))
	defer stop()
	if got, err, _ := watch(); err != nil || got.Spec.Definition.Metadata.Name != "large" {
		t.Errorf("the watch shows %+v, %v", got.Spec, err)
	}
	if _, err := b.Study(ctx, "large"); err == nil {
		t.Error("the specification is readable, so that this test shows nothing")
	}
}
