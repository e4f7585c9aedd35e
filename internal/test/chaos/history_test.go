package chaos

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// The kinds of operations on a trial, and how they were answered.
const (
	suggest = iota
	measure
	complete
	get
)

const (
	done    = iota
	refused // nothing has changed
	unknown // no answer, or one that leaves open whether it took effect
)

var (
	kindNames    = []string{"suggest", "measure", "complete", "get"}
	outcomeNames = []string{"done", "refused", "unknown"}
)

// operation is a call about a trial.
type operation struct {
	kind, outcome  int
	client         string
	trial, attempt int
	value          float64
	step           int64 // of measure
	// goOn is whether the trial is still open, by the answer to measure and get.
	goOn      bool
	call, ret int64 // in ns since the history began
}

// String shows an operation.
func (o operation) String() string {
	return fmt.Sprintf("%s by %s: attempt %d, value %v, open %v: %s [%.3f s, %.3f s]", kindNames[o.kind], o.client, o.attempt, o.value, o.goOn,
		outcomeNames[o.outcome], float64(o.call)/1e9, float64(o.ret)/1e9)
}

// history is the calls about one study. Safe for concurrent use.
type history struct {
	began time.Time

	mu  sync.Mutex
	all []operation
}

// now is the time of a call or an answer.
func (h *history) now() int64 { return int64(time.Since(h.began)) }

func (h *history) add(o operation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, o)
}

func (h *history) len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.all)
}

// completed are the trials that a client was told to be completed, with their values.
func (h *history) completed() map[int]float64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	values := map[int]float64{}
	for _, o := range h.all {
		if o.kind == complete && o.outcome == done {
			values[o.trial] = o.value
		}
	}
	return values
}

// measured are the steps of each trial that a client was told to go on after.
func (h *history) measured() map[int][]int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	steps := map[int][]int64{}
	for _, o := range h.all {
		if o.kind == measure && o.outcome == done && o.goOn {
			steps[o.trial] = append(steps[o.trial], o.step)
		}
	}
	return steps
}

// trialState is what the calls about a trial are held against: at most one client holds
// it at a time, and it is completed once.
type trialState struct {
	attempt int
	holder  string
	held    string // all clients that ever held it, each with a space before and behind
	over    bool
	by      string // who completed it
	value   float64
}

func (s trialState) had(client string) bool { return strings.Contains(s.held, " "+client+" ") }

// step applies an operation, and reports whether its answer was right. An attempt can be
// lost at any time, and the trial then gets another one.
func (s trialState) step(o operation) (bool, trialState) {
	switch o.kind {
	case suggest:
		switch {
		case s.over || o.attempt < s.attempt:
			return false, s
		case o.attempt == s.attempt:
			return s.holder == o.client, s
		}
		s.attempt, s.holder, s.held = o.attempt, o.client, s.held+" "+o.client+" "
		return true, s
	case measure:
		return !o.goOn || !s.over && s.holder == o.client, s
	case get:
		return o.goOn != s.over && (o.goOn || o.value == s.value), s
	}
	again := s.over && s.by == o.client && s.value == o.value
	first := !s.over && s.had(o.client)
	switch o.outcome {
	case refused:
		return !again && !first, s
	case done:
		if !again && !first {
			return false, s
		}
	case unknown:
		if !first {
			return true, s
		}
	}
	s.over, s.by, s.value = true, o.client, o.value
	return true, s
}

// orderTimeout bounds the search for an order.
const orderTimeout = 2 * time.Minute

// check looks for an order of the operations on each trial that explains all answers, with
// each operation between its call and its answer. One whose outcome is unknown may take
// effect at any time after its call.
func (h *history) check() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	byTrial := map[int][]porcupine.Operation{}
	clients := map[string]int{}
	for i, o := range h.all {
		if o.outcome == unknown {
			o.ret = math.MaxInt64
		}
		// An operation without an end keeps its client busy for ever, so it has one of its own.
		who := o.client
		if o.outcome == unknown {
			who = fmt.Sprint(who, " ", i)
		}
		if _, known := clients[who]; !known {
			clients[who] = len(clients)
		}
		byTrial[o.trial] = append(byTrial[o.trial], porcupine.Operation{ClientId: clients[who], Input: o, Call: o.call, Return: o.ret})
	}
	model := porcupine.Model{
		Init: func() any { return trialState{} },
		Step: func(state, input, _ any) (bool, any) { return state.(trialState).step(input.(operation)) },
	}
	for trial, operations := range byTrial {
		switch porcupine.CheckOperationsTimeout(model, operations, orderTimeout) {
		case porcupine.Illegal:
			return fmt.Errorf("no order explains what clients were answered about trial %d:\n%s", trial, show(operations))
		case porcupine.Unknown:
			return fmt.Errorf("no order was found within %s for what clients were answered about trial %d:\n%s", orderTimeout, trial,
				show(operations))
		case porcupine.Ok:
		}
	}
	return nil
}

func show(operations []porcupine.Operation) string {
	slices.SortFunc(operations, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	var lines []string
	for _, o := range operations {
		lines = append(lines, fmt.Sprint("  ", o.Input))
	}
	return strings.Join(lines, "\n")
}
