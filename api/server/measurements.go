package server

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"connectrpc.com/connect"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/coordinator/curve"
)

// measurementsPage is the default size of a page of measurements.
const measurementsPage = 1000

// ListMeasurements returns a page of what a trial's program reported.
func (s *service) ListMeasurements(
	ctx context.Context, req *connect.Request[fantasiav1.ListMeasurementsRequest],
) (*connect.Response[fantasiav1.ListMeasurementsResponse], error) {
	study, number, err := view.ParseTrialName(req.Msg.GetParent())
	if err != nil {
		return nil, badField("parent", err)
	}
	after, err := measurementToken(req.Msg.GetPageToken())
	if err != nil {
		return nil, err
	}
	found, err := s.backend.Measurements(ctx, study, number)
	if err != nil {
		return nil, toConnect(err)
	}
	size := cmp.Or(int(req.Msg.GetPageSize()), measurementsPage)
	page := &fantasiav1.ListMeasurementsResponse{Attempt: int32(found.Attempt)}
	for _, series := range found.Series {
		if metric := req.Msg.GetMetric(); metric != "" && series.Metric != metric {
			continue
		}
		for _, p := range series.Points {
			if !after.before(series.Metric, p.Step) {
				continue
			}
			if len(page.GetMeasurements()) == size {
				last := page.GetMeasurements()[size-1]
				page.NextPageToken = writeToken(strconv.FormatInt(last.GetStep(), 10) + " " + last.GetMetric())
				return respond(page, nil)
			}
			page.Measurements = append(page.Measurements, &fantasiav1.Measurement{Metric: series.Metric, Step: p.Step, Value: p.Value})
		}
	}
	return respond(page, nil)
}

// place is a place in a list of measurements: after a metric's step, or, if none is
// set, before the first measurement.
type place struct {
	metric string
	step   int64
	none   bool
}

// before reports whether a measurement comes after the place.
func (p place) before(metric string, step int64) bool {
	return p.none || metric > p.metric || metric == p.metric && step > p.step
}

// measurementToken decodes the page token of a list of measurements.
func measurementToken(token string) (place, error) {
	text, err := readToken(token)
	if err != nil || text == "" {
		return place{none: true}, err
	}
	digits, metric, found := strings.Cut(text, " ")
	step, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || !found {
		return place{}, badField("page_token", fmt.Errorf("page_token is %q; want the next_page_token of the previous page", token))
	}
	return place{metric: metric, step: step}, nil
}

// watchBoth sends trials and their measurements, until the study has ended and the last
// of both have been sent.
func (s *service) watchBoth(ctx context.Context, req *fantasiav1.WatchTrialsRequest, study string, out send) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var turn sync.Mutex
	one := func(m *fantasiav1.WatchTrialsResponse) error { // a stream's Send is not safe for concurrent use
		turn.Lock()
		defer turn.Unlock()
		return out(m)
	}
	var once sync.Once
	var failure error // the first one, which ends the other watch
	note := func(err error) {
		if err != nil {
			once.Do(func() { failure = err })
			cancel()
		}
	}
	ended := make(chan struct{})
	var measuring sync.WaitGroup
	measuring.Go(func() { note(s.watchMeasurements(ctx, req, study, ended, one)) })
	note(s.watchTrials(ctx, req, study, one))
	close(ended)
	measuring.Wait()
	return failure
}

// watchMeasurements sends the measurements of trials, each once.
func (s *service) watchMeasurements(
	ctx context.Context, req *fantasiav1.WatchTrialsRequest, study string, ended <-chan struct{}, out send,
) error {
	sent := map[int]*progress{} // by trial
	for m, err := range s.backend.WatchMeasurements(ctx, study, req.GetIncludeExisting(), ended) {
		if err != nil {
			return watchError(ctx, err)
		}
		if sent[m.Trial] == nil {
			sent[m.Trial] = &progress{}
		}
		fresh := sent[m.Trial].fresh(m)
		if len(fresh) == 0 {
			continue
		}
		err := out(&fantasiav1.WatchTrialsResponse{Measurements: &fantasiav1.TrialMeasurements{
			Trial: view.TrialName(study, m.Trial), Attempt: int32(m.Attempt), Measurements: fresh,
		}})
		if err != nil {
			return err
		}
	}
	return nil
}

// progress holds what was sent of a trial: the last step of each metric of an attempt.
type progress struct {
	attempt int
	last    map[string]int64
}

// fresh returns the measurements that have not been sent yet.
func (p *progress) fresh(m curve.Reported) (fresh []*fantasiav1.Measurement) {
	if m.Attempt != p.attempt {
		p.attempt, p.last = m.Attempt, map[string]int64{}
	}
	for _, series := range m.Series {
		for _, point := range series.Points {
			if last, some := p.last[series.Metric]; some && point.Step <= last {
				continue
			}
			p.last[series.Metric] = point.Step
			fresh = append(fresh, &fantasiav1.Measurement{Metric: series.Metric, Step: point.Step, Value: point.Value})
		}
	}
	return fresh
}
