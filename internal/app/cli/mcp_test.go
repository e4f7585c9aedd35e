package cli_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/fantasia-hpo/fantasia/internal/app/cli"
)

const tinyFile = `apiVersion: fantasia.dev/v1
kind: Study
metadata: {name: tiny}
spec:
  objective: {metric: loss, direction: minimize}
  parameters: [{name: x, type: float, min: 0, max: 1}]
  algorithm: {name: random}
  budget: {maxTrials: 2}
  trial: {command: [sh, -c, 'echo "{\"fantasia\": {\"metrics\": {\"loss\": 0.5}}}"']}
`

// mcpClient starts fantasia mcp as a client's configuration does. end closes its input and returns
// its exit code.
func mcpClient(t *testing.T, args ...string) (client *mcp.ClientSession, end func() int) {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	var stderr bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Main(context.Background(), append([]string{"mcp"}, args...),
			cli.Options{Stdin: in, Stdout: out, Stderr: &stderr, Version: "test"})
		_ = out.Close()
	}()
	client, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(),
		&mcp.IOTransport{Reader: fromServer, Writer: toServer}, nil)
	if err != nil {
		t.Fatalf("%v; stderr: %s", err, &stderr)
	}
	return client, func() int {
		_ = client.Close() // closes the program's input
		code := <-ended
		if stderr.Len() > 0 {
			t.Errorf("stderr has %s", &stderr)
		}
		return code
	}
}

// mcpText calls a tool and returns what it says.
func mcpText(t *testing.T, c *mcp.ClientSession, tool string, arguments map[string]any) string {
	t.Helper()
	result, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	said, _ := result.Content[0].(*mcp.TextContent)
	return said.Text
}

// An assistant sees the studies of fantasia run beside its own, cannot change them, and finds its
// own again when it is started again, with the trial that it had not told.
func TestMCPKeepsStudies(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	dir := t.TempDir()
	file := filepath.Join(dir, "tiny.yaml")
	if err := os.WriteFile(file, []byte(tinyFile), 0o600); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(dir, "s")
	var stderr bytes.Buffer
	if code := cli.Main(t.Context(), []string{"run", file, "--state", filepath.Join(state, "tiny"), "-o", "json"},
		cli.Options{Stdout: io.Discard, Stderr: &stderr, Version: "test"}); code != cli.ExitOK {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	mine := strings.Replace(tinyFile[:strings.Index(tinyFile, "  trial:")], "tiny", "mine", 1)
	c, end := mcpClient(t, "--state", state)
	if said := mcpText(t, c, "create_study", map[string]any{"studyFile": mine}); !strings.Contains(said, `"study":"mine"`) {
		t.Errorf("a study is created with %s", said)
	}
	if said := mcpText(t, c, "list_studies", map[string]any{}); !strings.Contains(said, `"study":"mine"`) ||
		!strings.Contains(said, `"study":"tiny"`) {
		t.Errorf("the studies are %s", said)
	}
	if said := mcpText(t, c, "best", map[string]any{"study": "tiny"}); !strings.Contains(said, `"value":0.5`) {
		t.Errorf("the best point of the run is %s", said)
	}
	if said := mcpText(t, c, "stop_study", map[string]any{"study": "tiny"}); !strings.Contains(said, "read-only") {
		t.Errorf("stopping the study of a run: %s", said)
	}
	held := mcpText(t, c, "ask", map[string]any{"study": "mine"})
	if code := end(); code != cli.ExitOK {
		t.Errorf("exit code %d", code)
	}
	c, end = mcpClient(t, "--state", state)
	again := mcpText(t, c, "ask", map[string]any{"study": "mine"})
	if point(t, held) != point(t, again) || !strings.Contains(again, `"attempt":2`) {
		t.Errorf("the next process got %s, want the trial of %s", again, held)
	}
	if said := mcpText(t, c, "tell", map[string]any{"study": "mine", "trial": 1, "metrics": map[string]any{"loss": 0.25}}); !strings.Contains(
		said, `"state":"COMPLETED"`) {
		t.Errorf("telling says %s", said)
	}
	if code := end(); code != cli.ExitOK {
		t.Errorf("exit code %d", code)
	}
}

// point is the part of an answer with the point of its first trial.
func point(t *testing.T, answer string) string {
	t.Helper()
	_, rest, ok := strings.Cut(answer, `"parameters":`)
	if !ok {
		t.Fatalf("no point in %s", answer)
	}
	inner, _, _ := strings.Cut(rest, "}")
	return inner
}
