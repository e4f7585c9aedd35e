package messaging_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/messaging"
)

// The phases of an evaluation add up to it, whatever is known of it and however the clocks differ.
func TestPhases(t *testing.T) {
	t.Parallel()
	at := func(seconds int) time.Time {
		if seconds == 0 {
			return time.Time{}
		}
		return time.Unix(int64(1000+seconds), 0)
	}
	of := func(created, scheduled, prepared, started, ended int) *messaging.Stages {
		return &messaging.Stages{Created: at(created), Scheduled: at(scheduled), Prepared: at(prepared), Started: at(started), Ended: at(ended)}
	}
	for name, tt := range map[string]struct {
		stages *messaging.Stages
		want   string
	}{
		"every stage":            {of(11, 12, 14, 17, 25), "admit 1 schedule 1 prepare 2 start 3 run 8 finish 5"},
		"no node":                {of(11, 0, 0, 0, 0), "admit 1 schedule 19"},
		"no pod":                 {of(0, 0, 0, 0, 0), "admit 20"},
		"no image":               {of(11, 12, 14, 0, 0), "admit 1 schedule 1 prepare 2 start 16"},
		"deleted while it ran":   {of(11, 12, 14, 17, 0), "admit 1 schedule 1 prepare 2 start 3 run 13"},
		"an old cluster":         {of(11, 12, 0, 17, 25), "admit 1 schedule 1 start 5 run 8 finish 5"},
		"a Job that stays":       {of(0, 0, 0, 10, 25), "start 0 run 15 finish 5"},
		"the node's clock ahead": {of(11, 12, 14, 40, 48), "admit 1 schedule 1 prepare 2 start 16 run 0 finish 0"},
		"the node's clock slow":  {of(1, 2, 4, 7, 15), "admit 0 schedule 0 prepare 0 start 0 run 5 finish 15"},
		"not of Kubernetes":      {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			started, ended := at(10), at(30)
			var got []string
			next := started
			for _, p := range tt.stages.Phases(started, ended) {
				if !p.Start.Equal(next) {
					t.Errorf("%s starts at %v, want %v, where the phase before ended", p.Name, p.Start, next)
				}
				next = p.End
				got = append(got, fmt.Sprintf("%s %.0f", p.Name, p.End.Sub(p.Start).Seconds()))
			}
			if got := strings.Join(got, " "); got != tt.want {
				t.Errorf("the phases are %q, want %q", got, tt.want)
			}
			if tt.stages != nil && !next.Equal(ended) {
				t.Errorf("the last phase ends at %v, want %v", next, ended)
			}
			if phases := tt.stages.Phases(started, time.Time{}); phases != nil {
				t.Errorf("an evaluation that has not ended has the phases %v", phases)
			}
		})
	}
}

// Releases without stages read results with them, and these read results without.
func TestStagesAreOptional(t *testing.T) {
	t.Parallel()
	r := result()
	data, err := messaging.Encode(r)
	if err != nil || strings.Contains(string(data), "stages") {
		t.Errorf("a result without stages is %s (%v)", data, err)
	}
	r.Stages = &messaging.Stages{Started: time.Unix(1000, 0).UTC()}
	if data, err = messaging.Encode(r); err != nil {
		t.Fatal(err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil || string(fields["stages"]) != `{"started":"1970-01-01T00:16:40Z"}` {
		t.Errorf("the stages are %s (%v)", fields["stages"], err)
	}
}
