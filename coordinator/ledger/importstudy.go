package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// StudyImport stores the records of a study that ExportStudy has read, page by page.
// Studies are found by their names, so nobody sees anything of it until Writer.Create has
// stored the name: not even a leader that takes over in between, and leaves what was stored.
// Another import of the study replaces it. It is not safe for concurrent use.
type StudyImport struct {
	w     *Writer
	id    string
	batch Batch
	// The records by which a study is found are not stored.
	heads map[string]json.RawMessage
}

// importOps is after how many records an import commits. The leader's own commits wait
// meanwhile, so it is few.
const importOps = MaxOps / 2

// ImportStudy begins to store the records of the study with an id. There MUST be no such
// study in the ledger, and no other import of it.
func (w *Writer) ImportStudy(id string) *StudyImport {
	return &StudyImport{w: w, id: id, heads: map[string]json.RawMessage{}}
}

// Put stores a record with its key relative to the prefix, now or later. The error wraps
// ErrCorrupt if it is not a record of the study, or is one of Commit's.
func (i *StudyImport) Put(ctx context.Context, key string, value []byte) error {
	leaf, ofStudy := strings.CutPrefix(key, studyDir(i.id))
	switch {
	case strings.HasPrefix(key, namesDir), leaf == headLeaf:
		return nil // Writer.Create stores it
	case !json.Valid(value):
		return fmt.Errorf("%w: %s is not JSON", ErrCorrupt, key)
	case leaf == specLeaf || leaf == statusLeaf:
		i.heads[leaf] = append(json.RawMessage{}, value...)
		return nil
	case ofStudy && known(leaf) || strings.HasPrefix(key, curvesOf(i.id)):
		i.batch.raw(key, append(json.RawMessage{}, value...))
	default:
		return fmt.Errorf("%w: %q is no record of study %s", ErrCorrupt, key, i.id)
	}
	if i.batch.Len() >= importOps || i.batch.Full() {
		return i.flush(ctx)
	}
	return nil
}

// Finish stores the remaining records, and returns the specification and the status, which
// Writer.Create is to store. The error wraps ErrCorrupt if they were missing or are
// unreadable.
func (i *StudyImport) Finish(ctx context.Context) (Summary, error) {
	var s Summary
	for leaf, v := range map[string]any{specLeaf: &s.Study, statusLeaf: &s.Status} {
		if err := json.Unmarshal(i.heads[leaf], v); err != nil {
			return s, fmt.Errorf("%w: the %s of study %s: %w", ErrCorrupt, leaf, i.id, err)
		}
	}
	if s.Study.ID != i.id || s.Study.Definition.Metadata.Name == "" {
		return s, fmt.Errorf("%w: the specification of study %s has the id %q and the name %q",
			ErrCorrupt, i.id, s.Study.ID, s.Study.Definition.Metadata.Name)
	}
	return s, i.flush(ctx)
}

// Discard deletes what was stored, if the study is not to be created after all. It MUST NOT be called if the
// study may have been created, as after ErrUnknown: it would delete a study's records and leave its name.
func (i *StudyImport) Discard(ctx context.Context) error {
	i.batch = Batch{}
	i.batch.deleteRecords(i.id)
	return i.flush(ctx)
}

func (i *StudyImport) flush(ctx context.Context) error {
	full := i.batch
	i.batch = Batch{}
	return i.w.Commit(ctx, &full)
}
