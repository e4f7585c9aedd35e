package command

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fantasia-hpo/fantasia/messaging"
	"github.com/fantasia-hpo/fantasia/study"
)

func TestPassEnv(t *testing.T) {
	environ := []string{
		"PATH=/bin", "HOME=/root", "LC_ALL=C", "CUDA_VISIBLE_DEVICES=0", "PYTHONPATH=/x=y", "OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318",
		"OTEL_EXPORTER_OTLP_HEADERS=authorization=secret", "OTEL_EXPORTER_OTLP_TRACES_HEADERS=x", "AWS_SECRET_ACCESS_KEY=secret", "AWS_REGION=eu",
		"GOOGLE_APPLICATION_CREDENTIALS=/key", "NVIDIA_API_KEY=secret", "FANTASIA_TOKEN=secret", "DATA=/data", "PATHS=1", "=C:", "odd",
		"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT=http://u:secret@c:4318",
	}
	common := []string{"PATH=/bin", "HOME=/root", "LC_ALL=C", "CUDA_VISIBLE_DEVICES=0", "PYTHONPATH=/x=y",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318"}
	for _, test := range []struct {
		names          []string
		kept, withheld []string
	}{
		{nil, common, []string{"AWS_REGION", "AWS_SECRET_ACCESS_KEY", "DATA", "GOOGLE_APPLICATION_CREDENTIALS", "NVIDIA_API_KEY",
			"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_HEADERS", "PATHS"}},
		{[]string{"AWS_*", "DATA", "OTEL_EXPORTER_OTLP_HEADERS"},
			append(append([]string{}, common...), "OTEL_EXPORTER_OTLP_HEADERS=authorization=secret", "AWS_SECRET_ACCESS_KEY=secret", "AWS_REGION=eu",
				"DATA=/data"),
			[]string{"GOOGLE_APPLICATION_CREDENTIALS", "NVIDIA_API_KEY", "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
				"PATHS"}},
	} {
		kept, withheld := PassEnv(environ, test.names)
		if diff := cmp.Diff(test.kept, kept); diff != "" {
			t.Errorf("%v passes (-want +got):\n%s", test.names, diff)
		}
		if diff := cmp.Diff(test.withheld, withheld); diff != "" {
			t.Errorf("%v withholds (-want +got):\n%s", test.names, diff)
		}
	}
	kept, withheld := PassEnv(environ, []string{"*"})
	if len(kept) != 15 || len(withheld) > 0 || strings.Contains(strings.Join(kept, "\n"), "FANTASIA_") {
		t.Errorf("* passes %q, withholds %q", kept, withheld)
	}
	if err := CheckPassEnv([]string{"A", "b_1*", "*", "AWS_*"}); err != nil {
		t.Error(err)
	}
	for _, wrong := range []string{"", "A=b", "A B", "*_KEY", "A**"} {
		if err := CheckPassEnv([]string{wrong}); err == nil || !strings.Contains(err.Error(), `"`+wrong+`"`) {
			t.Errorf("CheckPassEnv(%q): %v", wrong, err)
		}
	}
}

// A study's value is no flag of the worker's own command, and the program does not start.
func TestValueIsNoFlag(t *testing.T) {
	own := newEvaluator(t, func(o *Options) {
		o.Command, o.AllowStudyCommands = []string{"/bin/sh", "-c", `echo '{"fantasia": {"metrics": {"error": 1}}}'`, "sh", "${mode}"}, false
	})
	a := assignment("unused")
	a.Parameters, a.ParameterOrder = study.Point{"mode": "--rm"}, []string{"mode"}
	want(t, own.Evaluate(t.Context(), task(a)), messaging.OutcomeFailed, messaging.ReasonCommand, `"--rm" of mode would become a flag`,
		"--mode=${mode}")
	a.Parameters["mode"] = "rm"
	want(t, own.Evaluate(t.Context(), task(a)), messaging.OutcomeCompleted, "")
	a.Parameters["mode"] = -1.5
	want(t, own.Evaluate(t.Context(), task(a)), messaging.OutcomeCompleted, "")
	// The study's own command may.
	a.Run.Command = own.options.Command
	a.Parameters["mode"] = "--rm"
	want(t, evaluate(t, a), messaging.OutcomeCompleted, "")
}
