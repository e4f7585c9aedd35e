package server

import (
	"context"
	"testing"

	"connectrpc.com/connect"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/study"
)

// one is a reader of a single study, team-a.
type one struct{ Reader }

func (one) Name(_ context.Context, nameOrID string) (string, error) {
	if nameOrID != "team-a" && nameOrID != "ID" {
		return "", study.ErrNotFound
	}
	return "team-a", nil
}

// TestUnknownCallsAreClosed: a call that the rules do not know is refused to a token that is limited
// to some studies, and so is each call without a grant.
func TestUnknownCallsAreClosed(t *testing.T) {
	team := WithGrant(t.Context(), Grant{Name: "team", Write: true, Prefixes: []string{"team-"}})
	reads := WithGrant(t.Context(), Grant{Name: "reads", Prefixes: []string{"team-"}})
	everything := WithGrant(t.Context(), Grant{Name: "all", Write: true})
	for _, test := range []struct {
		name      string
		ctx       context.Context
		procedure string
		request   any
		want      connect.Code
	}{
		{"without a study", team, "/new", &fantasiav1.ListWorkersRequest{}, connect.CodePermissionDenied},
		{"of something else", team, "/new", &fantasiav1.GetStudyRequest{Name: "workers/w"}, connect.CodePermissionDenied},
		{"of the study", team, "/new", &fantasiav1.GetStudyRequest{Name: "studies/team-a"}, 0},
		{"of its trial, by the study's id", team, "/new", &fantasiav1.GetTrialRequest{Name: "studies/ID/trials/1"}, 0},
		{"of another study", team, "/new", &fantasiav1.GetStudyRequest{Name: "studies/other"}, connect.CodeNotFound},
		{"that may change something", reads, "/new", &fantasiav1.GetStudyRequest{Name: "studies/team-a"}, connect.CodePermissionDenied},
		{"without a grant", t.Context(), "/new", &fantasiav1.GetStudyRequest{Name: "studies/team-a"}, connect.CodeNotFound},
		{"with a grant of everything", everything, "/new", &fantasiav1.ListWorkersRequest{}, 0},
	} {
		err := toConnect(mayCall(one{})(test.ctx, test.procedure, test.request))
		if test.want == 0 && err != nil || test.want != 0 && connect.CodeOf(err) != test.want {
			t.Errorf("a new call %s: %v, want code %d", test.name, err, test.want)
		}
	}
}

// TestEachCallSaysItsStudy: each call of the API has a row in listed, or says which study it is about.
func TestEachCallSaysItsStudy(t *testing.T) {
	methods := fantasiav1.File_fantasia_v1_fantasia_proto.Services().ByName("StudyService").Methods()
	for i := range methods.Len() {
		input := methods.Get(i).Input()
		_, row := listed["/"+string(methods.Get(i).Parent().FullName())+"/"+string(methods.Get(i).Name())]
		if says := input.Fields().ByName("name") != nil || input.Fields().ByName("parent") != nil ||
			input.Name() == "CreateStudyRequest"; says == row {
			t.Errorf("%s: says its study: %t; has a row: %t; want one of them", methods.Get(i).Name(), says, row)
		}
	}
}
