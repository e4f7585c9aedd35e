package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// settings are the values that the study chooses. gogc is how much garbage may gather, as a
// percentage of the memory in use. pool is how many requests are answered at once.
type settings struct{ gogc, pool int }

// usual are Go's setting and a pool with a place for each processor.
var usual = settings{100, runtime.NumCPU()}

// clients is how many clients send requests at the same time.
const clients = 64

// load starts a server with the settings, and returns how long it takes for a number of requests.
func load(ctx context.Context, s settings, requests int) (time.Duration, error) {
	defer debug.SetGCPercent(debug.SetGCPercent(s.gogc))
	server := httptest.NewServer(handler(s.pool))
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	defer client.CloseIdleConnections()
	runtime.GC() // of earlier settings
	var all sync.WaitGroup
	var next, failed atomic.Int64
	began := time.Now()
	for range clients {
		all.Go(func() {
			for next.Add(1) <= int64(requests) {
				if err := get(ctx, client, server.URL); err != nil {
					failed.Add(1)
				}
			}
		})
	}
	all.Wait()
	if n := failed.Load(); n > 0 {
		return 0, fmt.Errorf("%d of %d requests failed", n, requests)
	}
	return time.Since(began), nil
}

// get sends one request, and reads the answer.
func get(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close() // it was read to its end
	return err
}

// handler answers with a list that it makes, encodes and signs, for as many requests at once as the
// pool has places.
func handler(pool int) http.Handler {
	places := make(chan struct{}, pool)
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		places <- struct{}{}
		defer func() { <-places }()
		items := make([]map[string]any, 100)
		for i := range items {
			items[i] = map[string]any{"id": i, "name": fmt.Sprintf("item %d", i), "tags": []string{"a", "b", "c"}}
		}
		var body bytes.Buffer
		if err := json.NewEncoder(&body).Encode(items); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("X-Sum", fmt.Sprintf("%x", sha256.Sum256(body.Bytes())))
		_, _ = w.Write(body.Bytes()) // a client that has gone
	})
}
