package ledger

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
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

// TestManyCallsLeaveAStranger has many calls meet a server that is not etcd at once, as a coordinator's
// do when it starts: afterwards the client still knows etcd's address.
func TestManyCallsLeaveAStranger(t *testing.T) {
	stranger := httptest.NewUnstartedServer(http.NotFoundHandler())
	stranger.Config.Protocols = new(http.Protocols)
	stranger.Config.Protocols.SetUnencryptedHTTP2(true)
	stranger.Start()
	defer stranger.Close()
	for range 20 {
		c, err := Connect([]string{stranger.URL})
		if err != nil {
			t.Fatal(err)
		}
		var calls sync.WaitGroup
		for range 16 {
			calls.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				if _, err := c.Get(ctx, "key"); err == nil {
					t.Error("a server that is not etcd has answered")
				}
			})
		}
		calls.Wait()
		if got := c.Endpoints(); len(got) != 1 || got[0] != stranger.URL {
			t.Fatalf("after many calls at once the client has the addresses %q, want %s", got, stranger.URL)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}
