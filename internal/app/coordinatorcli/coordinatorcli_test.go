package coordinatorcli

import (
	"io"
	"strings"
	"testing"
)

// An API without tokens is on this machine only, unless somebody says otherwise: the flags are
// checked before anything is connected.
func TestOpenAPI(t *testing.T) {
	run := func(args ...string) string {
		cmd := New("dev", io.Discard)
		// Nobody is at this address, so that a replica whose flags are right ends as well.
		cmd.SetArgs(append(args, "--etcd", "http://127.0.0.1:1", "--tls-cert", "none"))
		err := cmd.ExecuteContext(t.Context())
		if err == nil {
			t.Fatalf("%q runs", args)
		}
		return err.Error()
	}
	for _, listen := range []string{":8080", "0.0.0.0:8080", "[::]:8080", "192.0.2.1:8080"} {
		want := "--listen is " + listen + ", which others reach"
		if got := run("--listen", listen); !strings.HasPrefix(got, want) || !strings.Contains(got, "--insecure") {
			t.Errorf("--listen %s: %s, want %s…", listen, got, want)
		}
		for _, flag := range []string{"--insecure", "--tokens=tokens", "--oidc-issuer=https://issuer.example"} {
			if got := run("--listen", listen, flag); strings.Contains(got, "which others reach") {
				t.Errorf("--listen %s %s: %s", listen, flag, got)
			}
		}
	}
	for _, args := range [][]string{nil, {"--listen", "localhost:8080"}, {"--listen", "[::1]:8080"}} {
		if got := run(args...); strings.Contains(got, "which others reach") {
			t.Errorf("%q: %s", args, got)
		}
	}
}

func TestLeaseTTL(t *testing.T) {
	for _, value := range []string{"1s", "2500ms"} {
		cmd := New("dev", io.Discard)
		cmd.SetArgs([]string{"--lease-ttl", value})
		want := "--lease-ttl is "
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.HasPrefix(err.Error(), want) ||
			!strings.Contains(err.Error(), "at least 2s") {
			t.Errorf("--lease-ttl %s: %v, want %s…", value, err, want)
		}
	}
}
