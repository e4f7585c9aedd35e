package podcost

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/fantasia-hpo/fantasia/coordinator"
	"github.com/fantasia-hpo/fantasia/messaging"
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

// A pod is told at once what it costs, then only of changes, no two within ten
// seconds, and again of what it was not told. Pods of other pools are left alone.
func TestPatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		type patch struct {
			At   time.Duration
			Pod  string
			Cost int32
		}
		var mu sync.Mutex
		var patches []patch
		var workers []coordinator.Worker
		k := &Keeper{Pools: []string{"cpu"}, Logger: slog.New(slog.DiscardHandler)}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		beat := func(attempts ...messaging.AttemptID) {
			mu.Lock()
			defer mu.Unlock()
			workers = []coordinator.Worker{
				{Heartbeat: messaging.Heartbeat{Worker: "cpu.p-1", Pool: "cpu", Running: attempts}},
				{Heartbeat: messaging.Heartbeat{Worker: "gpu.p-2", Pool: "gpu", Running: attempts}},
			}
		}
		beat()
		running.Go(func() {
			err := k.run(ctx, func() []coordinator.Worker {
				mu.Lock()
				defer mu.Unlock()
				return workers
			}, func(_ context.Context, pod string, cost int32) error {
				mu.Lock()
				defer mu.Unlock()
				patches = append(patches, patch{time.Since(start), pod, cost})
				if len(patches) == 2 {
					return errors.New("refused")
				}
				return nil
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("run ended with %v", err)
			}
		})
		a := messaging.AttemptID{Study: "s", Trial: 1, Attempt: 1, Nonce: "a"}
		b := messaging.AttemptID{Study: "s", Trial: 2, Attempt: 1, Nonce: "b"}
		time.Sleep(5 * time.Second)
		beat(a) // heard of at 10 s
		time.Sleep(40 * time.Second)
		beat(a, b) // at 50 s, a has run for 40
		time.Sleep(10 * time.Second)
		beat()
		time.Sleep(25 * time.Second)
		cancel()
		running.Wait()
		want := []patch{
			{0, "p-1", 0}, {10 * time.Second, "p-1", 1}, {20 * time.Second, "p-1", 8}, {30 * time.Second, "p-1", 16},
			{50 * time.Second, "p-1", 32 + 1}, {60 * time.Second, "p-1", 0},
		}
		if diff := cmp.Diff(want, patches); diff != "" {
			t.Errorf("patches (-want +got):\n%s", diff)
		}
	})
}

// A worker that is gone is forgotten, so that a pod of its name is told anew.
func TestGoneWorkersAreForgotten(t *testing.T) {
	pods, now := map[string]*pod{}, time.Unix(0, 0)
	here := []coordinator.Worker{{Heartbeat: messaging.Heartbeat{Worker: "cpu.p", Pool: "cpu"}}}
	hear(pods, []string{"cpu"}, here, now)
	if len(pods) != 1 {
		t.Fatalf("%d pods are known, want 1", len(pods))
	}
	hear(pods, []string{"cpu"}, nil, now)
	if len(pods) != 0 {
		t.Errorf("%d pods are known, want none", len(pods))
	}
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
	if err := (&Keeper{Namespace: "n", Client: client}).patch(t.Context(), "p", 7); err != nil {
		t.Fatal(err)
	}
	want := `PATCH /api/v1/namespaces/n/pods/p application/merge-patch+json {"metadata":{"annotations":{"controller.kubernetes.io/pod-deletion-cost":"7"}}}`
	if got != want {
		t.Errorf("sent %s, want %s", got, want)
	}
}

func TestNamespaceIsNeeded(t *testing.T) {
	if _, err := New("", nil, nil, nil); err == nil || !strings.Contains(err.Error(), "POD_NAMESPACE") {
		t.Errorf("without a namespace: %v, want an error that names POD_NAMESPACE", err)
	}
}
