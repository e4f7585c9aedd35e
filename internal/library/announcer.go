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
	if a.call == nil || !a.begin() {
		return
	}
	ended := false
	defer func() {
		if !ended { // a call has panicked, and whoever recovers may go on
			a.mu.Lock()
			defer a.mu.Unlock()
			a.calling = false
		}
	}()
	for {
		r, ok := a.next()
		if !ok {
			ended = true
			return
		}
		if p, err := standing(); err == nil {
			p.Trial = r
			a.call(p)
		}
	}
}

// begin reports whether this call makes the calls that are due.
func (a *Announcer) begin() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.calling {
		return false
	}
	a.calling = true
	return true
}

// next returns the next trial to tell of. If there is none, nobody makes calls any more: a trial that ends after that
// is told by whoever has added it.
func (a *Announcer) next() (r Result, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.ended) == 0 {
		a.calling = false
		return r, false
	}
	r, a.ended = a.ended[0], a.ended[1:]
	return r, true
}
