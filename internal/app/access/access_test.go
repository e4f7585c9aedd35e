package access_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/spf13/pflag"
	"go.uber.org/goleak"

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

func TestShown(t *testing.T) {
	for address, want := range map[string]string{
		"nats://localhost:4222": "nats://localhost:4222", "localhost:4222": "localhost:4222", "nats://u:p@localhost": "nats://localhost",
		"token@localhost:4222": "localhost:4222", "http://u:p@h:1/x": "http://h:1/x", "nats://u:a@b/c@localhost": "nats://localhost", "": "",
	} {
		if got := access.Shown(address); got != want {
			t.Errorf("Shown(%q) = %q, want %q", address, got, want)
		}
	}
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
	} {
		var n access.NATS
		f := pflag.NewFlagSet("test", pflag.ContinueOnError)
		n.Flags(f)
		must(t, f.Parse(strings.Fields(test.args)))
		_, err := n.Options(slog.New(slog.DiscardHandler))
		for _, want := range test.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want an error that names %s", test.args, err, want)
			}
		}
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
		"tls { cert_file: %q, key_file: %q, ca_file: %q, verify: true }\nauthorization { user: u, password: \"right\" }", serverCert, serverKey,
		ca.File)})
	cert, key := ca.New("client")
	strange, strangeKey := testenv.NewCA(t).New("client")
	right := access.NATS{TLS: access.Files{CA: ca.File, Cert: cert, Key: key},
		Password: access.Password{User: "u", File: written(t, "right\n")}}
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
	server := testenv.StartNATS(t,
		testenv.NATSConfig{Extra: fmt.Sprintf("tls { cert_file: %q, key_file: %q }\ninclude ../%s/password.conf", serverCert, serverKey,
			filepath.Base(dir))})
	log := &testenv.Text{}
	n := access.NATS{TLS: access.Files{CA: caFile}, Password: access.Password{User: "u", File: password}}
	nc, err := dialNATS(t, &n, server.URL, slog.New(slog.NewTextHandler(log, nil)))
	must(t, err)
	server.Stop()
	rotate("second")
	// The program's files come later than the server's.
	must(t, os.WriteFile(password, []byte("first"), 0o600))
	server.Restart()
	testenv.Eventually(t, 10*time.Second, func(context.Context) error {
		if !log.Has("authorization violation") {
			return errors.New("the old password is not refused")
		}
		return nil
	})
	must(t, os.WriteFile(password, []byte("second"), 0o600))
	testenv.Eventually(t, 10*time.Second, func(ctx context.Context) error { return nc.FlushWithContext(ctx) })
	if log.Has("first") || log.Has("second") {
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
