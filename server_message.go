package fantasia

import (
	"cmp"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/fantasia-hpo/fantasia/study"
)

// The messages of the API, with the fields that this package reads or writes. See
// https://github.com/fantasia-hpo/fantasia/blob/main/api/fantasia/v1/fantasia.proto.

// number is a double as protobuf's JSON has it.
type number float64

// MarshalJSON implements json.Marshaler.
func (n number) MarshalJSON() ([]byte, error) {
	switch f := float64(n); {
	case math.IsNaN(f):
		return []byte(`"NaN"`), nil
	case math.IsInf(f, 1):
		return []byte(`"Infinity"`), nil
	case math.IsInf(f, -1):
		return []byte(`"-Infinity"`), nil
	default:
		return json.Marshal(f)
	}
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *number) UnmarshalJSON(raw []byte) error {
	f, err := strconv.ParseFloat(strings.Trim(string(raw), `"`), 64) // knows NaN and Infinity
	*n = number(f)
	return err
}

// seconds is a duration as protobuf's JSON has it.
type seconds time.Duration

// UnmarshalJSON implements json.Unmarshaler.
func (s *seconds) UnmarshalJSON(raw []byte) error {
	d, err := time.ParseDuration(strings.Trim(string(raw), `"`))
	*s = seconds(d)
	return err
}

type (
	studyMessage struct {
		ID          string          `json:"id"`
		StudyFile   string          `json:"studyFile"`
		MaxTrials   int             `json:"maxTrials"`
		Trials      map[string]int  `json:"trials"` // by state
		Best        *pointedMessage `json:"best"`
		Front       frontMessage    `json:"front"`
		Recommended *pointedMessage `json:"recommended"`
	}
	// pointedMessage is a BestTrial or a Recommendation.
	pointedMessage struct {
		Trial   int    `json:"trial"`
		Mean    number `json:"mean"`
		SD      number `json:"sd"`
		Current bool   `json:"current"`
		// Front is that of several objectives.
		Front []expectedMessage `json:"front"`
	}
	frontMessage struct {
		Size int `json:"size"`
	}
	expectedMessage struct {
		Trial int      `json:"trial"`
		Means []number `json:"means"`
		SDs   []number `json:"sds"`
		Knee  bool     `json:"knee"`
	}
	trialMessage struct {
		Number     int               `json:"number"`
		State      string            `json:"state"`
		Parameters map[string]any    `json:"parameters"`
		Values     []number          `json:"values"`
		Metrics    map[string]number `json:"metrics"`
		Source     string            `json:"source"`
		Attempts   []attemptMessage  `json:"attempts"`
		Times      timesMessage      `json:"times"`
		Stopped    failureMessage    `json:"stopped"`
	}
	attemptMessage struct {
		Number  int            `json:"number"`
		Worker  string         `json:"worker"`
		Failure failureMessage `json:"failure"`
	}
	failureMessage struct {
		Reason  string `json:"reason"`
		Message string `json:"message"`
	}
	timesMessage struct {
		Started time.Time `json:"started"`
		Ended   time.Time `json:"ended"`
	}
	instructionMessage struct {
		Trial  int    `json:"trial"`
		Action string `json:"action"`
		Reason string `json:"reason"`
	}
	measurementMessage struct {
		Step    int64             `json:"step,string"`
		Value   number            `json:"value,omitempty"`
		Metrics map[string]number `json:"metrics,omitempty"`
	}

	studyAnswer struct {
		Study studyMessage `json:"study"`
	}
	trialAnswer struct {
		Trial trialMessage `json:"trial"`
	}
	suggestAnswer struct {
		Trials     []trialMessage `json:"trials"`
		StudyState string         `json:"studyState"`
		Reason     string         `json:"reason"`
		Lease      seconds        `json:"lease"`
	}
	beatAnswer struct {
		Instructions []instructionMessage `json:"instructions"`
	}
	trialsAnswer struct {
		Trials        []trialMessage `json:"trials"`
		NextPageToken string         `json:"nextPageToken"`
	}
	measurementsAnswer struct {
		Measurements  []measurementMessage `json:"measurements"`
		NextPageToken string               `json:"nextPageToken"`
	}
)

// floats returns numbers as such.
func floats(list []number) []float64 {
	all := make([]float64, len(list))
	for i, v := range list {
		all[i] = float64(v)
	}
	return all
}

// fill sets what a request says of an evaluation.
func (m *measured) fill(request map[string]any) {
	values := make([]number, len(m.values))
	for i, v := range m.values {
		values[i] = number(v)
	}
	request["values"] = values
	if len(m.metrics) == 0 {
		return
	}
	metrics := make(map[string]number, len(m.metrics))
	for name, v := range m.metrics {
		metrics[name] = number(v)
	}
	request["metrics"] = metrics
}

// state returns a trial's state. The states on the way to an evaluation by a worker do not occur in
// a study of this package.
func (m *trialMessage) state() State {
	return State(strings.TrimPrefix(m.State, "TRIAL_STATE_"))
}

// attempt returns the number of the last attempt; 0 if there is none.
func (m *trialMessage) attempt() int {
	if n := len(m.Attempts); n > 0 {
		return m.Attempts[n-1].Number
	}
	return 0
}

// point returns the values with the types that parameters of a space have.
func (s *onServer) point(raw map[string]any) Point {
	values := make(study.Point, len(raw))
	for name, v := range raw {
		p, known := s.compiled.Parameter(name)
		f, isNumber := v.(float64)
		if known && isNumber && (p.Type == study.Int || p.Type == study.Fidelity || whole(p.Values)) {
			v = int64(math.Round(f))
		}
		values[name] = v
	}
	return Point{s.space, values}
}

// whole reports whether there are listed values, of which the numbers are whole ones.
func whole(values []any) bool {
	for _, v := range values {
		if _, is := v.(float64); is {
			return false
		}
	}
	return len(values) > 0
}

// result returns what a message says of a trial.
func (s *onServer) result(m *trialMessage) Result {
	r := Result{
		Number: m.Number, State: m.state(), Value: math.NaN(), Source: strings.ToLower(strings.TrimPrefix(m.Source, "SOURCE_")),
		Started: m.Times.Started, Ended: m.Times.Ended, at: s.point(m.Parameters),
	}
	others := make(map[string]float64, len(m.Metrics))
	for name, v := range m.Metrics {
		others[name] = float64(v)
	}
	switch {
	case r.State != Completed:
		r.metrics = s.aims.early(others)
	case s.aims.several():
		r.metrics = s.aims.metrics(floats(m.Values), others)
	default:
		r.metrics = s.aims.metrics(floats(m.Values), others)
		r.Value = metricOf(r.metrics, s.aims.objectives[0].Metric)
	}
	if n := len(m.Attempts); n > 0 {
		f := m.Attempts[n-1].Failure
		r.Failure = cmp.Or(f.Message, f.Reason)
	}
	if r.State == Stopped {
		r.Failure = m.Stopped.Reason
	}
	return r
}
