//go:build e2e

package observe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
)

// TestRulesInPromtool has Prometheus's own tool check the rules, and play the
// stories of testdata/rules.test.yaml to them.
func TestRulesInPromtool(t *testing.T) {
	promtool := tool(t, "prometheus", "github.com/prometheus/prometheus/cmd/promtool")
	for _, args := range [][]string{
		{"check", "rules", "--lint=all", "--lint-fatal", filepath.Join(root, rulesFile)},
		{"test", "rules", filepath.Join("testdata", "rules.test.yaml")},
	} {
		if text, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, text)
		}
	}
}

// prometheus runs a Prometheus that scrapes targets each second and evaluates rules, and returns
// its address.
func prometheus(t *testing.T, targets []string, rules string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "rules.yml"), []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(`
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [rules.yml]
scrape_configs:
  - job_name: fantasia
    static_configs: [{targets: ["%s"]}]
`, strings.Join(targets, `", "`))
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t))
	testenv.Start(t, tool(t, "prometheus", "github.com/prometheus/prometheus/cmd/prometheus"), []string{
		"--config.file=" + file, "--storage.tsdb.path=" + filepath.Join(dir, "data"), "--web.listen-address=" + address,
		"--enable-feature=exemplar-storage", "--log.level=warn",
	}, nil, func(ctx context.Context) error {
		_, err := get(ctx, "http://"+address+"/-/ready", "*/*")
		return err
	})
	return "http://" + address
}

// TestQueriesAnswer runs a study under a real Prometheus and asks it every query
// of docs/operate/observe.md, of the rules and of the dashboard: each has an answer.
func TestQueriesAnswer(t *testing.T) {
	backend := newReceiver(t)
	in := install(t, backend.url, 2)
	server := prometheus(t, in.targets(), readFile(t, rulesFile))
	in.create("digits", 1000)
	// random search recommends nothing.
	in.Create(strings.Replace(fmt.Sprintf(digits, "recommended", 1000), "name: random", "name: tpe", 1))
	in.await("digits", 20)
	// Each answer may need a second scrape, or an evaluation of the rules.
	open := expressions(t)
	variables := strings.NewReplacer("$__rate_interval", "1m", `"$installation"`, `".*"`, `"$study"`, `".*"`, `"$pool"`, `".*"`)
	testenv.Eventually(t, 2*time.Minute, func(context.Context) error {
		var missing []error
		for expr, where := range open {
			expr, shown := variables.Replace(expr), expr
			err := answers(t.Context(), server, expr)
			if err == nil || errors.Is(err, errNoAnswer) && quiet(expr) {
				delete(open, shown)
			} else {
				missing = append(missing, fmt.Errorf("%s: %w", where, err))
			}
		}
		return errors.Join(missing...)
	})
	in.exemplars(server, backend)
}

// quiet reports whether a query has no answer while all is well: that of an alert, or one about
// something that this test does not do, such as starting Jobs of Kubernetes, giving quotas or having several objectives.
func quiet(expr string) bool {
	for _, sign := range []string{
		"== 0", "> 0", "> 1", "> 3", "> 5", ">= 5", `"lost"`, `"fallback"`, "fantasia_quota_", "fantasia_study_hypervolume", "spool[10m]",
		"trial_phase",
	} {
		if strings.Contains(expr, sign) {
			return true
		}
	}
	return false
}

var errNoAnswer = errors.New("no answer")

// answers asks a query; errNoAnswer where the answer is empty.
func answers(ctx context.Context, server, expr string) error {
	body, err := get(ctx, server+"/api/v1/query?query="+url.QueryEscape(expr), "application/json")
	if err != nil {
		return err
	}
	var answer struct {
		Status string
		Data   struct{ Result []json.RawMessage }
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		return err
	}
	if answer.Status != "success" {
		return fmt.Errorf("the answer is %s", body)
	}
	if len(answer.Data.Result) == 0 {
		return fmt.Errorf("%w to %s", errNoAnswer, expr)
	}
	return nil
}

// exemplars holds that the evaluations' histogram leads to traces that exist.
func (in *installation) exemplars(server string, backend *receiver) {
	t := in.t
	t.Helper()
	now := time.Now()
	path := fmt.Sprintf("/api/v1/query_exemplars?query=fantasia_trial_evaluation_seconds_bucket&start=%d&end=%d", now.Add(-time.Hour).Unix(),
		now.Unix()+1)
	testenv.Eventually(t, 30*time.Second, func(ctx context.Context) error {
		body, err := get(ctx, server+path, "application/json")
		if err != nil {
			return err
		}
		var answer struct {
			Data []struct {
				Exemplars []struct{ Labels map[string]string }
			}
		}
		if err := json.Unmarshal([]byte(body), &answer); err != nil {
			return err
		}
		for _, series := range answer.Data {
			for _, e := range series.Exemplars {
				if len(backend.spans(e.Labels["trace_id"])) > 0 {
					return nil
				}
			}
		}
		return fmt.Errorf("no exemplar leads to a trace: %.300s", body)
	})
}
