package workernode

import (
	"regexp"
	"testing"
)

func TestSize(t *testing.T) {
	pattern := regexp.MustCompile(SizePattern)
	for text, want := range map[string]struct {
		bytes int64
		shown string
	}{
		"0": {0, "0"}, "1": {1, "1"}, "1024": {1024, "1Ki"}, "1536": {1536, "1536"}, "1Ki": {1024, "1Ki"},
		"512MiB": {512 << 20, "512Mi"}, "10Gi": {10 << 30, "10Gi"}, "2048Gi": {2 << 40, "2Ti"}, "7TiB": {7 << 40, "7Ti"},
	} {
		var got int64
		v := Size(&got)
		if err := v.Set(text); err != nil || got != want.bytes || v.String() != want.shown {
			t.Errorf("%s: %d, shown as %s (%v); want %d and %s", text, got, v, err, want.bytes, want.shown)
		}
		if !pattern.MatchString(text) {
			t.Errorf("the pattern does not match %s", text)
		}
	}
	for _, text := range []string{"", "Gi", "-1", "1.5Gi", "1G", "1B", "10 Gi", "9223372036854775808", "8388608Ti", "1gi", "+1", "0x10"} {
		got := int64(7)
		if err := Size(&got).Set(text); err == nil || got != 7 {
			t.Errorf("%q was read as %d (%v), want an error", text, got, err)
		}
		if len(text) < 7 && pattern.MatchString(text) {
			t.Errorf("the pattern matches %q", text)
		}
	}
}
