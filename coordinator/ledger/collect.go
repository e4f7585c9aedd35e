package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fantasia-hpo/fantasia/coordinator/seal"
)

// Collector gathers the records of one study from those that Export visits, without the
// study's curves. It is not safe for concurrent use. It keeps no other study, so a backup of any size can be
// looked at with the memory of one study.
type Collector struct {
	study   string // name or id
	id      string
	records Records
	found   bool
}

// NewCollector returns a Collector for the study with a name or an id.
func NewCollector(nameOrID string) *Collector { return &Collector{study: nameOrID, id: nameOrID} }

// Put takes a record. Records MUST come in the order in which Export visits them: names come
// before studies.
func (c *Collector) Put(key string, value []byte) error {
	read := func(v any) error {
		if err := seal.Strict(value, v); err != nil {
			return &Damaged{Key: key, Cause: err}
		}
		return nil
	}
	if key == nameKey(c.study) {
		var n nameRecord
		if err := read(&n); err != nil {
			return err
		}
		c.id = n.ID
	}
	leaf, ok := strings.CutPrefix(key, studyDir(c.id))
	if ok && known(leaf) {
		c.found = true
		c.records.add(leaf, read)
	}
	return nil
}

// Records returns the study's records. The error wraps ErrNotFound if there were none,
// ErrCorrupt if one is unreadable.
func (c *Collector) Records() (*Records, error) {
	switch {
	case !c.found:
		return nil, fmt.Errorf("study %q: %w", c.study, ErrNotFound)
	case c.records.Err != nil:
		return nil, c.records.Err
	case c.records.Study.ID != c.id:
		return nil, fmt.Errorf("%w: study %s has no specification", ErrCorrupt, c.id)
	}
	return &c.records, nil
}

// Overview gathers the specifications and states of the studies that Export visits. It leaves out
// unreadable ones, which no leader runs. It is not safe for concurrent use.
type Overview struct{ studies map[string]*Summary }

// Put takes a record. The order of the records does not matter.
func (o *Overview) Put(key string, value []byte) {
	rest, ok := strings.CutPrefix(key, studiesDir)
	id, leaf, _ := strings.Cut(rest, "/")
	if !ok || leaf != specLeaf && leaf != statusLeaf {
		return
	}
	if o.studies == nil {
		o.studies = map[string]*Summary{}
	}
	s := o.studies[id]
	if s == nil {
		s = &Summary{}
		o.studies[id] = s
	}
	var v any = &s.Study
	if leaf == statusLeaf {
		v = &s.Status
	}
	s.Err = errors.Join(s.Err, json.Unmarshal(value, v))
}

// Studies returns the studies in the order of their creation.
func (o *Overview) Studies() []Summary {
	var all []Summary
	for id, s := range o.studies {
		if s.Err == nil && s.Study.ID == id {
			all = append(all, *s)
		}
	}
	slices.SortFunc(all, func(a, b Summary) int { return older(&a.Study, &b.Study) })
	return all
}
