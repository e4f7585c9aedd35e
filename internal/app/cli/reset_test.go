package cli_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/internal/app/cli"
	"github.com/fantasia-hpo/fantasia/internal/test/servertest"
	"github.com/fantasia-hpo/fantasia/internal/test/testenv"
	"github.com/fantasia-hpo/fantasia/study"
)

// noticed is a backend that says what it was asked for.
type noticed struct {
	*servertest.Backend
	asked chan string
}

func (n noticed) Study(ctx context.Context, name string) (server.Study, error) {
	n.asked <- "get"
	return n.Backend.Study(ctx, name)
}

func (n noticed) Stop(ctx context.Context, name, reason string) (server.Study, error) {
	n.asked <- "stop"
	return n.Backend.Stop(ctx, name, reason)
}

func (n noticed) Delete(ctx context.Context, name string, force bool) error {
	n.asked <- "delete"
	return n.Backend.Delete(ctx, name, force)
}

// behindProxy serves a backend whose connections can be reset.
func behindProxy(t *testing.T) (noticed, *testenv.Proxy) {
	t.Helper()
	t.Cleanup(func() { goleak.VerifyNone(t) })
	m := backend(t)
	b := noticed{m, make(chan string, 100)}
	address, stop := serveOn(t, "127.0.0.1:0", b)
	t.Cleanup(stop)
	return b, testenv.StartProxy(t, address)
}

// A request whose connection is lost before the answer is sent again if that is safe, as
// while a leader is elected. Nobody cancelled it.
func TestResetRequest(t *testing.T) {
	for _, c := range []struct {
		args  []string
		again bool
	}{
		{[]string{"study", "get", "digits"}, true},
		{[]string{"study", "stop", "digits"}, true},               // idempotent
		{[]string{"study", "delete", "digits", "--force"}, false}, // a second one finds no study
	} {
		for how, lose := range map[string]func(*testenv.Proxy){"reset": (*testenv.Proxy).Reset, "ended": (*testenv.Proxy).Drop} {
			t.Run(c.args[1]+" "+how, func(t *testing.T) {
				b, proxy := behindProxy(t)
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				proxy.HoldReplies()
				command := start(ctx, append(c.args, "--server", proxy.Addr)...)
				for asked := ""; asked != c.args[1]; {
					asked = <-b.asked
				}
				lose(proxy)
				proxy.Heal()
				code, times := <-command.code, 1
				for len(b.asked) > 0 {
					if <-b.asked == c.args[1] {
						times++
					}
				}
				if again := code == cli.ExitOK && times == 2; again != c.again || !again && times != 1 {
					t.Errorf("asked %d times, exit code %d: %s; want it asked again: %v", times, code, command.errs, c.again)
				}
				if strings.Contains(command.errs.String(), "canceled") {
					t.Errorf("says that the request was cancelled: %s", command.errs)
				}
			})
		}
	}
}

// A watch whose connection is reset goes on.
func TestResetWatch(t *testing.T) {
	b, proxy := behindProxy(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	watch := start(ctx, "study", "watch", "digits", "--server", proxy.Addr)
	select {
	case <-watch.out.got:
	case code := <-watch.code:
		t.Fatalf("exit code %d: %s", code, watch.errs)
	}
	proxy.Reset()
	b.Change("digits", func(s *server.Study) { s.Status.State = study.Completed })
	if code := <-watch.code; code != cli.ExitOK || !strings.Contains(watch.out.String(), "COMPLETED") {
		t.Errorf("exit code %d: %s\n%s", code, watch.errs, watch.out)
	}
}
