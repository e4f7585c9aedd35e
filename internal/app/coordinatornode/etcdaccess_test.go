package coordinatornode_test

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

	"github.com/spf13/pflag"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
	"github.com/fantasia-hpo/fantasia/internal/app/access"
	"github.com/fantasia-hpo/fantasia/internal/app/coordinatornode"
	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
)

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
func TestEtcdErrorsNameFlagAndFile(t *testing.T) {
	ca := testenv.NewCA(t)
	_, key := ca.New("client")
	empty, missing := written(t, "\n"), filepath.Join(t.TempDir(), "missing")
	for _, test := range []struct {
		args string
		want []string
	}{
		{"--etcd-ca=" + missing, []string{"--etcd-ca", missing}},
		{"--etcd-ca=" + ca.File, []string{"--etcd-ca", "http://x", "https://"}},
		{"--etcd-key=" + key, []string{"--etcd-cert"}},
		{"--etcd-user=u --etcd-password-file=" + empty, []string{"--etcd-password-file", empty}},
	} {
		var e coordinatornode.EtcdAccess
		f := pflag.NewFlagSet("test", pflag.ContinueOnError)
		e.Flags(f)
		must(t, f.Parse(strings.Fields(test.args)))
		_, err := e.Config([]string{"http://x"}, slog.New(slog.DiscardHandler))
		for _, want := range test.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want an error that names %s", test.args, err, want)
			}
		}
	}
	e := coordinatornode.EtcdAccess{}
	if _, err := e.Config([]string{"https://x", "http://y"}, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("addresses of which only some are of TLS were taken")
	}
	if _, err := e.Config([]string{"http://u:secret@x"}, slog.New(slog.DiscardHandler)); err == nil ||
		!strings.Contains(err.Error(), `--etcd "http://x" has a login`) {
		t.Errorf("an address with a login: %v", err)
	}
	if _, err := e.Config([]string{"unix:///a@b/etcd"}, slog.New(slog.DiscardHandler)); err != nil {
		t.Error(err)
	}
}

// etcdClient connects to etcd as a program would.
func etcdClient(t *testing.T, e *coordinatornode.EtcdAccess, url string, log *slog.Logger) (*clientv3.Client, error) {
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
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // it ends a test that hangs
	defer cancel()
	ca, dir, silent, log := testenv.NewCA(t), t.TempDir(), slog.New(slog.DiscardHandler), &testenv.Text{}
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
	root, err := etcdClient(t, &coordinatornode.EtcdAccess{TLS: tls}, server.URL, silent)
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
	mine := coordinatornode.EtcdAccess{TLS: access.Files{CA: caFile, Cert: noUser, Key: noUserKey},
		Password: access.Password{User: "u", File: password}}
	_, err = etcdClient(t, &mine, fmt.Sprintf("https://127.0.0.1:%d", testenv.FreePort(t)), silent)
	must(t, err) // etcd may come later
	c, err := etcdClient(t, &mine, server.URL, silent)
	must(t, err)
	must(t, get(ctx, c))
	if _, err := c.Get(ctx, "/other"); err == nil {
		t.Error("a key outside of /fantasia/ could be read")
	}
	for name, change := range map[string]func(e *coordinatornode.EtcdAccess){
		"the system's authorities": func(e *coordinatornode.EtcdAccess) { e.TLS.CA = "" },
		"no certificate":           func(e *coordinatornode.EtcdAccess) { e.TLS.Cert, e.TLS.Key = "", "" },
		"another password":         func(e *coordinatornode.EtcdAccess) { e.Password.File = written(t, "wrong") },
		"no password":              func(e *coordinatornode.EtcdAccess) { e.Password = access.Password{} },
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

	// On a busy machine etcd answers later than the calls above have waited.
	wrong := mine
	wrong.Password.File = written(t, "wrong")
	other, err := etcdClient(t, &wrong, server.URL, slog.New(slog.NewTextHandler(log, nil)))
	must(t, err)
	testenv.Eventually(t, 2*time.Minute, func(context.Context) error {
		slow, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		if err := get(slow, other); err == nil || !log.Has("cannot log in to etcd") || !log.Has("authentication failed") {
			return errors.Join(errors.New("the log does not say that a wrong password is refused"), err)
		}
		return nil
	})
	if log.Has("wrong") {
		t.Error("the log has the password that was refused")
	}
	_, err = root.UserChangePassword(ctx, "u", "second")
	must(t, err)
	must(t, os.WriteFile(password, []byte("second\n"), 0o600))
	install(testenv.NewCA(t)) // the server's certificate is of another authority now
	server.Kill()
	server.Restart()
	testenv.Eventually(t, 2*time.Minute, func(context.Context) error { // it has to log in again
		slow, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		return get(slow, c)
	})
}
