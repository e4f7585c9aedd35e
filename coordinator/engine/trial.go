package engine

import (
	"encoding/json"
	"time"

	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/messaging"
)

// work is a trial's record, and what the engine keeps about an open trial in memory only.
type work struct {
	rec record.Trial
	// due is when the last attempt is published again if nobody has claimed it.
	due time.Time
	// claimed is when the last attempt's claim was read.
	claimed time.Time
	// sent holds times that the next change of the record will store.
	sent    sent
	touched bool // in the engine's list of changes
}

const (
	// textsFirst and textsLast are how many attempts keep their messages and the
	// places of their logs: a trial's first ones, and those before its newest one.
	textsFirst = 1
	textsLast  = 3
	// maxRecord bounds a trial's record, in bytes of JSON, when it gets another
	// attempt. The ledger accepts 1 MiB. The rest is room for that attempt's result,
	// in which JSON escapes can take six bytes for one.
	maxRecord = 640 << 10
)

// sent holds when an attempt became durable and when the broker had it.
type sent struct {
	attempt              int // its number
	committed, published time.Time
}

// shorten drops the messages, places and logs of all attempts between the first and the
// last few. Otherwise the record of hundreds of attempts would be too large for the
// ledger.
func (t *trial) shorten() {
	for i := textsFirst; i < len(t.rec.Attempts)-textsLast; i++ {
		a := &t.rec.Attempts[i]
		a.Logs, a.Site, a.Stages = "", nil, nil
		if f := a.Failure; f != nil && f.Message != "" {
			a.Failure = &messaging.Failure{Reason: f.Reason, ExitCode: f.ExitCode, Signal: f.Signal} // snapshots share f
		}
	}
}

// full reports whether a trial's record has no room for another attempt.
func (t *trial) full() bool {
	if len(t.rec.Attempts) <= textsFirst+textsLast {
		return false
	}
	raw, err := json.Marshal(&t.rec)
	return err != nil || len(raw) > maxRecord
}
