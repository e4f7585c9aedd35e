package lease

import (
	"fmt"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
)

// Waits returns how many attempts of a study hold a worker although their programs have not
// started, and the cause of the first, as their workers say.
func Waits(workers []Worker, study string) (n int, cause string) {
	for i := range workers {
		for _, w := range workers[i].Waiting {
			for _, place := range w.Running {
				if workers[i].Running[place].Study != study {
					continue
				}
				if n == 0 {
					cause = w.Cause
				}
				n++
			}
		}
	}
	return n, cause
}

// WaitText tells people that n of a study's trials wait for a cause.
func WaitText(n int, cause string) string {
	if n == 1 {
		return "one trial waits: " + cause
	}
	return fmt.Sprintf("%d trials wait, such as: %s", n, cause)
}

// ShowWaiting sets Waiting of a trial's last attempt to what its worker says.
func ShowWaiting(workers []Worker, t *record.Trial) {
	last := t.Last()
	if last == nil || t.State.Terminal() || last.Worker == "" {
		return
	}
	for i := range workers {
		if workers[i].Worker != last.Worker {
			continue
		}
		for id, cause := range workers[i].Causes() {
			if id.Nonce == last.Nonce {
				last.Waiting = cause
			}
		}
	}
}
