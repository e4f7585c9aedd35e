package library

import "sync"

// Announcer calls Settings.Progress for the trials that have ended, one call at a time and in
// order.
type Announcer struct {
	call func(Progress)

	mu      sync.Mutex
	ended   []Result
	calling bool // somebody does
}

// NewAnnouncer returns an Announcer that makes calls of a function; nil for no calls.
func NewAnnouncer(call func(Progress)) *Announcer { return &Announcer{call: call} }

// Add notes that a trial has ended.
func (a *Announcer) Add(r Result) {
	if a.call == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = append(a.ended, r)
}

// Tell makes the calls that are due, unless somebody does. standing returns how the study is doing;
// a call is left out if that is not known.
func (a *Announcer) Tell(standing func() (Progress, error)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.calling {
		return
	}
	a.calling = true
	for len(a.ended) > 0 {
		r := a.ended[0]
		a.ended = a.ended[1:]
		a.mu.Unlock()
		if p, err := standing(); err == nil {
			p.Trial = r
			a.call(p)
		}
		a.mu.Lock()
	}
	a.calling = false
}
