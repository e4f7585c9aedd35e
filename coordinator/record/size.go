package record

import "github.com/fantasia-hpo/fantasia/study"

// What the parts of a trial's record take, in bytes of JSON, where it is not said by a text's length.
const (
	trialBytes   = 512 // its states, its times, its ids
	attemptBytes = 384
	memberBytes  = 24 // a number with its quotes, colon and comma
)

// Bytes returns about how many bytes the record has as JSON, without making it: quotas count these.
func (t *Trial) Bytes() int64 {
	n := trialBytes + memberBytes*len(t.Values) + len(t.Cancelled) + len(t.Checkpoint) + len(t.Note) + len(t.RequestID)
	n += sizeOf(map[string]any(t.Point)) + sizeOf(map[string]any(t.Suggested)) + sizeOf(t.Attributes)
	for name := range t.Metrics {
		n += memberBytes + len(name)
	}
	for key, value := range t.Labels {
		n += memberBytes + len(key) + len(value)
	}
	for i := range t.Attempts {
		a := &t.Attempts[i]
		n += attemptBytes + len(a.Logs)
		if a.Failure != nil {
			n += len(a.Failure.Message)
		}
	}
	return int64(n)
}

// sizeOf returns about how many bytes a value has as JSON.
func sizeOf(value any) int {
	n := memberBytes
	switch v := value.(type) {
	case string:
		n += len(v)
	case []any:
		for _, e := range v {
			n += sizeOf(e)
		}
	case map[string]any:
		for name, e := range v {
			n += len(name) + sizeOf(e)
		}
	}
	return n
}

// TypicalBytes returns about how many bytes a trial of a study has that is being evaluated.
func TypicalBytes(s *study.Spec) int64 {
	n := trialBytes + attemptBytes
	for i := range s.Parameters {
		n += memberBytes + len(s.Parameters[i].Name)
	}
	return int64(n)
}
