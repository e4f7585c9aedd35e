package studies

import (
	"context"
	"fmt"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// Vacant returns why a study cannot come back.
func (s *Studies) Vacant(name, id string) error {
	for _, taken := range []string{name, id} {
		if r, err := s.Find(taken); err == nil {
			return fmt.Errorf("restore study %s (%s): %w: it is %s", name, id, ledger.ErrNameTaken, r.Spec.ID)
		}
	}
	return nil
}

// TakeIn stores the name, the specification and the status of a study whose other records
// are in the ledger, and adds it to the shard's.
func (s *Studies) TakeIn(ctx context.Context, found *ledger.Summary, now time.Time) error {
	var batch ledger.Batch
	batch.PutStatus(found.Study.ID, &found.Status)
	if err := s.o.Group.Create(ctx, &found.Study, &batch); err != nil {
		return fmt.Errorf("restore study %s: %w", found.Study.Definition.Metadata.Name, err)
	}
	r := s.Adopt(&ledger.Records{Study: found.Study, Status: found.Status, Bytes: ledger.Size(&found.Study)}, now)
	s.o.Log.Info("study restored from the archive", telemetry.LogStudy, r.Name(), "id", found.Study.ID)
	return nil
}
