package ledger

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
)

// TestConnectLeavesAStranger connects to a server of HTTP/2 that is not etcd, as an
// address in a cluster can lead to one before it leads to etcd.
func TestConnectLeavesAStranger(t *testing.T) {
	e := testenv.StartEtcd(t)
	stranger := httptest.NewUnstartedServer(http.NotFoundHandler())
	stranger.Config.Protocols = new(http.Protocols)
	stranger.Config.Protocols.SetUnencryptedHTTP2(true)
	stranger.Start()
	defer stranger.Close()

	proxy := testenv.StartProxy(t, stranger.URL)
	c, err := Connect([]string{"http://" + proxy.Addr})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := c.Get(ctx, "key"); status.Code(err) != codes.Unimplemented {
		t.Fatalf("a server that is not etcd answered with %v, want the code Unimplemented", err)
	}
	proxy.Redirect(e.URL)
	// A call that was under way may still meet the old connection.
	for {
		_, err := c.Get(ctx, "key")
		if err == nil {
			return
		}
		if status.Code(err) != codes.Unimplemented || ctx.Err() != nil {
			t.Fatalf("after the address leads to etcd: %v", err)
		}
	}
}
