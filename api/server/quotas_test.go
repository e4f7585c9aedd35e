package server_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/coordinator/quota"
	"github.com/fantasia-hpo/fantasia/internal/test/servertest"
	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// A caller who was sent as many bytes of logs as it may opens no more of them until the hour is over, while another
// caller does.
func TestLogBytes(t *testing.T) {
	all, _ := tokens(t, "one "+digest("one")+" read log-bytes=1KiB", "two "+digest("two")+" read")
	backend := servertest.New(t)
	create(t, backend, "digits")
	backend.Put("digits", evaluated(1, 0.5))
	backend.PutLog("digits", 1, coordinator.LogPart{Attempt: 1, Stream: messaging.LogStdout, Data: make([]byte, 700)})
	backend.PutLog("digits", 1, coordinator.LogPart{Attempt: 1, Stream: messaging.LogStdout, Data: make([]byte, 700)})
	var hours atomic.Int64
	quotas := server.NewQuotas(all, nil, func() time.Time { return servertest.Epoch.Add(time.Duration(hours.Load()) * time.Hour) })
	address := serve(t, quotas.Meter(backend), server.Options{Tokens: all, Quotas: quotas})
	read := func(token string) (bytes int, err error) {
		stream, err := bear(t, address, "grpc", token).TailTrialLogs(within(t),
			connect.NewRequest(&fantasiav1.TailTrialLogsRequest{Name: "studies/digits/trials/1"}))
		if err != nil {
			return 0, err
		}
		for stream.Receive() {
			bytes += len(stream.Msg().GetData())
		}
		return bytes, stream.Err()
	}
	if n, err := read("one"); n != 1400 || err != nil {
		t.Errorf("an open log ended after %d bytes: %v; want 1400", n, err)
	}
	_, err := read("one")
	check(t, err, connect.CodeResourceExhausted, "another log")
	if want := "the quota log-bytes of the token one (at each replica) is 1KiB; 1400 are used, and this call needs 1 more: wait until the " +
		"hour is over"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	if _, err := read("two"); err != nil {
		t.Errorf("another caller: %v", err)
	}
	hours.Add(1)
	if _, err := read("one"); err != nil {
		t.Errorf("an hour later: %v", err)
	}
}

// A caller reads a quarter of the logs that a replica reads at once, and another caller goes on.
func TestLogsAreShared(t *testing.T) {
	backend := servertest.New(t)
	create(t, backend, "digits")
	backend.Put("digits", evaluated(1, 0.5))
	backend.PutLog("digits", 1, coordinator.LogPart{Attempt: 1, Stream: messaging.LogStdout, Data: []byte("a line\n")})
	metered := server.NewQuotas(nil, nil, time.Now).Meter(backend)
	// open reads n logs within each other, and returns why the next one was refused.
	var open func(holder string, n int) error
	open = func(holder string, n int) error {
		ctx := server.WithGrant(within(t), server.Grant{Name: holder, Shares: []quota.Share{{}}})
		for _, err := range metered.TailLogs(ctx, "digits", 1,
			coordinator.LogTail{Lines: 1, Streams: []messaging.LogStream{messaging.LogStdout}}) {
			if err != nil || n == 1 {
				return err
			}
			return open(holder, n-1)
		}
		return nil
	}
	if err := open("one", 16); err != nil {
		t.Errorf("16 logs: %v", err)
	}
	check(t, open("one", 17), connect.CodeResourceExhausted, "17 logs")
	ctx := server.WithGrant(within(t), server.Grant{Name: "one"})
	for _, err := range metered.TailLogs(ctx, "digits", 1,
		coordinator.LogTail{Lines: 1, Streams: []messaging.LogStream{messaging.LogStdout}}) {
		if err := errors.Join(err, open("one", 15), open("two", 16)); err != nil {
			t.Errorf("what is left, and another caller: %v", err)
		}
		break
	}
}

// A caller sees its own quotas; one who sees all studies sees those of all. The metrics have the same, of those with
// a bound.
func TestListQuotas(t *testing.T) {
	all, _ := tokens(t, "team "+digest("team")+" write team- studies=3 study-bytes=none", "admin "+digest("admin")+" write studies=7",
		"guest "+digest("guest")+" read team-", "other "+digest("other")+" write other-")
	backend := servertest.New(t)
	for _, name := range []string{"team-a", "team-b", "other-c"} {
		create(t, backend, name)
	}
	quotas := server.NewQuotas(all, quota.Limits{quota.OpenTrials: 10, quota.Streams: 20}, time.Now)
	address := serve(t, backend, server.Options{Tokens: all, Quotas: quotas})
	ask := func(token string) (lines []string) {
		resp, err := bear(t, address, "connect", token).ListQuotas(within(t), connect.NewRequest(&fantasiav1.ListQuotasRequest{}))
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range resp.Msg.GetQuotas() {
			if strings.HasSuffix(q.GetQuota(), "-bytes") && q.GetUsed() > 0 {
				q.Used = 1 // how many bytes there are is none of this test's
			}
			limit := "none"
			if q.Limit != nil {
				limit = fmt.Sprint(q.GetLimit())
			}
			lines = append(lines, fmt.Sprintf("%s %s %d/%s %s", q.GetHolder(), q.GetQuota(), q.GetUsed(), limit, strings.Join(q.GetPrefixes(), ",")))
		}
		return lines
	}
	team := []string{"team studies 2/3 team-", "team study-bytes 1/none team-", "team open-trials 16/10 team-",
		"team trial-bytes 1/536870912 team-", "team streams 0/20 ", "team log-bytes 0/10737418240 "}
	if got := ask("team"); !slices.Equal(got, team) {
		t.Errorf("the team sees\n%s", strings.Join(got, "\n"))
	}
	if got, want := ask("guest"), []string{"guest streams 0/20 ", "guest log-bytes 0/10737418240 "}; !slices.Equal(got, want) {
		t.Errorf("a guest sees\n%s", strings.Join(got, "\n"))
	}
	got := ask("admin")
	for _, want := range append(team, "admin studies 3/7 ", "other studies 1/10000 other-", "guest streams 0/20 ") {
		if !slices.Contains(got, want) {
			t.Errorf("the admin sees no %q in\n%s", want, strings.Join(got, "\n"))
		}
	}
	metrics := observed(t, quotas, backend)
	for _, want := range []string{"limit team studies 3", "used team studies 2", "limit admin studies 7", "used other studies 1",
		"limit team streams 20"} {
		if !slices.Contains(metrics, want) {
			t.Errorf("no metric %q in\n%s", want, strings.Join(metrics, "\n"))
		}
	}
	if slices.Contains(metrics, "used team study-bytes 0") {
		t.Error("the metrics show a quota without a bound")
	}
}

// The metrics show so many quotas at most, the fullest first.
func TestQuotaMetricsAreBounded(t *testing.T) {
	var lines []string
	for i := range 300 {
		lines = append(lines, fmt.Sprintf("t%d %s write t%d- studies=1", i, digest(fmt.Sprint(i)), i))
	}
	all, _ := tokens(t, lines...)
	backend := servertest.New(t)
	create(t, backend, "t299-full")
	metrics := observed(t, server.NewQuotas(all, nil, time.Now), backend)
	if len(metrics) != 2*200 || !slices.Contains(metrics, "used t299 studies 1") {
		t.Errorf("%d metrics, want 400 with the full quota", len(metrics))
	}
}

// observed returns the metrics of quotas, as "used HOLDER QUOTA VALUE".
func observed(t *testing.T, q *server.Quotas, b server.Reader) (lines []string) {
	t.Helper()
	reader := metric.NewManualReader()
	if err := q.Observe(metric.NewMeterProvider(metric.WithReader(reader)).Meter("test"), b); err != nil {
		t.Fatal(err)
	}
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	for _, m := range all.ScopeMetrics[0].Metrics {
		for _, p := range m.Data.(metricdata.Gauge[int64]).DataPoints {
			holder, _ := p.Attributes.Value(telemetry.AttrHolder)
			name, _ := p.Attributes.Value(telemetry.AttrQuota)
			lines = append(lines, fmt.Sprintf("%s %s %s %d", strings.TrimPrefix(m.Name, "fantasia.quota."), holder.AsString(), name.AsString(),
				p.Value))
		}
	}
	return lines
}
