package simulation

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/backup"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/messaging"
)

// saved is a backup, and what the checks knew when it was begun.
type saved struct {
	file  []byte
	known knowledge
}

// TestRolledBack: an etcd that has lost the ledger gives low epochs at first, but each
// election adds to them. Nobody may lead it for that, however long it takes until somebody
// restores the ledger; then the study goes on.
func TestRolledBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, &script{head: head{Seed: 1}}, stateDir(t))
		s, _ := w.newStudy(0)
		for s.Spec.ByClients() {
			s, _ = w.newStudy(0)
		}
		w.studies = append(w.studies, s)
		w.startWatching()
		w.create(t.Context(), s)
		w.backUp()
		w.stopWatching()
		w.etcd.Wipe()
		time.Sleep(time.Minute)
		before, _ := w.etcd.Revision()
		time.Sleep(5 * time.Hour)
		if after, _ := w.etcd.Revision(); after != before {
			t.Errorf("five hours have taken etcd from revision %d to %d", before, after)
		}
		if kv := w.etcd.Value(ledger.DefaultPrefix + "commits/" + messaging.Shard); kv != nil {
			t.Errorf("somebody leads, and has committed %s", kv)
		}
		for _, c := range w.coordinators {
			if err := c.running().Obstacle(t.Context()); err == nil || !strings.Contains(err.Error(), "fantasia restore") {
				t.Errorf("%s says %v, not what to do", c.name, err)
			}
		}
		w.restore(trouble{})
		w.awaitEnd()
		w.close()
	})
}

// restoreTime is how long it may take an operator to restore a backup.
const restoreTime = 10 * time.Minute

// backUp writes a backup, if etcd lets it.
func (w *world) backUp() {
	known := w.check.recall()
	var file bytes.Buffer
	ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
	defer cancel()
	if _, c, err := backup.Write(ctx, w.observer, &file, "simulation"); err != nil {
		w.logs.note("no backup: " + err.Error())
	} else {
		w.logs.note("the backup has " + c.String())
		w.saved = &saved{file.Bytes(), known}
	}
}

// restore restores the backup, as an operator would: into the same etcd or, if that was lost,
// into an empty one, which coordinators may find first. The broker keeps what it has.
func (w *world) restore(t trouble) {
	if w.saved == nil {
		return
	}
	w.stopWatching()
	if t.Lost {
		w.etcd.Wipe()
		time.Sleep(time.Duration(t.For))
	}
	w.restoring.Store(true)
	for _, c := range w.coordinators {
		if t.Killed {
			c.kill()
		} else {
			c.end()
		}
	}
	w.insist("restore", func(ctx context.Context) error {
		_, _, err := backup.Restore(ctx, w.client.Client, w.observer, bytes.NewReader(w.saved.file), backup.Options{Force: true})
		return err
	})
	w.check.restored(w.saved.known)
	w.restoring.Store(false)
	w.logs.note("restored")
	w.startWatching()
	for _, c := range w.coordinators {
		c.restart(span(w.draw("restart", c.name, w.played.Seed, t.At) * float64(5*time.Second)))
	}
	for _, s := range w.studies { // those that are not in the backup
		w.callers.Go(func() { w.create(w.calling, s) })
	}
}

// insist does something until it succeeds.
func (w *world) insist(what string, do func(context.Context) error) {
	for end := time.Now().Add(restoreTime); ; time.Sleep(time.Second) {
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
		err := do(ctx)
		cancel()
		if err == nil {
			return
		}
		w.logs.note(what + ": " + err.Error())
		if time.Now().After(end) {
			w.check.fail("%s: not within %v: %v", what, restoreTime, err)
			return
		}
	}
}
