package server_test

import (
	"context"
	"fmt"
	"testing"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/coordinator/curve"
	"github.com/fantasia-hpo/fantasia/internal/test/servertest"
	"github.com/fantasia-hpo/fantasia/study"
)

// reported are measurements of a trial: of loss at every step from 1 on, of
// accuracy at every other.
func reported(trial, attempt, steps int) curve.Reported {
	accuracy, loss := curve.Series{Metric: "accuracy"}, curve.Series{Metric: "loss"}
	for step := 1; step <= steps; step++ {
		p := curve.Point{Step: int64(step), Value: 1 / float64(step)}
		if loss.Points = append(loss.Points, p); step%2 == 0 {
			accuracy.Points = append(accuracy.Points, p)
		}
	}
	return curve.Reported{Trial: trial, Attempt: attempt, Series: []curve.Series{accuracy, loss}}
}

// texts are measurements as text.
func texts(list []*fantasiav1.Measurement) (out []string) {
	for _, m := range list {
		out = append(out, fmt.Sprint(m.GetMetric(), " ", m.GetStep(), " ", m.GetValue()))
	}
	return out
}

func TestListMeasurements(t *testing.T) {
	ctx, backend := within(t), servertest.New(t)
	create(t, backend, "digits")
	backend.Put("digits", evaluated(1, 1))
	backend.Put("digits", evaluated(2, 1))
	backend.PutMeasurements("digits", reported(1, 2, 21))
	c := dial(t, serve(t, backend, server.Options{}), "connect")
	var want []string
	for step := 2; step <= 21; step += 2 {
		want = append(want, fmt.Sprint("accuracy ", step, " ", 1/float64(step)))
	}
	for step := 1; step <= 21; step++ {
		want = append(want, fmt.Sprint("loss ", step, " ", 1/float64(step)))
	}
	list := func(trial int, metric string, size int32) (got []string) {
		t.Helper()
		for token := ""; ; {
			page, err := c.ListMeasurements(ctx, connect.NewRequest(&fantasiav1.ListMeasurementsRequest{
				Parent: fmt.Sprint("studies/digits/trials/", trial), Metric: metric, PageSize: size, PageToken: token,
			}))
			if err != nil {
				t.Fatal(err)
			}
			if n := len(page.Msg.GetMeasurements()); size > 0 && n > int(size) || n > 0 && page.Msg.GetAttempt() != 2 {
				t.Errorf("a page of %d has %d measurements, of attempt %d", size, n, page.Msg.GetAttempt())
			}
			got = append(got, texts(page.Msg.GetMeasurements())...)
			if token = page.Msg.GetNextPageToken(); token == "" {
				return got
			}
		}
	}
	for _, size := range []int32{0, 1, 7, 31, 10000} {
		if diff := cmp.Diff(want, list(1, "", size)); diff != "" {
			t.Errorf("by pages of %d:\n%s", size, diff)
		}
		if diff := cmp.Diff(want[10:], list(1, "loss", size)); diff != "" {
			t.Errorf("of loss, by pages of %d:\n%s", size, diff)
		}
	}
	if got := list(2, "", 0); got != nil {
		t.Errorf("a trial that reported nothing has %v", got)
	}
	for parent, code := range map[string]connect.Code{
		"studies/digits/trials/3": connect.CodeNotFound,
		"studies/other/trials/1":  connect.CodeNotFound,
		"studies/digits":          connect.CodeInvalidArgument,
	} {
		_, err := c.ListMeasurements(ctx, connect.NewRequest(&fantasiav1.ListMeasurementsRequest{Parent: parent}))
		if connect.CodeOf(err) != code {
			t.Errorf("%s: %v, want %v", parent, err, code)
		}
	}
	_, err := c.ListMeasurements(ctx,
		connect.NewRequest(&fantasiav1.ListMeasurementsRequest{Parent: "studies/digits/trials/1", PageToken: "YQ"}))
	if connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("a token that is none: %v", err)
	}
}

// A watch delivers each measurement once, including the last ones of a study that ends.
// It delivers those of a later attempt from its first step on.
func TestWatchMeasurements(t *testing.T) {
	backend := servertest.New(t)
	create(t, backend, "digits")
	backend.Put("digits", evaluated(1, 1))
	backend.PutMeasurements("digits", reported(1, 1, 3))
	c := dial(t, serve(t, backend, server.Options{}), "connect")
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	stream, err := c.WatchTrials(ctx, connect.NewRequest(&fantasiav1.WatchTrialsRequest{
		Parent: "studies/digits", IncludeExisting: true, IncludeMeasurements: true,
	}))
	if err != nil {
		t.Fatal(err)
	}
	trials := 0
	next := func(attempt int32) []string {
		t.Helper()
		for stream.Receive() {
			m := stream.Msg().GetMeasurements()
			if m == nil {
				trials++
				continue
			}
			if m.GetTrial() != "studies/digits/trials/1" || m.GetAttempt() != attempt {
				t.Errorf("measurements of %s, attempt %d; want attempt %d", m.GetTrial(), m.GetAttempt(), attempt)
			}
			return texts(m.GetMeasurements())
		}
		t.Fatalf("the watch ended: %v", stream.Err())
		return nil
	}
	check := func(attempt int32, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, next(attempt)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
	check(1, "loss 1 1", "loss 2 0.5", "loss 3 "+fmt.Sprint(1/3.0), "accuracy 2 0.5")
	backend.PutMeasurements("digits", reported(1, 1, 4))
	check(1, "loss 4 0.25", "accuracy 4 0.25")
	backend.PutMeasurements("digits", reported(1, 2, 1))
	check(2, "loss 1 1")
	backend.PutMeasurements("digits", reported(1, 2, 2))
	backend.Change("digits", func(s *server.Study) { s.Status.State = study.Stopped })
	check(2, "loss 2 0.5", "accuracy 2 0.5")
	for stream.Receive() { // the trial may come after its measurements
		if m := stream.Msg().GetMeasurements(); m != nil {
			t.Errorf("sent twice: %v", m)
		}
		trials++
	}
	if stream.Err() != nil || trials != 1 {
		t.Errorf("the watch ended with %v after %d trials", stream.Err(), trials)
	}
	if err := stream.Close(); err != nil {
		t.Error(err)
	}
}
