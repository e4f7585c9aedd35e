package coordinatorcli

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	yaml "go.yaml.in/yaml/v4"

	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
	"github.com/fantasia-hpo/fantasia/messaging/natsbus"
)

// config is what `coordinator nats-config` prints.
func config(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	cmd := New("dev", io.Discard)
	cmd.SetOut(&out)
	cmd.SetArgs(append([]string{"nats-config"}, args...))
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// The chart's accounts are those of the command, except for the passwords, and each
// user's Secret has the password of the accounts.
func TestChartHasTheSameAccounts(t *testing.T) {
	helm := exec.CommandContext(t.Context(), testenv.Tool(t, "kube", "helm.sh/helm/v4/cmd/helm"), "template", "r", "deploy/helm/fantasia",
		"--set", "nats.bundled.accounts=true,poolDefaults.allowStudyCommands=true,pools.gpu.slots=2,pools.default.slots=1")
	helm.Dir = filepath.Join("..", "..", "..")
	var stderr bytes.Buffer
	helm.Stderr = &stderr
	out, err := helm.Output()
	if err != nil {
		t.Fatalf("helm template: %v\n%s", err, stderr.String())
	}
	passwords, accounts := map[string]string{}, ""
	for d := yaml.NewDecoder(bytes.NewReader(out)); ; {
		var r struct {
			Kind       string            `yaml:"kind"`
			StringData map[string]string `yaml:"stringData"`
		}
		if err := d.Decode(&r); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if r.Kind != "Secret" {
			continue
		}
		if text := r.StringData["accounts.conf"]; text != "" {
			accounts = text
		} else if user := r.StringData["user"]; user != "" {
			passwords[user] = r.StringData["password"]
		}
	}
	used := map[string]string{}
	line := regexp.MustCompile(`user: "([^"]*)", password: "([^"]*)"`)
	same := line.ReplaceAllStringFunc(accounts, func(text string) string {
		m := line.FindStringSubmatch(text)
		used[m[1]] = m[2]
		return `user: "` + m[1] + `", password: $` + natsbus.PasswordVariable(m[1])
	})
	want := config(t, "--accounts-only", "--pool=default", "--pool=gpu", "--pool=helm-test")
	if diff := cmp.Diff(want, same); diff != "" {
		t.Errorf("the chart's accounts (-command +chart):\n%s", diff)
	}
	if diff := cmp.Diff(passwords, used); diff != "" {
		t.Errorf("passwords (-Secrets +accounts):\n%s", diff)
	}
	seen := map[string]bool{}
	for user, password := range used {
		if len(password) < 32 || seen[password] {
			t.Errorf("user %s has the password %q: want one of its own, of 32 characters or more", user, password)
		}
		seen[password] = true
	}
}

// nats-server accepts the output of the command as it is.
func TestServerTakesTheConfiguration(t *testing.T) {
	for _, user := range []string{"coordinator", "pool-default", "worker-gpu.one"} {
		t.Setenv(natsbus.PasswordVariable(user), `"password of `+user+`"`)
	}
	text := config(t, "--pool=default", "--worker=gpu/one", "--max-store=1073741824", "--store="+t.TempDir())
	if !strings.Contains(text, "sync_interval: always") {
		t.Errorf("the configuration does not sync before it acknowledges:\n%s", text)
	}
	server := testenv.StartNATS(t, testenv.NATSConfig{Extra: text})
	for _, user := range []string{"coordinator", "pool-default", "worker-gpu.one"} {
		nc, err := nats.Connect(server.URL, nats.UserInfo(user, "password of "+user))
		if err != nil {
			t.Fatalf("connect as %s: %v", user, err)
		}
		nc.Close()
	}
}

func TestNATSConfigRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"":                                "no pool",
		"--pool=a.b":                      `pool "a.b"`,
		"--worker=w":                      "POOL/NAME",
		"--pool=a --identity=pool-a=pass": "identity of user pool-a",
		"--pool=a extra":                  "extra",
	} {
		cmd := New("dev", io.Discard)
		cmd.SetOut(io.Discard)
		cmd.SetArgs(append([]string{"nats-config"}, strings.Fields(args)...))
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("nats-config %s: %v, want an error with %q", args, err, want)
		}
	}
}
