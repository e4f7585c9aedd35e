package kubepod

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/messaging/membus"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCost(t *testing.T) {
	for _, test := range []struct {
		invested []time.Duration
		want     int32
	}{
		{nil, 0},
		{[]time.Duration{0}, 1},
		{[]time.Duration{1900 * time.Millisecond}, 1},
		{[]time.Duration{2 * time.Second}, 2},
		{[]time.Duration{63 * time.Second}, 32},
		{[]time.Duration{64 * time.Second, time.Hour}, 64 + 2048},
		{[]time.Duration{math.MaxInt64, math.MaxInt64}, math.MaxInt32},
		{[]time.Duration{-time.Hour}, 1}, // a clock was set back
	} {
		if got := Cost(test.invested); got != test.want {
			t.Errorf("%v cost %d, want %d", test.invested, got, test.want)
		}
	}
}

// The pod is told at once what it costs, then only of changes, no two within ten
// seconds, and again of what it was not told.
func TestPatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		type patch struct {
			At   time.Duration
			Cost int32
		}
		var mu sync.Mutex
		var patches []patch
		pod := newPod(func(_ context.Context, cost int32) error {
			mu.Lock()
			defer mu.Unlock()
			patches = append(patches, patch{time.Since(start), cost})
			if len(patches) == 2 {
				return errors.New("refused")
			}
			return nil
		}, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { pod.Run(ctx) })
		bus, err := membus.New(membus.Options{}).Worker("w", "default")
		if err != nil {
			t.Fatal(err)
		}
		watched := pod.Watch(bus)
		beat := func(running ...messaging.AttemptID) {
			t.Helper()
			if err := watched.Heartbeat(ctx, &messaging.Heartbeat{Worker: "w", Pool: "default", Instance: "1", Slots: 2, Running: running, At: time.Now()}); err != nil {
				t.Fatal(err)
			}
		}
		a := messaging.AttemptID{Study: "s", Trial: 1, Attempt: 1, Nonce: "a"}
		b := messaging.AttemptID{Study: "s", Trial: 2, Attempt: 1, Nonce: "b"}
		time.Sleep(5 * time.Second)
		beat(a)
		time.Sleep(40 * time.Second) // at 45 s, a has run for 40
		beat(a, b)
		time.Sleep(10 * time.Second)
		beat()
		time.Sleep(25 * time.Second)
		cancel()
		running.Wait()
		want := []patch{{0, 0}, {10 * time.Second, 4}, {20 * time.Second, 8}, {30 * time.Second, 16}, {40 * time.Second, 32}, {50 * time.Second, 32 + 4}, {60 * time.Second, 0}}
		if diff := cmp.Diff(want, patches); diff != "" {
			t.Errorf("patches (-want +got):\n%s", diff)
		}
		if err := bus.Close(); err != nil {
			t.Error(err)
		}
	})
}

// What is sent to the API server is a patch of one annotation.
func TestPatchOnTheWire(t *testing.T) {
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = r.Method + " " + r.URL.Path + " " + r.Header.Get("Content-Type") + " " + string(body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}`)
	}))
	defer server.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client, err := dynamic.NewForConfigAndClient(&rest.Config{Host: server.URL}, &http.Client{Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	if err := patcher(client, "n", "p")(t.Context(), 7); err != nil {
		t.Fatal(err)
	}
	want := `PATCH /api/v1/namespaces/n/pods/p application/merge-patch+json {"metadata":{"annotations":{"controller.kubernetes.io/pod-deletion-cost":"7"}}}`
	if got != want {
		t.Errorf("sent %s, want %s", got, want)
	}
}

func TestAPodHasAName(t *testing.T) {
	if _, err := New("n", "", slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a pod without a name is accepted")
	}
}
