package server

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"connectrpc.com/connect"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/coordinator/record"
	"github.com/fantasia-hpo/fantasia/study"
)

// GetTrial returns one trial.
func (s *service) GetTrial(
	ctx context.Context, req *connect.Request[fantasiav1.GetTrialRequest],
) (*connect.Response[fantasiav1.GetTrialResponse], error) {
	study, number, err := view.ParseTrialName(req.Msg.GetName())
	if err != nil {
		return nil, badField("name", err)
	}
	found, err := s.backend.Trial(ctx, study, number)
	if err != nil {
		return nil, toConnect(err)
	}
	m, err := toTrial(study, found)
	return respond(&fantasiav1.GetTrialResponse{Trial: m}, err)
}

// ListTrials returns a page of a study's trials.
func (s *service) ListTrials(
	ctx context.Context, req *connect.Request[fantasiav1.ListTrialsRequest],
) (*connect.Response[fantasiav1.ListTrialsResponse], error) {
	after, err := trialToken(req.Msg.GetPageToken())
	if err != nil {
		return nil, err
	}
	name, size := studyOf(req.Msg.GetParent()), pageSize(req.Msg.GetPageSize())
	// One more than is asked for tells whether there is another page.
	trials, err := s.trials(ctx, name, after, size+1, req.Msg.GetStates(), req.Msg.GetLabels())
	if err != nil {
		return nil, toConnect(err)
	}
	page := &fantasiav1.ListTrialsResponse{}
	page.Trials, page.NextPageToken, err = trialPage(name, trials, size)
	return respond(page, err)
}

// trialPage returns the first trials as messages, up to size of them, and the token of the
// next page if there are more. name is what the caller calls the study.
func trialPage(name string, trials []record.Trial, size int) (list []*fantasiav1.Trial, next string, err error) {
	if len(trials) > size {
		trials = trials[:size]
		next = writeToken(strconv.Itoa(trials[size-1].Number))
	}
	for _, t := range trials {
		m, err := toTrial(name, t)
		if err != nil {
			return nil, "", toConnect(err)
		}
		list = append(list, m)
	}
	return list, next, nil
}

// ListOptimalTrials returns a page of the trials on a study's front.
func (s *service) ListOptimalTrials(
	ctx context.Context, req *connect.Request[fantasiav1.ListOptimalTrialsRequest],
) (*connect.Response[fantasiav1.ListOptimalTrialsResponse], error) {
	after, err := trialToken(req.Msg.GetPageToken())
	if err != nil {
		return nil, err
	}
	name, size := studyOf(req.Msg.GetParent()), pageSize(req.Msg.GetPageSize())
	front, err := s.front(ctx, name)
	if err != nil {
		return nil, toConnect(err)
	}
	front = slices.DeleteFunc(front, func(t record.Trial) bool { return t.Number <= after })
	page := &fantasiav1.ListOptimalTrialsResponse{}
	page.Trials, page.NextPageToken, err = trialPage(name, front, size)
	return respond(page, err)
}

// front returns the trials on the front of a study, by number. It keeps only these in memory.
func (s *service) front(ctx context.Context, name string) ([]record.Trial, error) {
	found, err := s.backend.Study(ctx, name)
	if err != nil {
		return nil, err
	}
	var front []record.Trial
	for after := 0; ; {
		trials, err := s.backend.Trials(ctx, name, after, scanSize)
		if err != nil {
			return nil, err
		}
		if front, err = found.Spec.Front(append(front, trials...)); err != nil || len(trials) < scanSize {
			return front, err
		}
		after = trials[len(trials)-1].Number
	}
}

// trials returns up to limit trials after the number given, in one of the states and with
// all of the labels.
func (s *service) trials(
	ctx context.Context, name string, after, limit int, states []fantasiav1.TrialState, labels map[string]string,
) ([]record.Trial, error) {
	if len(states)+len(labels) == 0 {
		return s.backend.Trials(ctx, name, after, limit)
	}
	return scan(after, limit,
		func(after, limit int) ([]record.Trial, error) { return s.backend.Trials(ctx, name, after, limit) },
		func(t record.Trial) int { return t.Number },
		func(t record.Trial) bool { return wanted(states, t) && study.HasLabels(t.Labels, labels) })
}

// WatchTrials sends trials whenever they change, until the study has ended.
func (s *service) WatchTrials(
	ctx context.Context, req *connect.Request[fantasiav1.WatchTrialsRequest], stream *connect.ServerStream[fantasiav1.WatchTrialsResponse],
) error {
	ctx, end := s.watch(ctx)
	defer end()
	study := studyOf(req.Msg.GetParent())
	if !req.Msg.GetIncludeMeasurements() {
		return s.watchTrials(ctx, req.Msg, study, stream.Send)
	}
	return s.watchBoth(ctx, req.Msg, study, stream.Send)
}

// send sends a message of a watch.
type send func(*fantasiav1.WatchTrialsResponse) error

func (s *service) watchTrials(ctx context.Context, req *fantasiav1.WatchTrialsRequest, study string, send send) error {
	for t, err := range s.backend.WatchTrials(ctx, study, req.GetIncludeExisting()) {
		if err != nil {
			return watchError(ctx, err)
		}
		if !wanted(req.GetStates(), t) {
			continue
		}
		m, err := toTrial(study, t)
		if err != nil {
			return toConnect(err)
		}
		if err := send(&fantasiav1.WatchTrialsResponse{Trial: m}); err != nil {
			return err
		}
	}
	return watchError(ctx, nil)
}

// wanted reports whether the trial is in one of the states, or no states are given.
func wanted(states []fantasiav1.TrialState, t record.Trial) bool {
	return len(states) == 0 || slices.Contains(states, toTrialState(t.State))
}

// trialToken returns the number of the last trial from the page token of a list of
// trials.
func trialToken(token string) (after int, err error) {
	text, err := readToken(token)
	if err != nil || text == "" {
		return 0, err
	}
	after, err = strconv.Atoi(text)
	if err != nil || after < 1 {
		return 0, badField("page_token", fmt.Errorf("page_token is %q; want the next_page_token of the previous page", token))
	}
	return after, nil
}
