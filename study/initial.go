package study

import "fmt"

// compileInitial checks the initial points and keeps them as points.
func (s *Space) compileInitial(r *report, path string, initial []map[string]any) {
	keys := make(map[string]int)
	for i, raw := range initial {
		at := fmt.Sprintf("%s[%d]", path, i)
		before := r.failed
		p := s.normalize(raw, func(name string, known bool, message string) {
			if known {
				r.add(at+quoteKey(name), "%s", message)
			} else {
				r.addKey(at+quoteKey(name), "%s", message)
			}
		})
		if r.failed > before || r.isBroken(at) {
			continue
		}
		for _, c := range s.checks {
			if !c.holds(p) {
				r.add(at, "the point does not meet the constraint %q", c.source)
			}
		}
		if s.Check(p) == nil {
			if first, ok := keys[s.Key(p)]; ok {
				r.add(at, "the point is the same as initial[%d]: each is run once", first)
			} else {
				keys[s.Key(p)] = i
			}
		}
		initial[i] = p
		s.initial = append(s.initial, p)
	}
}
