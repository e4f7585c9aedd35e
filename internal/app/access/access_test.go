package access_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/spf13/pflag"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/internal/app/access"
	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func written(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

// Whatever is wrong with a file, the error names its flag and the file.
func TestErrorsNameFlagAndFile(t *testing.T) {
	ca := testenv.NewCA(t)
	cert, key := ca.New("client")
	_, otherKey := ca.New("other")
	empty, missing := written(t, "\n"), filepath.Join(t.TempDir(), "missing")
	for _, test := range []struct {
		args string
		want []string
	}{
		{"--nats-ca=" + missing, []string{"--nats-ca", missing}},
		{"--nats-ca=" + empty, []string{"--nats-ca", empty}},
		{"--nats-cert=" + cert, []string{"--nats-key"}},
		{"--nats-cert=" + cert + " --nats-key=" + otherKey, []string{"--nats-cert", cert, otherKey}},
		{"--nats-cert=" + missing + " --nats-key=" + key, []string{"--nats-cert", missing}},
		{"--nats-user=u", []string{"--nats-password-file"}},
		{"--nats-user=u --nats-password-file=" + missing, []string{"--nats-password-file", missing}},
		{"--nats-user=u --nats-password-file=" + empty, []string{"--nats-password-file", empty}},
		{"--nats-creds=" + missing, []string{"--nats-creds", missing}},
		{"--nats-creds=" + empty, []string{"--nats-creds", empty}},
		{"--nats-user=u --nats-password-file=" + cert + " --nats-creds=" + cert, []string{"--nats-creds", "--nats-user"}},
		{"--etcd-ca=" + missing, []string{"--etcd-ca", missing}},
		{"--etcd-ca=" + ca.File, []string{"--etcd-ca", "http://x", "https://"}},
		{"--etcd-key=" + key, []string{"--etcd-cert"}},
		{"--etcd-user=u --etcd-password-file=" + empty, []string{"--etcd-password-file", empty}},
	} {
		var n access.NATS
		var e access.Etcd
		f := pflag.NewFlagSet("test", pflag.ContinueOnError)
		n.Flags(f)
		e.Flags(f)
		must(t, f.Parse(strings.Fields(test.args)))
		_, natsErr := n.Options(slog.New(slog.DiscardHandler))
		_, etcdErr := e.Config([]string{"http://x"}, slog.New(slog.DiscardHandler))
		err := errors.Join(natsErr, etcdErr)
		for _, want := range test.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want an error that names %s", test.args, err, want)
			}
		}
	}
	e := access.Etcd{}
	if _, err := e.Config([]string{"https://x", "http://y"}, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("addresses of which only some are of TLS were taken")
	}
}

// dialNATS connects to NATS as a program would.
func dialNATS(t *testing.T, n *access.NATS, url string, log *slog.Logger) (*nats.Conn, error) {
	t.Helper()
	o, err := n.Options(log)
	must(t, err)
	nc, err := nats.Connect(url, append(o, nats.ReconnectWait(20*time.Millisecond), nats.MaxReconnects(-1))...)
	if err == nil {
		t.Cleanup(nc.Close)
	}
	return nc, err
}

// NATS over TLS that asks for certificates and a password: nothing less gets in.
func TestNATSOverTLS(t *testing.T) {
	ca, silent := testenv.NewCA(t), slog.New(slog.DiscardHandler)
	serverCert, serverKey := ca.New("server")
	server := testenv.StartNATS(t, testenv.NATSConfig{Extra: fmt.Sprintf(
		"tls { cert_file: %q, key_file: %q, ca_file: %q, verify: true }\nauthorization { user: u, password: \"right\" }", serverCert, serverKey, ca.File)})
	cert, key := ca.New("client")
	strange, strangeKey := testenv.NewCA(t).New("client")
	right := access.NATS{TLS: access.Files{CA: ca.File, Cert: cert, Key: key}, Password: access.Password{User: "u", File: written(t, "right\n")}}
	nc, err := dialNATS(t, &right, server.URL, silent)
	must(t, err)
	if state, err := nc.TLSConnectionState(); err != nil || !state.HandshakeComplete {
		t.Errorf("the connection is not encrypted: %v", err)
	}
	for name, change := range map[string]func(n *access.NATS){
		"an authority that did not sign the server's": func(n *access.NATS) { n.TLS.CA = testenv.NewCA(t).File },
		"the system's authorities":                    func(n *access.NATS) { n.TLS.CA = "" },
		"no certificate":                              func(n *access.NATS) { n.TLS.Cert, n.TLS.Key = "", "" },
		"a certificate that another authority signed": func(n *access.NATS) { n.TLS.Cert, n.TLS.Key = strange, strangeKey },
		"another password":                            func(n *access.NATS) { n.Password.File = written(t, "wrong") },
		"no password":                                 func(n *access.NATS) { n.Password = access.Password{} },
	} {
		n := right
		change(&n)
		if _, err := dialNATS(t, &n, server.URL, silent); err == nil {
			t.Errorf("connected with %s", name)
		}
	}
	plain := testenv.StartNATS(t, testenv.NATSConfig{})
	if _, err := dialNATS(t, &right, plain.URL, silent); !errors.Is(err, nats.ErrSecureConnWanted) {
		t.Errorf("connect to a server without TLS: %v, want a refusal before the password is sent", err)
	}
}

// lines collects a log.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.buf.String(), text)
}

// Replaced files take effect with the next connection: the server has another
// certificate of another authority, and another password, after its restart.
func TestNATSRotation(t *testing.T) {
	dir := t.TempDir()
	serverCert, serverKey, password := filepath.Join(dir, "cert"), filepath.Join(dir, "key"), filepath.Join(dir, "password")
	caFile := filepath.Join(dir, "ca")
	conf := filepath.Join(dir, "password.conf")
	rotate := func(word string) {
		t.Helper()
		ca := testenv.NewCA(t)
		ca.Issue("server", serverCert, serverKey)
		pem, err := os.ReadFile(ca.File)
		must(t, err)
		must(t, os.WriteFile(caFile, pem, 0o600))
		must(t, os.WriteFile(password, []byte(word), 0o600))
		must(t, os.WriteFile(conf, []byte(fmt.Sprintf("authorization { user: u, password: %q }\n", word)), 0o600))
	}
	rotate("first")
	server := testenv.StartNATS(t, testenv.NATSConfig{Extra: fmt.Sprintf("tls { cert_file: %q, key_file: %q }\ninclude ../%s/password.conf", serverCert, serverKey, filepath.Base(dir))})
	log := &lines{}
	n := access.NATS{TLS: access.Files{CA: caFile}, Password: access.Password{User: "u", File: password}}
	nc, err := dialNATS(t, &n, server.URL, slog.New(slog.NewTextHandler(log, nil)))
	must(t, err)
	server.Stop()
	rotate("second")
	// The program's files come later than the server's.
	must(t, os.WriteFile(password, []byte("first"), 0o600))
	server.Restart()
	testenv.Eventually(t, 10*time.Second, func(context.Context) error {
		if !log.has("authorization violation") {
			return errors.New("the old password is not refused")
		}
		return nil
	})
	must(t, os.WriteFile(password, []byte("second"), 0o600))
	testenv.Eventually(t, 10*time.Second, func(ctx context.Context) error { return nc.FlushWithContext(ctx) })
	if log.has("first") || log.has("second") {
		t.Error("the log shows a password")
	}
}

func TestSeed(t *testing.T) {
	user, err := nkeys.CreateUser()
	must(t, err)
	public, err := user.PublicKey()
	must(t, err)
	seed, err := user.Seed()
	must(t, err)
	server := testenv.StartNATS(t, testenv.NATSConfig{Extra: "authorization { users [ { nkey: " + public + " } ] }"})
	_, err = dialNATS(t, &access.NATS{Creds: written(t, string(seed)+"\n")}, server.URL, slog.New(slog.DiscardHandler))
	must(t, err)
}

// etcdClient connects to etcd as a program would.
func etcdClient(t *testing.T, e *access.Etcd, url string, log *slog.Logger) (*clientv3.Client, error) {
	t.Helper()
	option, err := e.Config([]string{url}, log)
	must(t, err)
	c, err := ledger.Connect([]string{url}, option)
	if err == nil {
		t.Cleanup(func() { _ = c.Close() })
	}
	return c, err
}

// get reads a key, which needs a connection and the right to.
func get(ctx context.Context, c *clientv3.Client) error {
	_, err := c.Get(ctx, "/fantasia/x")
	return err
}

// etcd over TLS that asks for certificates and a password; both are replaced.
func TestEtcd(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	ca, dir, silent, log := testenv.NewCA(t), t.TempDir(), slog.New(slog.DiscardHandler), &lines{}
	serverCert, serverKey := filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	caFile := filepath.Join(dir, "ca")
	install := func(from *testenv.CA) {
		pem, err := os.ReadFile(from.File)
		must(t, err)
		must(t, os.WriteFile(caFile, pem, 0o600))
		from.Issue("server", serverCert, serverKey)
	}
	install(ca)
	server := testenv.StartEtcd(t, "--cert-file="+serverCert, "--key-file="+serverKey, "--trusted-ca-file="+ca.File, "--client-cert-auth")
	cert, key := ca.New("root")
	tls := access.Files{CA: caFile, Cert: cert, Key: key}
	root, err := etcdClient(t, &access.Etcd{TLS: tls}, server.URL, silent)
	must(t, err)
	must(t, get(ctx, root))

	password := written(t, "first")
	for _, step := range []func() error{
		func() error { _, err := root.UserAdd(ctx, "root", "of root"); return err },
		func() error { _, err := root.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := root.UserAdd(ctx, "u", "first"); return err },
		func() error { _, err := root.RoleAdd(ctx, "fantasia"); return err },
		func() error {
			_, err := root.RoleGrantPermission(ctx, "fantasia", "/fantasia/", "/fantasia0", clientv3.PermissionType(clientv3.PermReadWrite))
			return err
		},
		func() error { _, err := root.UserGrantRole(ctx, "u", "fantasia"); return err },
		func() error { _, err := root.AuthEnable(ctx); return err },
	} {
		must(t, step())
	}
	// A certificate's name would be taken for its user: this one's is none.
	noUser, noUserKey := ca.New("nobody")
	mine := access.Etcd{TLS: access.Files{CA: caFile, Cert: noUser, Key: noUserKey}, Password: access.Password{User: "u", File: password}}
	_, err = etcdClient(t, &mine, fmt.Sprintf("https://127.0.0.1:%d", testenv.FreePort(t)), silent)
	must(t, err) // etcd may come later
	c, err := etcdClient(t, &mine, server.URL, silent)
	must(t, err)
	must(t, get(ctx, c))
	if _, err := c.Get(ctx, "/other"); err == nil {
		t.Error("a key outside of /fantasia/ could be read")
	}
	for name, change := range map[string]func(e *access.Etcd){
		"the system's authorities": func(e *access.Etcd) { e.TLS.CA = "" },
		"no certificate":           func(e *access.Etcd) { e.TLS.Cert, e.TLS.Key = "", "" },
		"another password":         func(e *access.Etcd) { e.Password.File = written(t, "wrong") },
		"no password":              func(e *access.Etcd) { e.Password = access.Password{} },
	} {
		e := mine
		change(&e)
		short, cancel := context.WithTimeout(ctx, time.Second)
		other, err := etcdClient(t, &e, server.URL, slog.New(slog.NewTextHandler(log, nil)))
		must(t, err)
		if err := get(short, other); err == nil {
			t.Errorf("etcd answers with %s", name)
		}
		cancel()
	}

	if !log.has("cannot log in to etcd") || !log.has("authentication failed") || log.has("wrong") {
		t.Error("the log does not say, without the password, that it is refused")
	}
	_, err = root.UserChangePassword(ctx, "u", "second")
	must(t, err)
	must(t, os.WriteFile(password, []byte("second\n"), 0o600))
	install(testenv.NewCA(t)) // the server's certificate is of another authority now
	server.Kill()
	server.Restart()
	testenv.Eventually(t, 15*time.Second, func(ctx context.Context) error { return get(ctx, c) })
}
