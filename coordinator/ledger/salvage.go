package ledger

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/coordinator/seal"
)

// Salvaged is what can be saved of a damaged ledger.
type Salvaged struct {
	// Records holds the ledger's own records and those of the studies in Whole, as Export visits them.
	// Keys are relative to the prefix.
	Records map[string][]byte
	// Whole are the studies that lost nothing that matters, and Parts those that lost trials or their state.
	Whole, Parts []Part
	// Lost says, a line each, what is lost.
	Lost []string
}

// Part is what is left of a study.
type Part struct {
	Study  record.Study
	Status record.Status
	Trials []record.Trial // by number, some of which may be missing
}

// Salvage sorts the sealed values of a ledger whose keys begin with DefaultPrefix. damaged are the
// keys of which only a damaged value was found. A study is whole only if its counts agree with its trials: of a key
// that is gone altogether, nothing else tells. Leaders' keys and unfinished restores are left out, since the
// records go into another etcd.
func Salvage(values map[string][]byte, damaged map[string]bool) Salvaged {
	s := salvage{plain: map[string][]byte{}, ids: map[string]bool{}, out: Salvaged{Records: map[string][]byte{}}}
	for key := range damaged {
		s.lose("%s is damaged", nameOfKey(key))
		s.note(strings.TrimPrefix(key, DefaultPrefix))
	}
	for key, sealed := range values {
		relative, ok := strings.CutPrefix(key, DefaultPrefix)
		value, err := seal.Open(key, sealed)
		if !ok || err != nil || strings.HasPrefix(relative, leaderDir) || strings.HasPrefix(relative, restoredDir) {
			continue
		}
		s.plain[relative] = value
		s.note(relative)
	}
	for _, id := range slices.Sorted(maps.Keys(s.ids)) {
		s.study(id)
	}
	for key, value := range s.plain {
		if !strings.HasPrefix(key, studiesDir) && !strings.HasPrefix(key, curvesDir) && !strings.HasPrefix(key, namesDir) {
			s.out.Records[key] = value
		}
	}
	slices.Sort(s.out.Lost)
	return s.out
}

// nameOfKey says what a key's record is, with the key.
func nameOfKey(key string) string {
	if what := describe(key); what != "" {
		return what + " (" + key + ")"
	}
	return key
}

// salvage is a Salvage in progress.
type salvage struct {
	plain map[string][]byte // by key, relative to the prefix
	ids   map[string]bool
	out   Salvaged
}

func (s *salvage) lose(format string, args ...any) {
	s.out.Lost = append(s.out.Lost, fmt.Sprintf(format, args...))
}

// note notes the study of a key.
func (s *salvage) note(key string) {
	for _, dir := range []string{studiesDir, curvesDir} {
		if rest, ok := strings.CutPrefix(key, dir); ok {
			id, _, _ := strings.Cut(rest, "/")
			s.ids[id] = true
		}
	}
}

// study takes the records of a study.
func (s *salvage) study(id string) {
	var r Records
	for _, key := range slices.Sorted(maps.Keys(s.plain)) {
		if leaf, ok := strings.CutPrefix(key, studyDir(id)); ok && known(leaf) {
			r.add(leaf, func(v any) error { return seal.Strict(s.plain[key], v) })
		}
	}
	counts, ok := record.Count(r.Trials)
	name := r.Study.Definition.Metadata.Name
	switch {
	case r.Study.ID != id:
		s.lose("study %s: its specification is lost, and with it what its %d trials mean", id, len(r.Trials))
		return
	case r.Err != nil:
		s.lose("study %s: %v", name, r.Err)
	case r.Status.State == "":
		s.lose("study %s: its state is lost", name)
	case !ok || len(r.Trials) != r.Status.Trials || counts != r.Status.Counts:
		s.lose("study %s: it had %d trials (%s), and %d are left (%s)", name, r.Status.Trials, r.Status.Counts, len(r.Trials), counts)
	default:
		s.keep(id, &r)
		return
	}
	s.out.Parts = append(s.out.Parts, Part{r.Study, r.Status, r.Trials})
}

// keep saves a study that lost no trial.
func (s *salvage) keep(id string, r *Records) {
	name := r.Study.Definition.Metadata.Name
	for key, value := range s.plain {
		if strings.HasPrefix(key, studyDir(id)) {
			s.out.Records[key] = value
		}
	}
	s.curves(id)
	// What is derived from the specification is made again.
	for key, v := range map[string]any{nameKey(name): nameRecord{ID: id}, studyKey(id, headLeaf): headOf(&r.Study, Size(&r.Study))} {
		if raw, err := json.Marshal(v); err == nil { // it was decoded from JSON
			s.out.Records[key] = raw
		}
	}
	s.out.Whole = append(s.out.Whole, Part{r.Study, r.Status, r.Trials})
}

// curves keeps the curves of a study of which all segments are there.
func (s *salvage) curves(id string) {
	segments := map[string][]string{} // keys by trial
	for _, key := range slices.Sorted(maps.Keys(s.plain)) {
		if rest, ok := strings.CutPrefix(key, curvesOf(id)); ok {
			trial, _, _ := strings.Cut(rest, "/")
			segments[trial] = append(segments[trial], key)
		}
	}
	for trial, keys := range segments {
		values := make([][]byte, len(keys))
		whole := true
		for i, key := range keys {
			values[i] = s.plain[key]
			whole = whole && key == fmt.Sprintf("%s%s/%06d", curvesOf(id), trial, i)
		}
		if _, err := curve.Read(values); !whole || err != nil {
			s.lose("the measurements of trial %s of study %s", trimmed(trial), id)
			continue
		}
		for i, key := range keys {
			s.out.Records[key] = values[i]
		}
	}
}
