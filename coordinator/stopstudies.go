package coordinator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/drive"
	"github.com/fantasia-hpo/fantasia/coordinator/engine"
	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/coordinator/studies"
	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/space/celspace"
)

// StopStudies returns a change for backup.Restore. It stops running studies, given by their ids
// with the reasons, and cancels their open trials, as a leader would. A study that no leader could
// run, because its records are damaged, stays as it is. It is for a restore, before anybody leads: a leader would
// begin to run the studies at once.
func StopStudies(l *ledger.Ledger, reasons map[string]string) func(context.Context, *ledger.Writer) error {
	return func(ctx context.Context, w *ledger.Writer) error {
		for _, id := range slices.Sorted(maps.Keys(reasons)) {
			stored, err := l.LoadStudy(ctx, id)
			switch {
			case errors.Is(err, ledger.ErrCorrupt):
				continue
			case err != nil:
				return fmt.Errorf("stop study %s: %w", id, err)
			case stored.Status.State != study.Running:
				continue
			}
			now := time.Now()
			settings := engine.Settings{Space: celspace.Of}
			e, out, err := engine.Load(stored.Study, stored.Status, stored.Model, stored.Trials, drive.IDs{}, settings, now)
			if err != nil {
				continue
			}
			// Only the records count. There is nobody to tell the effects: a leader finds the study ended.
			changes := studies.RecordsOf(id, &out)
			out = e.Step(engine.Stop{At: now, Reason: reasons[id]})
			changes.Add(studies.RecordsOf(id, &out))
			if err := w.Commit(ctx, changes); err != nil {
				return fmt.Errorf("stop study %s: %w", stored.Study.Definition.Metadata.Name, err)
			}
		}
		return nil
	}
}
