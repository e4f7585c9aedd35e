// Command witness records evaluations for end-to-end tests, independently of Fantasia's
// own records. `witness serve` keeps a list of events. `witness run COMMAND …` runs a
// training program unchanged, posts to the list when it starts and ends with the last
// value it reported, and passes everything else through. `witness linger DURATION
// COMMAND …` also waits before it ends.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// event is one line of the list.
type event struct {
	Study   string    `json:"study"`
	Trial   int       `json:"trial"`
	Attempt int       `json:"attempt"`
	Ended   bool      `json:"ended"`
	Exit    int       `json:"exit"`
	Value   *float64  `json:"value,omitempty"` // the last one reported
	Host    string    `json:"host"`
	Time    time.Time `json:"time"`
}

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	switch {
	case len(args) == 1 && args[0] == "serve":
		if err := serve(); err != nil {
			fmt.Fprintln(os.Stderr, "witness:", err)
			return 1
		}
		return 0
	case len(args) > 1 && args[0] == "run":
		return report(observe(args[1:], 0))
	case len(args) > 2 && args[0] == "linger":
		linger, err := time.ParseDuration(args[1])
		if err != nil {
			return report(2, err)
		}
		return report(observe(args[2:], linger))
	default:
		fmt.Fprintln(os.Stderr, "usage: witness serve | witness run COMMAND … | witness linger DURATION COMMAND …")
		return 2
	}
}

func report(code int, err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, "witness:", err)
	}
	return code
}

// serve listens on :8080: a POST appends an event, a GET returns all of them.
func serve() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var mu sync.Mutex
	var lines bytes.Buffer
	server := &http.Server{Addr: ":8080", ReadHeaderTimeout: 10 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(io.LimitReader(r.Body, 1<<16))
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if r.Method == http.MethodPost {
				lines.Write(append(bytes.TrimSpace(body), '\n'))
				return
			}
			_, _ = w.Write(lines.Bytes())
		})}
	stopped := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stopped()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// observe runs the program and returns its exit code. A signal to this process alone,
// as the first process of a container gets, is passed on.
func observe(argv []string, linger time.Duration) (int, error) {
	e, err := identity()
	if err != nil {
		return 1, err
	}
	if err := tell(e); err != nil {
		return 1, err
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	defer signal.Stop(signals)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 1, fmt.Errorf("read %s: %w", argv[0], err)
	}
	if err := cmd.Start(); err != nil {
		return 127, fmt.Errorf("start %s: %w", argv[0], err)
	}
	over := make(chan struct{})
	var passing sync.WaitGroup
	passing.Go(func() {
		for {
			select {
			case s := <-signals:
				_ = cmd.Process.Signal(s)
			case <-over:
				return
			}
		}
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		fmt.Println(lines.Text())
		if v := reported(lines.Bytes()); v != nil {
			e.Value = v
		}
	}
	err = cmd.Wait()
	close(over)
	passing.Wait()
	e.Ended, e.Exit = true, cmd.ProcessState.ExitCode()
	if e.Exit == 0 {
		select {
		case <-time.After(linger):
		case <-signals:
			e.Exit = -1
		}
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return 1, fmt.Errorf("run %s: %w", argv[0], err)
	}
	if err := tell(e); err != nil {
		return 1, err
	}
	if e.Exit < 0 { // by a signal, in a shell's convention
		return 128 + int(syscall.SIGTERM), nil
	}
	return e.Exit, nil
}

func identity() (event, error) {
	host, _ := os.Hostname()
	trial, errTrial := strconv.Atoi(os.Getenv("FANTASIA_TRIAL"))
	attempt, errAttempt := strconv.Atoi(os.Getenv("FANTASIA_ATTEMPT"))
	if err := errors.Join(errTrial, errAttempt); err != nil {
		return event{}, fmt.Errorf("which attempt this is: %w", err)
	}
	return event{Study: os.Getenv("FANTASIA_STUDY"), Trial: trial, Attempt: attempt, Host: host}, nil
}

// reported returns the error in a report of the digits example, or nil if a line is not
// one.
func reported(line []byte) *float64 {
	var report struct {
		Fantasia struct {
			Metrics struct {
				Error *float64 `json:"error"`
			} `json:"metrics"`
		} `json:"fantasia"`
	}
	if json.Unmarshal(line, &report) != nil {
		return nil
	}
	return report.Fantasia.Metrics.Error
}

// tell posts an event to the list at WITNESS, and retries until it is accepted.
func tell(e event) error {
	e.Time = time.Now()
	body, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("write an event: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, os.Getenv("WITNESS"), bytes.NewReader(body))
		if err != nil {
			return fmt.Errorf("WITNESS: %w", err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			err = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return err
			}
			err = errors.New(resp.Status)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("tell %s: %w", os.Getenv("WITNESS"), err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}
