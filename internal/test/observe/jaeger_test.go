//go:build e2e

package observe

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
)

// jaeger is Jaeger's query API.
type jaeger struct{ url string }

// jaegers finds the Jaeger to test with: where its query API is, and where it
// takes OTLP over HTTP. FANTASIA_E2E_JAEGER and FANTASIA_E2E_OTLP say so, such as
// http://127.0.0.1:16686 and http://127.0.0.1:4318; without them one is started.
func jaegers(t *testing.T) (j jaeger, endpoint string) {
	t.Helper()
	j.url, endpoint = os.Getenv("FANTASIA_E2E_JAEGER"), os.Getenv("FANTASIA_E2E_OTLP")
	if j.url == "" {
		return startJaeger(t)
	}
	if endpoint == "" {
		at, err := url.Parse(j.url)
		if err != nil {
			t.Fatal(err)
		}
		endpoint = "http://" + at.Hostname() + ":4318"
	}
	return j, endpoint
}

// startJaeger runs a Jaeger that keeps what it gets in memory.
func startJaeger(t *testing.T) (jaeger, string) {
	t.Helper()
	var args []string
	addresses := map[string]string{}
	for _, flag := range []string{
		"collector.otlp.grpc.host-port", "collector.otlp.http.host-port", "collector.grpc-server.host-port", "collector.http-server.host-port",
		"query.http-server.host-port", "query.grpc-server.host-port", "admin.http.host-port",
	} {
		addresses[flag] = fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t))
		args = append(args, "--"+flag+"="+addresses[flag])
	}
	j := jaeger{"http://" + addresses["query.http-server.host-port"]}
	testenv.Start(t, tool(t, "jaeger", "github.com/jaegertracing/jaeger/cmd/all-in-one"), args, []string{"COLLECTOR_OTLP_ENABLED=true"},
		func(ctx context.Context) error {
			_, err := get(ctx, j.url+"/api/services", "application/json")
			return err
		})
	return j, "http://" + addresses["collector.otlp.http.host-port"]
}

// jaegerTrace is a trace as /api/traces has it; times are in microseconds.
type jaegerTrace struct {
	TraceID string `json:"traceID"`
	Spans   []struct {
		SpanID        string `json:"spanID"`
		OperationName string `json:"operationName"`
		References    []struct {
			RefType string `json:"refType"`
			TraceID string `json:"traceID"`
			SpanID  string `json:"spanID"`
		} `json:"references"`
		StartTime int64       `json:"startTime"`
		Duration  int64       `json:"duration"`
		ProcessID string      `json:"processID"`
		Tags      []jaegerTag `json:"tags"`
	} `json:"spans"`
	Processes map[string]struct {
		ServiceName string      `json:"serviceName"`
		Tags        []jaegerTag `json:"tags"`
	} `json:"processes"`
}

type jaegerTag struct {
	Key   string `json:"key"`
	Value any    `json:"value"`
}

func tagTexts(tags []jaegerTag) map[string]string {
	m := map[string]string{}
	for _, t := range tags {
		m[t.Key] = fmt.Sprint(t.Value)
	}
	return m
}

// spans returns the spans of a trace.
func (j jaeger) spans(ctx context.Context, trace string) ([]span, error) {
	return j.query(ctx, "/api/traces/"+trace)
}

// query returns the spans of whatever traces a query finds.
func (j jaeger) query(ctx context.Context, path string) ([]span, error) {
	body, err := get(ctx, j.url+path, "application/json")
	if err != nil {
		return nil, err
	}
	var answer struct{ Data []jaegerTrace }
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		return nil, err
	}
	var list []span
	for _, tr := range answer.Data {
		for _, s := range tr.Spans {
			p := tr.Processes[s.ProcessID]
			got := span{
				service: p.ServiceName, name: s.OperationName, trace: tr.TraceID, id: s.SpanID,
				start: time.UnixMicro(s.StartTime), end: time.UnixMicro(s.StartTime + s.Duration),
				attributes: tagTexts(s.Tags), resource: tagTexts(p.Tags),
			}
			got.failed = got.attributes["error"] == "true"
			for _, r := range s.References {
				if r.RefType == "CHILD_OF" && r.TraceID == tr.TraceID {
					got.parent = r.SpanID
				} else {
					got.links = append(got.links, r.TraceID)
				}
			}
			list = append(list, got)
		}
	}
	return list, nil
}

// TestTracesInJaeger is TestTracesGoOnUnderTheNextLeader with what Jaeger's own
// API says, and asks it the questions of docs/operate/observe.md.
func TestTracesInJaeger(t *testing.T) {
	const trials = 12
	j, endpoint := jaegers(t)
	name := fmt.Sprintf("digits-%d", time.Now().UnixNano())
	stored, killed, _ := failover(t, endpoint, name, trials)
	across := 0
	for i := range stored.Trials {
		tr := &stored.Trials[i]
		spans := awaitRoot(t, tr.TraceID, tr.SpanID, j.spans)
		checkTrial(t, tr, spans)
		checkResource(t, spans)
		if tr.Times.Claimed.Before(killed) && tr.Times.Folded.After(killed) {
			across++
		}
	}
	if across == 0 {
		t.Error("no trial ran across the failover")
	}
	for _, q := range searches(t) {
		path := strings.ReplaceAll(q, "digits", name)
		found, err := j.query(t.Context(), path)
		if err != nil || len(found) == 0 {
			t.Errorf("%s found %d spans: %v", path, len(found), err)
		}
	}
}

// searches are the document's of Jaeger's API.
func searches(t *testing.T) []string {
	var paths []string
	for _, line := range blocks(t, "jaeger") {
		path, query, _ := strings.Cut(line, "?")
		var values []string
		for _, v := range strings.Split(query, "&") {
			name, value, _ := strings.Cut(v, "=")
			values = append(values, name+"="+url.QueryEscape(value))
		}
		paths = append(paths, path+"?"+strings.Join(values, "&"))
	}
	return paths
}

// awaitRoot waits until a backend has a trace's root.
func awaitRoot(t *testing.T, trace, root string, spans func(context.Context, string) ([]span, error)) []span {
	t.Helper()
	var got []span
	testenv.Eventually(t, 30*time.Second, func(ctx context.Context) (err error) {
		if got, err = spans(ctx, trace); err != nil {
			return err
		}
		for _, s := range got {
			if s.id == root {
				return nil
			}
		}
		return fmt.Errorf("the trace %s has %d spans and no root", trace, len(got))
	})
	return got
}
