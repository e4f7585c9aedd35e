package helm

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/api/oidc"
	"github.com/fantasia-hpo/fantasia/coordinator/election"
	"github.com/fantasia-hpo/fantasia/coordinator/scale"
	"github.com/fantasia-hpo/fantasia/internal/app/workernode"
)

// TestSchemaKnowsTheProgramsChecks compares the schema's verdicts on values with those of
// the programs themselves.
func TestSchemaKnowsTheProgramsChecks(t *testing.T) {
	positive := func(text string) bool { d, err := time.ParseDuration(text); return err == nil && d > 0 }
	for name, c := range map[string]struct {
		accepts func(string) bool // the program
		samples []string
	}{
		"coordinator.leaseTTL": {func(text string) bool {
			d, err := time.ParseDuration(text)
			return err == nil && election.ValidTTL(d)
		}, []string{"0s", "1s", "2s", "3s", "9s", "10s", "19s", "120s", "2500ms", "-2s", "2", ""}},
		"coordinator.workerLease": {positive, []string{"0s", "00s", "1s", "10ms", "5m", "1h", "-1s", "5", ""}},
		"poolDefaults.heartbeat":  {positive, []string{"0ms", "1ms", "5s", "10m", "5"}},
		"poolDefaults.state.keepTrials": {func(text string) bool { var n int64; return workernode.Size(&n).Set(text) == nil },
			[]string{"0", "1Gi", "512MiB", "7", "2TiB", "1G", "-1Gi", "1.5Gi", "Gi", "1B", ""}},
		"poolDefaults.kubejob.startTimeout": {positive, []string{"0s", "10m", "1h", "x"}},
		"poolDefaults.kubejob.queueTimeout": {positive, []string{"0s", "24h", "x"}},
		"coordinator.oidc.issuer": {func(text string) bool {
			_, err := oidc.New(oidc.Options{Issuer: text, Audience: "fantasia"})
			return text == "" || err == nil
		}, []string{"", "https://a", "https://a.example/tenant/v2", "https://a:8443", "http://a", "a", "https://", "https://a?b=c", "https://a#b",
			"https://a:b@c", "ftp://a"}},
		"coordinator.oidc.keys": {func(text string) bool { return oidc.CheckKeys("https://a", text) == nil },
			[]string{"", "https://a/keys", "https://a:8443/openid/v1/jwks", "http://a/keys", "http://127.0.0.1/keys", "a/keys", "https://a?b=c",
				"https://a:b@c/keys"}},
		// https://opentelemetry.io/docs/specs/otel/protocol/exporter: a URL with a scheme.
		"telemetry.otlpEndpoint": {func(text string) bool {
			u, err := url.Parse(text)
			return text == "" || err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
		}, []string{"", "http://collector:4318", "https://collector.example", "collector:4318", "collector", "grpc://collector:4317", "http://"}},
	} {
		text, ok := programChecks()[name]["pattern"].(string)
		if !ok {
			t.Errorf("the schema checks nothing of %s", name)
			continue
		}
		pattern := regexp.MustCompile(text)
		for _, s := range c.samples {
			if got, want := pattern.MatchString(s), c.accepts(s); got != want {
				t.Errorf("%s: the schema accepts %q: %v, the program: %v", name, s, got, want)
			}
		}
	}
}

// TestTheLeaderReadsWhatTheSchemaAccepts checks the limits of a scaled pool against the
// program that reads them.
func TestTheLeaderReadsWhatTheSchemaAccepts(t *testing.T) {
	for set, accepted := range map[string]bool{
		`{"method":"leader","minReplicas":0,"maxReplicas":1}`: true,
		`{"method":"leader","minReplicas":0,"maxReplicas":0}`: false,
		`{"method":"leader","minReplicas":3,"maxReplicas":2}`: false,
		`{"method":"leader","minReplicas":2,"maxReplicas":2}`: true,
	} {
		out, err := run(t, "helm", append([]string{"template", "f", chart}, values("pools.default.autoscaling="+set)...)...)
		if (err == nil) != accepted {
			t.Errorf("the chart accepts %s: %v, want %v", set, err, accepted)
		}
		if err != nil {
			if !strings.Contains(err.Error(), "pools") {
				t.Errorf("the error does not name the path of %s: %v", set, err)
			}
			continue
		}
		file := filepath.Join(t.TempDir(), "scale.yaml")
		if err := os.WriteFile(file, []byte(find(t, objects(t, out), "ConfigMap", "scale").text("data", "scale.yaml")), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := scale.Read(file); err != nil {
			t.Errorf("the leader refuses what the chart renders of %s: %v", set, err)
		}
	}
}
