package embedded

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/internal/base/dirlock"
	"github.com/nats-io/nats.go/jetstream"
)

func startNATS(t testing.TB, o NATSOptions) *NATS {
	t.Helper()
	n, err := StartNATS(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

func jetStream(t testing.TB, n *NATS) jetstream.JetStream {
	t.Helper()
	c, err := n.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	js, err := jetstream.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func TestNATSKeepsItsDataWithoutListening(t *testing.T) {
	ctx, dir := testContext(t), t.TempDir()
	n := startNATS(t, NATSOptions{Dir: dir, SyncAlways: true})
	if a := n.server.Addr(); a != nil {
		t.Errorf("listens on %s; want no listener", a)
	}
	js := jetStream(t, n)
	if _, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(ctx, "s", make([]byte, 256<<10)); err != nil {
		t.Fatal(err)
	}
	js.Conn().Close()
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}

	s, err := jetStream(t, startNATS(t, NATSOptions{Dir: dir})).Stream(ctx, "S")
	if err != nil {
		t.Fatal(err)
	}
	if got := s.CachedInfo().State.Msgs; got != 1 {
		t.Errorf("after a restart the stream holds %d messages; want 1", got)
	}
}

func TestNATSLogsOnlyTrouble(t *testing.T) {
	var log bytes.Buffer
	n := startNATS(t, NATSOptions{Dir: t.TempDir(), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	jetStream(t, n).Conn().Close()
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if log.Len() > 0 {
		t.Errorf("a start and a close without trouble logged:\n%s", log.String())
	}
}

func TestNATSSaysWhyItDidNotStart(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "data"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := StartNATS(NATSOptions{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("with a file for its data directory: %v; want an error with the place and the reason", err)
	}
}

func TestNATSDirectoryInUse(t *testing.T) {
	dir := t.TempDir()
	startNATS(t, NATSOptions{Dir: dir})
	if _, err := StartNATS(NATSOptions{Dir: dir}); !errors.Is(err, dirlock.ErrInUse) {
		t.Errorf("a second NATS on the directory: %v; want ErrInUse", err)
	}
}

func BenchmarkNATSColdStart(b *testing.B) {
	for b.Loop() {
		n, err := StartNATS(NATSOptions{Dir: b.TempDir()})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := n.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
