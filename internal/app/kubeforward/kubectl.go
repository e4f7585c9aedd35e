package kubeforward

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

const (
	// lookup limits each look at the cluster, and how long a port-forward takes to begin.
	lookup = 30 * time.Second
	// maxWords limits what is kept of kubectl's errors, in bytes.
	maxWords = 4 << 10
	// lingering limits how long the programs that kubectl has started keep its output open.
	lingering = 5 * time.Second
)

// errKubectl is the error if there is no kubectl.
var errKubectl = errors.New("the program kubectl is not in PATH, and it is what reaches the cluster: install it (https://kubernetes.io/docs/tasks/tools)")

// command returns a call of kubectl for the cluster. Its standard error goes to words.
func (c *Cluster) command(ctx context.Context, args ...string) (cmd *exec.Cmd, words *splitter, err error) {
	program, err := exec.LookPath("kubectl")
	if err != nil {
		return nil, nil, errKubectl
	}
	if c.Kubeconfig != "" { // kubectl takes a file that is not there as an empty one
		if _, err := os.Stat(c.Kubeconfig); err != nil {
			return nil, nil, fmt.Errorf("read the kubeconfig: %w", err)
		}
	}
	var flags []string
	if c.Kubeconfig != "" {
		flags = append(flags, "--kubeconfig="+c.Kubeconfig)
	}
	if c.Context != "" {
		flags = append(flags, "--context="+c.Context)
	}
	cmd = exec.CommandContext(ctx, program, append(flags, args...)...)
	cmd.WaitDelay = lingering
	if terminal, ok := c.Stdin.(*os.File); ok { // of any other reader, Wait would wait for its end
		cmd.Stdin = terminal
	}
	words = &splitter{others: c.Stderr}
	cmd.Stderr = words
	return cmd, words, nil
}

// kubectl returns what a call of kubectl that asks the cluster something writes.
func (c *Cluster) kubectl(ctx context.Context, args ...string) ([]byte, error) {
	cmd, words, err := c.command(ctx, append([]string{"--request-timeout=" + lookup.String()}, args...)...)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil {
		return nil, words.explain(ctx, err)
	}
	return out.Bytes(), nil
}

// get returns the resource at a path of the cluster's API, in JSON. It needs no right but the one
// to get that.
func (c *Cluster) get(ctx context.Context, path string) ([]byte, error) {
	return c.kubectl(ctx, "get", "--raw", path)
}

// kubectlError is an error that kubectl has reported.
type kubectlError struct {
	words string
	cause error
}

// Error returns kubectl's words.
func (e *kubectlError) Error() string { return e.words }

// Unwrap returns how kubectl ended.
func (e *kubectlError) Unwrap() error { return e.cause }

// own matches the beginning of a line that kubectl writes itself to standard error.
var own = regexp.MustCompile(`^(error: |Error |Unable to |The connection |Warning: |[EWIF][0-9]{4} )`)

// longest is the length of the longest beginning that own matches.
const longest = len("The connection ")

// splitter splits standard error. The lines of kubectl itself become its error. Everything else comes from
// programs that log in to the cluster, and people see it at once, since it may say where to log in.
type splitter struct {
	others io.Writer // nil for nobody
	words  bytes.Buffer
	line   []byte // the line so far, until it is known whose it is
	whose  io.Writer
}

// Write implements io.Writer. It never fails.
func (s *splitter) Write(p []byte) (int, error) {
	for _, b := range p {
		s.line = append(s.line, b)
		if s.whose == nil && (b == '\n' || len(s.line) >= longest || !couldBeOwn(s.line)) {
			s.whose = s.reader()
		}
		if b == '\n' {
			s.flush()
			s.whose = nil
		}
	}
	if s.whose != nil {
		s.flush()
	}
	return len(p), nil
}

// flush hands on what there is of a line.
func (s *splitter) flush() {
	_, _ = s.whose.Write(s.line) // a terminal that is gone
	s.line = s.line[:0]
}

// reader returns whose the line is.
func (s *splitter) reader() io.Writer {
	switch {
	case own.Match(s.line) && s.words.Len() < maxWords:
		return &s.words
	case own.Match(s.line) || s.others == nil:
		return io.Discard
	default:
		return s.others
	}
}

// couldBeOwn reports whether a line that begins so may still turn out to be kubectl's own.
func couldBeOwn(line []byte) bool { return bytes.IndexByte([]byte("eEUTWIF"), line[0]) >= 0 }

// explain returns the error of a call that has failed.
func (s *splitter) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err() //nolint:wrapcheck // the caller's own
	}
	words := strings.TrimSpace(s.words.String() + string(s.line))
	if last := strings.LastIndexByte(words, '\n'); last >= 0 {
		words = words[last+1:] // the lines before tell of its attempts
	}
	words = strings.TrimPrefix(words, "error: ")
	if words == "" {
		return fmt.Errorf("kubectl failed: %w", err)
	}
	return &kubectlError{words: words[:min(len(words), maxWords)], cause: err}
}

// advise adds how to do without a right that is missing.
func advise(err error) error {
	if strings.Contains(strings.ToLower(err.Error()), "forbidden") {
		return fmt.Errorf("%w (without this right, give the address of the coordinators with --server or FANTASIA_SERVER)", err)
	}
	return err
}
