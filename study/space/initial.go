package space

import (
	"fmt"

	"github.com/fantasia-hpo/fantasia/study"
	"github.com/fantasia-hpo/fantasia/study/internal/check"
)

// compileInitial checks the initial points and stores them as points.
func (s *Space) compileInitial(r *check.Report, path string, initial []map[string]any) {
	keys := make(map[string]int)
	for i, raw := range initial {
		at := fmt.Sprintf("%s[%d]", path, i)
		before := r.Failed
		p := s.normalize(raw, func(name string, known bool, message string) {
			if known {
				r.Add(at+check.Key(name), "%s", message)
			} else {
				r.AddKey(at+check.Key(name), "%s", message)
			}
		})
		for name := range p {
			r.AddIf(s.params[s.index[name]].Type == study.Fidelity, at+check.Key(name),
				"is a fidelity: every initial point starts at its lowest level; leave it out")
		}
		if r.Failed > before || r.IsBroken(at) {
			continue
		}
		for _, c := range s.checks {
			r.AddIf(!c.holds(p), at, "the point does not meet the constraint %q", c.Source)
		}
		if s.Searched().Check(p) == nil {
			if first, ok := keys[s.Key(p)]; ok {
				r.Add(at, "the point is the same as initial[%d]: each is run once", first)
			} else {
				keys[s.Key(p)] = i
			}
		}
		initial[i] = p
		s.initial = append(s.initial, p)
	}
	s.Searched().initial = s.initial
}
