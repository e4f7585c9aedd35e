package kubeworkercli

import (
	"io"
	"strings"
	"testing"
)

func TestTemplateIsRequired(t *testing.T) {
	for want, args := range map[string][]string{
		"--template is missing":                       {},
		"--template: open nowhere.yaml: no such file": {"--template", "nowhere.yaml"},
	} {
		cmd := New("dev", io.Discard)
		cmd.SetArgs(args)
		if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want …%s…", args, err, want)
		}
	}
}
