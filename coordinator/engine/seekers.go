package engine

import (
	"slices"

	"github.com/fantasia-hpo/fantasia/study"
)

// seeker is a client that wants to hold trials.
type seeker struct {
	client string
	want   int // how many trials it wants to hold
	// missing is how many of them it does not hold yet; set by count.
	missing int
}

// seekers are the clients that want to hold trials, longest first. A client is in it at most once,
// and only while it holds fewer than it wants, as of the last count.
type seekers []seeker

// set replaces how many trials a client wants to hold; 0 ends its search. It keeps its place in the
// queue.
func (l *seekers) set(client string, want int) {
	i := slices.IndexFunc(*l, func(s seeker) bool { return s.client == client })
	switch {
	case i < 0 && want > 0:
		*l = append(*l, seeker{client: client, want: want})
	case i >= 0 && want > 0:
		(*l)[i].want = want
	case i >= 0:
		*l = slices.Delete(*l, i, i+1)
	}
}

// count counts what each seeker is missing, and drops those that miss nothing. It MUST be called
// before trials are handed out: since the last step some may have ended.
func (l *seekers) count(all *trials) {
	if len(*l) == 0 {
		return
	}
	held := all.holds()
	for i := range *l {
		s := &(*l)[i]
		s.missing = s.want - held[s.client]
	}
	*l = slices.DeleteFunc(*l, func(s seeker) bool { return s.missing <= 0 })
}

func (l seekers) missing() int {
	n := 0
	for i := range l {
		n += l[i].missing
	}
	return n
}

// next returns the client that has waited longest, for which a trial is made. A seeker that
// then holds what it wants is dropped: when it has ended a trial it must ask again for the
// next, or it would get one that it never reads.
func (l *seekers) next() string {
	i := slices.IndexFunc(*l, func(s seeker) bool { return s.missing > 0 })
	s := &(*l)[i] // a vacant slot is a missing trial
	client := s.client
	if s.missing--; s.missing == 0 {
		*l = slices.Delete(*l, i, i+1)
	}
	return client
}

// holds returns how many trials each client or worker holds.
func (l *trials) holds() map[string]int {
	n := map[string]int{}
	for t := range l.handedOut() {
		if client := t.holder(); client != "" {
			n[client]++
		}
	}
	return n
}

// holder returns the client or worker that holds the trial's open attempt; "" if nobody does.
func (t *trial) holder() string {
	if t.wished() {
		return ""
	}
	if a := t.rec.Last(); a != nil && a.State == study.AttemptOpen {
		return a.Worker
	}
	return ""
}
