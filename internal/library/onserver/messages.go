package onserver

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/library"
	"github.com/fantasia-hpo/fantasia/study"
)

// The messages of the API, with the fields that this package reads or writes. A test holds them against
// those of api/fantasia/v1/fantasia.proto. They are here by hand since protobuf would be a third of what
// the Go package adds to a program.

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

// MarshalJSON implements json.Marshaler.
func (s seconds) MarshalJSON() ([]byte, error) {
	return json.Marshal(strconv.FormatFloat(time.Duration(s).Seconds(), 'f', -1, 64) + "s")
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *seconds) UnmarshalJSON(raw []byte) error {
	d, err := time.ParseDuration(strings.Trim(string(raw), `"`))
	*s = seconds(d)
	return err
}

// What the server answers.
type (
	studyMessage struct {
		ID          string              `json:"id"`
		StudyFile   string              `json:"studyFile"`
		State       studyState          `json:"state"`
		Reason      string              `json:"reason"`
		MaxTrials   int                 `json:"maxTrials"`
		Trials      countsMessage       `json:"trials"`
		Best        *pointedMessage     `json:"best"`
		Front       frontMessage        `json:"front"`
		Recommended *recommendedMessage `json:"recommended"`
	}
	countsMessage struct {
		Completed  int `json:"completed"`
		Failed     int `json:"failed"`
		Infeasible int `json:"infeasible"`
		Pruned     int `json:"pruned"`
	}
	pointedMessage struct {
		Trial int `json:"trial"`
	}
	recommendedMessage struct {
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
		State      trialState        `json:"state"`
		Parameters map[string]any    `json:"parameters"`
		Values     []number          `json:"values"`
		Metrics    map[string]number `json:"metrics"`
		Source     source            `json:"source"`
		Attempts   []attemptMessage  `json:"attempts"`
		Times      timesMessage      `json:"times"`
		Stopped    stoppedMessage    `json:"stopped"`
		Cost       *number           `json:"cost"`
	}
	attemptMessage struct {
		Number  int            `json:"number"`
		Failure failureMessage `json:"failure"`
	}
	failureMessage struct {
		Reason  string `json:"reason"`
		Message string `json:"message"`
	}
	stoppedMessage struct {
		Reason string `json:"reason"`
	}
	timesMessage struct {
		Started time.Time `json:"started"`
		Ended   time.Time `json:"ended"`
	}
	instructionMessage struct {
		Action action `json:"action"`
		Reason string `json:"reason"`
	}
	// reportAnswer also says what the curve leaves out.
	reportAnswer struct {
		instructionMessage
		Ignored []string `json:"ignored"`
	}
	curveMessage struct {
		Step  int64  `json:"step,string"`
		Value number `json:"value"`
	}

	studyAnswer struct {
		Study studyMessage `json:"study"`
	}
	trialAnswer struct {
		Trial trialMessage `json:"trial"`
	}
	suggestAnswer struct {
		Trials     []trialMessage `json:"trials"`
		StudyState studyState     `json:"studyState"`
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
	curveAnswer struct {
		Measurements  []curveMessage `json:"measurements"`
		NextPageToken string         `json:"nextPageToken"`
	}

	// Values of enumerations, with their prefixes.
	trialState string
	studyState string
	source     string
	action     string
)

// What the server is asked.
type (
	nameRequest struct {
		Name string `json:"name"`
	}
	createStudyRequest struct {
		StudyFile string `json:"studyFile"`
	}
	updateStudyRequest struct {
		Name      string `json:"name"`
		StudyFile string `json:"studyFile"`
	}
	suggestRequest struct {
		Parent   string  `json:"parent"`
		ClientID string  `json:"clientId"`
		Count    int     `json:"count"`
		Wait     seconds `json:"wait"`
	}
	beatRequest struct {
		Parent   string `json:"parent"`
		ClientID string `json:"clientId"`
		Trials   []int  `json:"trials"`
		Attempts []int  `json:"attempts"`
	}
	// heldTrial is what a request about a trial that this process holds begins with. It names the
	// attempt, so that the request cannot be taken for one about a later attempt.
	heldTrial struct {
		Name     string `json:"name"`
		ClientID string `json:"clientId"`
		Attempt  int    `json:"attempt"`
	}
	reported struct {
		Step    int64             `json:"step,string"`
		Metrics map[string]number `json:"metrics"`
	}
	reportRequest struct {
		heldTrial
		reported
		Earlier []reported `json:"earlier,omitempty"`
	}
	measured struct {
		Values  []number          `json:"values,omitempty"`
		Metrics map[string]number `json:"metrics,omitempty"`
	}
	completeRequest struct {
		heldTrial
		measured
		Pruned bool `json:"pruned,omitempty"`
	}
	failRequest struct {
		heldTrial
		Infeasible bool   `json:"infeasible,omitempty"`
		Reason     string `json:"reason"`
		Message    string `json:"message"`
	}
	releaseRequest struct {
		heldTrial
		Reason string `json:"reason"`
	}
	enqueueRequest struct {
		Parent     string         `json:"parent"`
		RequestID  string         `json:"requestId"`
		Parameters map[string]any `json:"parameters"`
	}
	continueRequest struct {
		enqueueRequest
		Continues int `json:"continues"`
	}
	addRequest struct {
		enqueueRequest
		measured
	}
	listRequest struct {
		Parent    string `json:"parent"`
		PageSize  int    `json:"pageSize"`
		PageToken string `json:"pageToken"`
	}
	curveRequest struct {
		listRequest
		Metric string `json:"metric"`
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

// measuredBy returns what a request says of an evaluation.
func measuredBy(found library.Measured) measured {
	var m measured
	for _, v := range found.Values {
		m.Values = append(m.Values, number(v))
	}
	if len(found.Metrics) > 0 {
		m.Metrics = make(map[string]number, len(found.Metrics))
	}
	for name, v := range found.Metrics {
		m.Metrics[name] = number(v)
	}
	return m
}

// state returns a trial's state. The states on the way to an evaluation by a worker do not occur in
// a study of this package.
func (m *trialMessage) state() study.TrialState {
	return study.TrialState(strings.TrimPrefix(string(m.State), "TRIAL_STATE_"))
}

// attempt returns the number of the last attempt; 0 if there is none.
func (m *trialMessage) attempt() int {
	if n := len(m.Attempts); n > 0 {
		return m.Attempts[n-1].Number
	}
	return 0
}
