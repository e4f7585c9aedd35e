package disk

import (
	"testing"

	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
)

// The space is judged by what is in use, or by the file where that cannot grow much more.
func TestSpace(t *testing.T) {
	const quota = 1000
	for _, s := range []struct {
		ledger.Space
		lacking bool
	}{
		{ledger.Space{}, false}, {ledger.Space{Used: 899, Size: 960, Quota: quota}, false},
		{ledger.Space{Used: 900, Size: 960, Quota: quota}, true},
		{ledger.Space{Used: 10, Size: 970, Quota: quota}, true}, {ledger.Space{Full: true}, true},
		{ledger.Space{Used: 1 << 40, Size: 1 << 40}, false},
	} {
		r := NewSpace(nil, nil)
		if err := r.Lacking(); err != nil {
			t.Errorf("before it is known: %v", err)
		}
		r.now.Store(&s.Space)
		if err := r.Lacking(); (err != nil) != s.lacking {
			t.Errorf("%+v: %v, want an error: %t", s.Space, err, s.lacking)
		}
	}
}
