// Package attacks plays attackers against real processes: what no single package can show.
package attacks

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
	"github.com/fantasia-hpo/fantasia/messaging/natsbus"
)

const module = "github.com/fantasia-hpo/fantasia/"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// secrets are marks, one for each credential, and all that the programs put out.
type secrets struct {
	t     *testing.T
	dir   string
	marks map[string]string // by what each is
	out   map[string]string // by where it came out

	nats, ca string   // an address and a file of the installation
	etcd     []string // the flags of its etcd
	dirs     []string // where all programs keep their files
	otel     testenv.Text
}

// mark returns a new secret.
func (s *secrets) mark(what string) string {
	s.marks[what] = fmt.Sprintf("Mark%03dx%x", len(s.marks), sha256.Sum256([]byte(what)))[:32]
	return s.marks[what]
}

// file returns a new file that only its owner reads, and which holds a secret.
func (s *secrets) file(what string) string {
	s.t.Helper()
	return s.write(strings.ReplaceAll(what, " ", "-"), s.mark(what)+"\n")
}

func (s *secrets) write(name, text string) string {
	s.t.Helper()
	path := filepath.Join(s.dir, "secrets", name)
	must(s.t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(s.t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// key makes a certificate of which a part of the key is a secret.
func (s *secrets) key(ca *testenv.CA, what string) (cert, key string) {
	s.t.Helper()
	cert, key = ca.New("server")
	text, err := os.ReadFile(key)
	must(s.t, err)
	s.marks[what] = string(bytes.Split(text, []byte("\n"))[1][:40])
	return cert, key
}

// start starts a program of which all output is kept, in a file.
func (s *secrets) start(name string, env []string, ready func(context.Context) error, args ...string) *testenv.Process {
	s.t.Helper()
	log := filepath.Join(s.dir, "logs", name)
	must(s.t, os.MkdirAll(filepath.Dir(log), 0o700))
	script := fmt.Sprintf(`exec "$@" >>%q 2>&1`, log)
	p := testenv.Start(s.t, "/bin/sh", append([]string{"-c", script, "sh", testenv.Build(s.t, module+"cmd/"+name)}, args...), env, ready)
	if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID())); err == nil {
		s.out["the arguments of "+name] = string(line)
	}
	return p
}

// command runs the command line, which may fail, and keeps its output.
func (s *secrets) command(env []string, args ...string) string {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), testenv.Build(s.t, module+"cmd/fantasia"), args...)
	cmd.Env = append(os.Environ(), env...)
	out, _ := cmd.CombinedOutput() // the test looks at the output only
	name := "fantasia " + strings.Join(args, " ")
	for what, mark := range s.marks { // an address with a password among the arguments
		name = strings.ReplaceAll(name, mark, "("+what+")")
	}
	s.out[name] += string(out)
	return string(out)
}

// get asks the coordinator for a page, which it may refuse.
func (s *secrets) get(client *http.Client, method, address string, header http.Header, form url.Values) int {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, address, strings.NewReader(form.Encode()))
	must(s.t, err)
	if req.Header = header; form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := client.Do(req)
	must(s.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(s.t, err)
	u, _ := url.Parse(address)
	if resp.StatusCode != http.StatusSeeOther { // it tells the caller's own address again
		s.out[method+" "+u.Path] += string(body)
	}
	return resp.StatusCode
}

// browser trusts the installation's certificates, and follows no redirect.
func (s *secrets) browser() *http.Client {
	s.t.Helper()
	pool := x509.NewCertPool()
	pem, err := os.ReadFile(s.ca)
	must(s.t, err)
	pool.AppendCertsFromPEM(pem)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	s.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// collect takes traces, metrics and logs as OTLP sends them, at the address that it returns.
func (s *secrets) collect() string {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body := io.Reader(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			if unzipped, err := gzip.NewReader(r.Body); err == nil {
				body = unzipped
			}
		}
		fmt.Fprintln(&s.otel, r.URL.Path)
		_, _ = io.Copy(&s.otel, body)
	}))
	s.t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// files keeps every file that is not one of the secrets, also those of NATS and etcd.
func (s *secrets) files() {
	s.t.Helper()
	for _, dir := range s.dirs {
		must(s.t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() && path == filepath.Join(s.dir, "secrets") {
				return fs.SkipDir
			}
			if !d.Type().IsRegular() {
				return nil
			}
			text, err := os.ReadFile(path)
			s.out[path] = string(text)
			return err
		}))
	}
}

// judge fails the test for each secret that came out.
func (s *secrets) judge() {
	s.t.Helper()
	for where, text := range s.out {
		for what, mark := range s.marks {
			if at := strings.Index(text, mark); at >= 0 {
				s.t.Errorf("%s: %s came out:\n…%.300s", where, what, text[max(0, at-150):])
			}
		}
	}
}

// protectEtcd makes etcd ask for passwords.
func protectEtcd(ctx context.Context, t *testing.T, c *clientv3.Client, root, user string) {
	t.Helper()
	for _, step := range []func() error{
		func() error { _, err := c.UserAdd(ctx, "root", root); return err },
		func() error { _, err := c.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := c.UserAdd(ctx, "coordinator", user); return err },
		func() error { _, err := c.RoleAdd(ctx, "fantasia"); return err },
		func() error {
			_, err := c.RoleGrantPermission(ctx, "fantasia", "/fantasia/", "/fantasia0", clientv3.PermissionType(clientv3.PermReadWrite))
			return err
		},
		func() error { _, err := c.UserGrantRole(ctx, "coordinator", "fantasia"); return err },
		func() error { _, err := c.AuthEnable(ctx); return err },
	} {
		must(t, step())
	}
}

const secretsStudy = `
apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: marked}
spec:
  objective: {metric: loss, direction: minimize}
  parameters: [{name: x, type: float, min: -1, max: 1}]
  algorithm: {name: random, seed: 1}
  budget: {maxTrials: 2}
  trial: {command: [unused]}
`

// TestSecretsStayInTheirFiles gives an installation a mark for each credential that it can have,
// uses all of them, rightly and wrongly, and looks for the marks in whatever comes out: logs,
// errors, answers, pages, metrics, traces, exported files, arguments, the environments and outputs
// of trials, the files of workers, NATS and etcd, and the traces that a crash leaves.
func TestSecretsStayInTheirFiles(t *testing.T) {
	s := &secrets{t: t, dir: t.TempDir(), marks: map[string]string{}, out: map[string]string{}}
	leader, worker, server := s.install()
	s.use(server)
	s.misuse(server)
	// A crash: Go's programs write the stacks of all goroutines on SIGQUIT and SIGABRT.
	for p, signal := range map[*testenv.Process]syscall.Signal{leader: syscall.SIGQUIT, worker: syscall.SIGABRT} {
		must(t, syscall.Kill(p.PID(), signal))
		<-p.Done()
	}
	s.out["the telemetry"] = s.otel.String()
	for _, kind := range []string{"/v1/traces", "/v1/metrics", "marked"} {
		if !strings.Contains(s.out["the telemetry"], kind) {
			t.Errorf("the telemetry has no %s", kind)
		}
	}
	s.files()
	for _, name := range []string{"coordinator", "worker"} {
		if log := s.out[filepath.Join(s.dir, "logs", name)]; !strings.Contains(log, "goroutine 1 ") || !strings.Contains(log, "level=") {
			t.Errorf("the log of the %s has no lines, or no trace of the crash: %.200s", name, log)
		}
	}
	s.judge()
}

// install starts NATS, etcd, a coordinator and a worker, which all ask for credentials.
func (s *secrets) install() (leader, worker *testenv.Process, server string) {
	t := s.t
	ca := testenv.NewCA(t)
	s.ca = ca.File
	natsCoordinator, natsPool := s.file("NATS password of the coordinator"), s.file("NATS password of the pool")
	accounts, err := natsbus.Accounts{Pools: []string{"default"}}.Config()
	must(t, err)
	t.Setenv(natsbus.PasswordVariable(natsbus.UserCoordinator), `"`+s.marks["NATS password of the coordinator"]+`"`)
	t.Setenv(natsbus.PasswordVariable(natsbus.PoolUser("default")), `"`+s.marks["NATS password of the pool"]+`"`)
	nats := testenv.StartNATS(t, testenv.NATSConfig{Extra: accounts})
	for _, user := range []string{natsbus.UserCoordinator, natsbus.PoolUser("default")} {
		must(t, os.Unsetenv(natsbus.PasswordVariable(user)))
	}
	etcd := testenv.StartEtcd(t)
	etcdPassword := s.file("etcd password")
	protectEtcd(t.Context(), t, testenv.EtcdClient(t, etcd.URL), s.mark("etcd password of root"), s.marks["etcd password"])
	cert, key := s.key(ca, "TLS key of the API")
	token := s.mark("token of the API")
	tokens := s.write("tokens", fmt.Sprintf("alice %x write\n", sha256.Sum256([]byte(token))))
	grants := filepath.Join(s.dir, "grants")
	must(t, os.WriteFile(grants, []byte("groups=a write\n"), 0o600))

	otel := []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://user:" + s.mark("password of the collector") + "@" + s.collect(),
		"OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
		"OTEL_EXPORTER_OTLP_HEADERS=authorization=" + s.mark("header of the collector"), "OTEL_METRIC_EXPORT_INTERVAL=1000",
		"OTEL_BSP_SCHEDULE_DELAY=200",
		"AWS_SECRET_ACCESS_KEY=" + s.mark("key of a cloud"), "FANTASIA_TOKEN=" + token, "HTTPS_PROXY=http://user:" +
			s.mark("password of a proxy") + "@127.0.0.1:1",
	}
	address, health := fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t)), fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t))
	client := s.browser()
	leader = s.start("coordinator", otel, func(ctx context.Context) error {
		return testenv.Answers(ctx, client, "https://"+address+"/readyz")
	},
		"--verbose", "--listen", address, "--etcd", etcd.URL, "--etcd-user", "coordinator", "--etcd-password-file", etcdPassword,
		"--nats", nats.URL, "--nats-user", natsbus.UserCoordinator, "--nats-password-file", natsCoordinator,
		"--tls-cert", cert, "--tls-key", key, "--tls-ca", ca.File, "--tokens", tokens, "--archive", filepath.Join(s.dir, "archive"),
		"--oidc-issuer", "https://127.0.0.1:1", "--oidc-audience", "fantasia", "--oidc-grants", grants)
	worker = s.start("worker", otel, func(ctx context.Context) error { return testenv.Answers(ctx, client, "http://"+health+"/readyz") },
		"--verbose", "--listen", health, "--nats", nats.URL, "--nats-user", natsbus.PoolUser("default"), "--nats-password-file", natsPool,
		"--gpus", "none", "--state", filepath.Join(s.dir, "worker"), "--", "/bin/sh", "-c",
		`env; tr '\0' '\n' </proc/$PPID/cmdline; echo '{"fantasia": {"metrics": {"loss": 1}}}'`)
	s.get(client, http.MethodGet, "http://"+health+"/metrics", http.Header{}, nil)
	s.etcd = []string{"--etcd", etcd.URL, "--etcd-user", "coordinator", "--etcd-password-file", etcdPassword}
	s.nats, s.dirs = nats.URL, []string{s.dir, nats.StoreDir, etcd.DataDir}
	return leader, worker, "https://" + address
}

// use does with the right credentials what people do.
func (s *secrets) use(server string) {
	t := s.t
	token := s.marks["token of the API"]
	env := []string{"FANTASIA_TOKEN=" + token, "FANTASIA_SERVER=" + server, "FANTASIA_CA=" + s.ca}
	study := filepath.Join(s.dir, "study.yaml")
	must(t, os.WriteFile(study, []byte(secretsStudy), 0o600))
	for _, command := range [][]string{
		{"study", "create", "-f", study}, {"study", "watch", "marked"}, {"study", "get", "marked", "-o", "yaml"}, {"study", "list", "-o", "json"},
		{"trial", "list", "marked", "-o", "json"}, {"trial", "get", "marked", "1"}, {"trial", "logs", "marked", "1"},
		{"worker", "list", "-o", "json"},
		{"study", "export", "marked", "--output", filepath.Join(s.dir, "trials.csv")},
		{"report", "marked", "--output", filepath.Join(s.dir, "report.html")},
		{"study", "diagnose", "marked"}, {"study", "archive", "marked"}, {"study", "list", "--help"}, {"study", "nothing"},
		{"study", "get", "nothing"},
		append([]string{"backup", filepath.Join(s.dir, "studies.backup")}, s.etcd...),
		append([]string{"restore", filepath.Join(s.dir, "studies.backup")}, s.etcd...),
	} {
		s.command(env, command...)
	}
	for name, want := range map[string]string{"fantasia trial logs marked 1": "FANTASIA_TRIAL=1",
		"fantasia study get marked -o yaml": "COMPLETED"} {
		if !strings.Contains(s.out[name], want) {
			t.Errorf("%s says %q, which has no %q", name, s.out[name], want)
		}
	}
	for _, file := range []string{"trials.csv", "report.html", "studies.backup"} {
		if _, err := os.Stat(filepath.Join(s.dir, file)); err != nil {
			t.Error(err)
		}
	}
	// fantasia run gives its programs the environment of no token either.
	local := filepath.Join(s.dir, "local.yaml")
	must(t, os.WriteFile(local,
		[]byte(strings.Replace(secretsStudy, "[unused]", `[sh, -c, "env; echo '{\"fantasia\": {\"metrics\": {\"loss\": 1}}}'"]`, 1)), 0o600))
	if out := s.command(env, "run", local, "--state", filepath.Join(s.dir, "local")); !strings.Contains(out, "2 completed") {
		t.Errorf("fantasia run: %s", out)
	}
	client := s.browser()
	for _, path := range []string{"/metrics", "/ui/", "/ui/studies/marked", "/openapi.yaml"} {
		s.get(client, http.MethodGet, server+path, http.Header{"Cookie": {"fantasia_token=" + token}}, nil)
	}
	if status := s.get(client, http.MethodPost, server+"/ui/login", http.Header{},
		url.Values{"token": {token}, "next": {"/ui/"}}); status >= 400 {
		t.Errorf("the login with the right token is answered by %d", status)
	}
}

// misuse gives credentials that are wrong, or in the wrong place.
func (s *secrets) misuse(server string) {
	wrong := s.mark("a wrong token")
	jwt := "eyJhbGciOiJSUzI1NiIsImtpZCI6ImsifQ.eyJpc3MiOiJodHRwczovLzEyNy4wLjAuMToxIiwiYXVkIjoiZmFudGFzaWEifQ." + s.mark("a signature")
	env := []string{"FANTASIA_SERVER=" + server, "FANTASIA_CA=" + s.ca}
	for _, token := range []string{wrong, jwt, wrong + "\nx"} {
		s.command(append(env, "FANTASIA_TOKEN="+token), "study", "list", "--timeout", "1s")
		s.get(s.browser(), http.MethodPost, server+"/ui/login", http.Header{}, url.Values{"token": {token}, "next": {"/ui/"}})
	}
	for _, path := range []string{"/ui/?token=" + wrong, "/fantasia.v1.StudyService/ListStudies?access_token=" + wrong} {
		s.get(s.browser(), http.MethodGet, server+path, http.Header{"Authorization": {"Basic " + wrong}, "Cookie": {"fantasia_token=" + wrong}},
			nil)
	}
	password := s.mark("a password in an address")
	for _, address := range []string{"http://u:" + password + "@127.0.0.1:1", "http://u:%zz" + password + "@127.0.0.1:1",
		"ftp://" + password + "@x"} {
		s.command(nil, "--server", address, "study", "list")
	}
	for _, address := range []string{"http://u:" + password + "@127.0.0.1:1", "http://u:%zz" + password + "@127.0.0.1:1"} {
		s.command(nil, "backup", filepath.Join(s.dir, "none"), "--etcd", address)
	}
	for _, source := range []string{"postgresql://u:" + password + "@127.0.0.1:1/d", "mysql://u:%zz" + password + "@127.0.0.1:1/d"} {
		s.command(nil, "import", "optuna", source)
	}
	file := s.write("some-secret", s.mark("a secret of which the file was named wrongly")+"\n")
	for _, flag := range []string{"--ca", "--token-file"} {
		s.command(env, "study", "list", flag, file)
	}
	for _, args := range [][]string{
		{"coordinator", "--tokens", file}, {"coordinator", "--tls-cert", file, "--tls-key", file}, {"coordinator", "--nats-creds", file},
		{"coordinator", "--nats-ca", file}, {"worker", "--nats-creds", file, "--", "true"},
		{"worker", "--nats", "nats://u:" + password + "@127.0.0.1:1", "--", "true"},
		{"worker", "--nats", "nats://" + password + "@127.0.0.1:1", "--", "true"},
		{"worker", "--nats", "nats://u:%zz" + password + "@127.0.0.1:1", "--", "true"},
		{"coordinator", "--etcd", "http://u:" + password + "@127.0.0.1:1"},
		{"worker", "--nats", s.nats, "--nats-user", natsbus.PoolUser("default"), "--nats-password-file", file, "--", "true"},
		{"coordinator", "--oidc-issuer", "https://127.0.0.1:1", "--oidc-audience", "a", "--oidc-grants", file},
		{"coordinator", "--oidc-issuer", "https://u:" + password + "@127.0.0.1:1", "--oidc-audience", "a", "--oidc-grants",
			filepath.Join(s.dir, "grants")},
	} {
		s.brief(args...)
	}
}

// brief runs a program with wrong settings until it ends, or says twice why it waits for NATS.
func (s *secrets) brief(args ...string) {
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, testenv.Build(s.t, module+"cmd/"+args[0]), slices.Insert(args[1:], 0, "--verbose")...)
	cmd.Env = append(os.Environ(), "FANTASIA_LISTEN=127.0.0.1:0", "FANTASIA_STATE="+filepath.Join(s.t.TempDir(), "state"))
	said := &watched{seen: func(text string) {
		if slices.Contains(args, "--nats") && strings.Contains(text, "cannot connect to NATS") && strings.Contains(text, "waiting for NATS") {
			cancel()
		}
	}}
	cmd.Stdout, cmd.Stderr = said, said
	_ = cmd.Run() // it ends with an error, or is killed
	if errors.Is(ctx.Err(), context.DeadlineExceeded) || said.String() == "" {
		s.t.Errorf("%s %s goes on and says %q", args[0], args[1], said.String())
	}
	s.out[fmt.Sprintf("%s %s with wrong settings (%d)", args[0], args[1], len(s.out))] = said.String()
}

// watched is a text that somebody looks at whenever it grows.
type watched struct {
	testenv.Text
	seen func(text string)
}

// Write implements io.Writer.
func (w *watched) Write(p []byte) (int, error) {
	n, err := w.Text.Write(p)
	w.seen(w.String())
	return n, err
}
