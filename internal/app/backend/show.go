package backend

import (
	"context"
	"fmt"
	"time"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/lease"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/study"
)

// shown adds the best trial to a study, and the one that was recommended last. Its cost
// does not depend on how many trials there are.
func (b *Backend) shown(ctx context.Context, s ledger.Summary) (server.Study, error) {
	out := server.Study{Spec: s.Study, Status: s.Status}
	if s.Status.State == study.Running && !s.Led {
		out.Status.Counted = time.Now() // its time stands still
	}
	if s.Status.State == study.Running && s.Status.Reason == "" && !s.Study.Definition.Spec.ByClients() {
		workers := b.c.Workers()
		out.Status.Reason = idle(&s.Study.Definition.Spec, workers)
		if n, cause := lease.Waits(workers, s.Study.ID); n > 0 && out.Status.Reason == "" {
			out.Status.Reason = lease.WaitText(n, cause)
		}
	}
	if err := b.c.Broken(s.Study.ID); err != nil {
		out.Status.Reason = err.Error()
	}
	if lacking := b.c.Lacking(); lacking != nil && s.Status.State == study.Running {
		out.Status.Reason = lacking.Error()
	}
	switch aside, err := b.l.aside(ctx, s.Study.ID); {
	case err != nil:
		return out, err
	case aside != "" && out.Status.Reason != "":
		out.Status.Reason += "; " + aside
	case aside != "":
		out.Status.Reason = aside
	}
	if best := s.Status.Best; best != 0 {
		trial, err := b.l.trial(ctx, s.Study.ID, best)
		if err != nil {
			return out, err
		}
		out.Best = &trial
	}
	switch stored := s.Status.Recommended; {
	case stored.Trial == 0:
	case out.Best != nil && out.Best.Number == stored.Trial:
		out.Recommended = stored.At(out.Best.Point)
	default:
		trial, err := b.l.trial(ctx, s.Study.ID, stored.Trial)
		if err != nil {
			return out, err
		}
		out.Recommended = stored.At(trial.Point)
	}
	return out, nil
}

// whole is shown with a recommendation based on all ended trials, computed if the
// ledger has none.
func (b *Backend) whole(ctx context.Context, s ledger.Summary) (server.Study, error) {
	out, err := b.shown(ctx, s)
	if err != nil || s.Status.RecommendedOfAll() {
		return out, err
	}
	if out.Recommended, err = b.c.Recommend(ctx, s); out.Recommended != nil {
		out.Status.Recommended = record.Recommended(out.Recommended, s.Status.Position)
	}
	return out, translate(err)
}

// idle returns why no worker can evaluate a running study, or an empty string.
func idle(spec *study.Spec, workers []coordinator.Worker) string {
	pool, job, heard := spec.Pool, spec.Trial.Job != nil, 0
	for _, w := range workers {
		switch {
		case w.Pool != pool || w.Leaving:
		case job && w.StudyJobs, !job && (w.OwnCommand || w.StudyCommands):
			return ""
		default:
			heard++
		}
	}
	if heard > 0 && job {
		return fmt.Sprintf("the %d workers of pool %q do not create the Jobs that studies bring: start kubeworker with --study-jobs", heard, pool)
	}
	if heard > 0 {
		return fmt.Sprintf("the %d workers of pool %q do not run studies' commands: start them with a command of their own, or with "+
			"--allow-study-commands", heard, pool)
	}
	return fmt.Sprintf("no worker of pool %q is known: start one with --pool %s", pool, pool)
}
