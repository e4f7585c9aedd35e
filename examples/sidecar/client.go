package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"time"
)

// errLeaving says that the sidecar gives no more trials.
var errLeaving = errors.New("there are no more trials")

// pause is the one before a sidecar that does not answer is asked again: it may
// be starting.
const pause = time.Second

// trial is what the sidecar hands out.
type trial struct {
	ID            string
	Study         string
	Trial         int
	Attempt       int
	Seed          uint64
	Parameters    map[string]float64
	Checkpoint    string
	CheckpointDir string
	Traceparent   string
}

// client speaks to the sidecar.
type client struct{ base, name string }

// next waits for a trial; after a restart it is the one that was not completed.
func (c client) next(ctx context.Context) (*trial, error) {
	for {
		var t trial
		switch status, err := c.post(ctx, "/v1/next", map[string]any{"client": c.name}, &t); {
		case err != nil:
			return nil, err
		case status == http.StatusGone:
			return nil, errLeaving
		case status == http.StatusOK:
			return &t, nil
		}
	}
}

// report sends metrics of a step and returns whether to stop.
func (c client) report(ctx context.Context, t *trial, step int, metrics map[string]float64) (stop bool, err error) {
	var answer struct{ Stop bool }
	_, err = c.post(ctx, "/v1/report", map[string]any{"id": t.ID, "step": step, "metrics": metrics}, &answer)
	return answer.Stop, err
}

// complete ends the trial: with the values reported, or with more fields.
func (c client) complete(ctx context.Context, t *trial, more map[string]any) error {
	var answer struct{} // whether it counts is not of interest here
	body := map[string]any{"id": t.ID}
	maps.Copy(body, more)
	_, err := c.post(ctx, "/v1/complete", body, &answer)
	return err
}

// post asks until there is an answer: every request may be repeated.
func (c client) post(ctx context.Context, path string, body, answer any) (status int, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, fmt.Errorf("write a request: %w", err)
	}
	for {
		status, err := c.once(ctx, path, text, answer)
		var unreached *url.Error
		switch {
		case ctx.Err() != nil:
			return 0, ctx.Err()
		case err == nil && status != http.StatusServiceUnavailable:
			return status, nil
		case err != nil && !errors.As(err, &unreached):
			return status, err
		}
		wait(ctx, pause)
	}
}

func (c client) once(ctx context.Context, path string, body []byte, answer any) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+path, bytes.NewReader(body))
	if err != nil {
		return 0, fmt.Errorf("ask %s: %w", path, err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
		if err := json.NewDecoder(resp.Body).Decode(answer); err != nil {
			return 0, &url.Error{Op: "read", URL: path, Err: err} // it was cut off
		}
	case http.StatusBadRequest:
		var problem struct{ Error string }
		if err := json.NewDecoder(resp.Body).Decode(&problem); err != nil {
			problem.Error = err.Error()
		}
		return resp.StatusCode, fmt.Errorf("%s refuses %s: %s", path, body, problem.Error)
	}
	return resp.StatusCode, nil
}
