package quota

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/study"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Limits{
		"":                                  {},
		"studies=100":                       {Studies: 100},
		"studies=0 study-bytes=50MiB":       {Studies: 0, StudyBytes: 50 << 20},
		"study-bytes=1500 open-trials=none": {StudyBytes: 1500, OpenTrials: None},
		"study-bytes=2GiB":                  {StudyBytes: 2 << 30},
		"study-bytes=3KiB":                  {StudyBytes: 3 << 10},
	} {
		got, err := Parse(strings.Fields(text))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v (-want +got):\n%s", text, err, diff)
		}
		again, err := Parse(strings.FieldsFunc(got.String(), func(r rune) bool { return r == ',' }))
		if diff := cmp.Diff(want, again); err != nil || diff != "" {
			t.Errorf("%q as %q: %v (-want +got):\n%s", text, got, err, diff)
		}
	}
	for text, want := range map[string]string{
		"studies":                          `quota "studies": want QUOTA=NUMBER, where QUOTA is one of studies, study-bytes, open-trials, trial-bytes, streams, log-bytes`,
		"workers=3":                        `quota "workers=3": want QUOTA=NUMBER`,
		"studies=1 studies=2":              "quota studies is given twice",
		"studies=-1":                       `quota studies: got "-1"; want a whole number`,
		"studies=5MiB":                     `quota studies: got "5MiB"; want a whole number`,
		"study-bytes=5MB":                  `quota study-bytes: got "5MB"; want a number of bytes`,
		"study-bytes=99999999999GiB":       `quota study-bytes: got "99999999999GiB"`,
		"study-bytes=99999999999999999999": `quota study-bytes: got "99999999999999999999"`,
	} {
		if _, err := Parse(strings.Fields(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// Shares add up, those that only read give nothing, and a call that adds nothing is never refused.
func TestAdmit(t *testing.T) {
	used := func(*Share) Use { return Use{Studies: 5, StudyBytes: 100} }
	team := func(write bool, l Limits) Share {
		return Share{Holder: "team", Prefixes: []string{"team-"}, Write: write, Limits: l}
	}
	everybody := Share{Holder: "everybody"}
	for name, test := range map[string]struct {
		shares []Share
		study  string
		more   Use
		want   string
	}{
		"no shares": {nil, "team-a", Use{Studies: 1}, ""},
		"room":      {[]Share{team(true, Limits{Studies: 6})}, "team-a", Use{Studies: 1}, ""},
		"none left": {[]Share{team(true, Limits{Studies: 5})}, "team-a", Use{Studies: 1},
			"the quota studies of team (studies that begin with team-) is 5; 5 are used, and this call needs 1 more: delete"},
		"beyond":              {[]Share{team(true, Limits{Studies: 2})}, "team-a", Use{Studies: 1}, "is 2; 5 are used"},
		"beyond, adding none": {[]Share{team(true, Limits{Studies: 2})}, "team-a", Use{StudyBytes: -4}, ""},
		"bytes": {[]Share{team(true, Limits{StudyBytes: 101})}, "team-a", Use{Studies: 1, StudyBytes: 2},
			"the quota study-bytes of team"},
		"no bound":              {[]Share{team(true, Limits{Studies: None})}, "team-a", Use{Studies: None - 5}, ""},
		"another study":         {[]Share{team(true, Limits{Studies: 2})}, "other", Use{Studies: 1}, ""},
		"reading gives nothing": {[]Share{everybody, team(true, Limits{Studies: 5})}, "team-a", Use{Studies: 1}, "is 5"},
		"another line's room":   {[]Share{team(true, Limits{Studies: 5}), team(true, Limits{Studies: 6})}, "team-a", Use{Studies: 1}, ""},
	} {
		err := Admit(test.shares, test.study, used, test.more)
		if test.want == "" && err != nil ||
			test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || !errors.Is(err, study.ErrBusy)) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}
