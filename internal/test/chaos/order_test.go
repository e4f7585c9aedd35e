package chaos

import "testing"

// TestHistories holds which answers to clients an order can explain. Each follows from what
// the API promises of a trial: one client holds it at a time, and it is completed once.
func TestHistories(t *testing.T) {
	at := func(o operation, call, ret int64) operation {
		o.trial, o.call, o.ret = 1, call, ret
		return o
	}
	gets := func(client string, attempt int) operation {
		return operation{kind: suggest, client: client, attempt: attempt, outcome: done}
	}
	tells := func(client string, value float64, outcome int) operation {
		return operation{kind: complete, client: client, value: value, outcome: outcome}
	}
	reads := func(open bool, value float64) operation {
		return operation{kind: get, goOn: open, value: value, outcome: done}
	}
	goesOn := operation{kind: measure, client: "a", goOn: true, outcome: done}
	for name, c := range map[string]struct {
		all []operation
		ok  bool
	}{
		"suggested and told": {[]operation{at(gets("a", 1), 0, 1), at(tells("a", 5, done), 2, 3), at(reads(false, 5), 4, 5)},
			true},
		"told again": {[]operation{at(gets("a", 1), 0, 1), at(tells("a", 5, done), 2, 3), at(tells("a", 5, done), 4, 5)},
			true},
		"told twice, with other values": {[]operation{at(gets("a", 1), 0, 1), at(tells("a", 5, done), 2, 3), at(tells("a", 6, done), 4, 5)},
			false},
		"told by two": {[]operation{at(gets("a", 1), 0, 1), at(gets("b", 2), 2, 3), at(tells("a", 5, done), 4, 5),
			at(tells("b", 6, done), 6, 7)}, false},
		"the second is refused": {[]operation{at(gets("a", 1), 0, 1), at(gets("b", 2), 2, 3), at(tells("a", 5, done), 4, 5),
			at(tells("b", 6, refused), 6, 7)}, true},
		"told by a stranger":            {[]operation{at(gets("a", 1), 0, 1), at(tells("b", 5, done), 2, 3)}, false},
		"given to two at once":          {[]operation{at(gets("a", 1), 0, 1), at(gets("b", 1), 2, 3)}, false},
		"given again after it was told": {[]operation{at(gets("a", 1), 0, 1), at(tells("a", 5, done), 2, 3), at(gets("b", 2), 4, 5)}, false},
		"read as open after it was told": {[]operation{at(gets("a", 1), 0, 1), at(tells("a", 5, done), 2, 3), at(reads(true, 0), 4, 5)},
			false},
		"read as open while it is told": {[]operation{at(gets("a", 1), 0, 1), at(tells("a", 5, done), 2, 5), at(reads(true, 0), 3, 4)}, true},
		"read before it was told": {[]operation{at(gets("a", 1), 0, 1), at(reads(false, 5), 2, 3), at(tells("a", 5, done), 4, 5)},
			false},
		"no answer, and it took effect": {[]operation{at(gets("a", 1), 0, 1), at(tells("a", 5, unknown), 2, 3), at(reads(false, 5), 6, 7)},
			true},
		"no answer, and no effect": {[]operation{at(gets("a", 1), 0, 1), at(tells("a", 5, unknown), 2, 3), at(reads(true, 0), 6, 7)},
			true},
		"no answer, and half an effect": {[]operation{at(gets("a", 1), 0, 1), at(tells("a", 5, unknown), 2, 3), at(reads(false, 5), 6, 7),
			at(reads(true, 0), 8, 9)}, false},
		"refused though the client has it":  {[]operation{at(gets("a", 1), 0, 1), at(tells("a", 5, refused), 2, 3)}, false},
		"goes on":                           {[]operation{at(gets("a", 1), 0, 1), at(goesOn, 2, 3)}, true},
		"goes on though another one has it": {[]operation{at(gets("a", 1), 0, 1), at(gets("b", 2), 2, 3), at(goesOn, 4, 5)}, false},
		"goes on though it has ended":       {[]operation{at(gets("a", 1), 0, 1), at(tells("a", 5, done), 2, 3), at(goesOn, 4, 5)}, false},
	} {
		h := history{all: c.all}
		if err := h.check(); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
