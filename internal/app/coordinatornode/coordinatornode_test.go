package coordinatornode

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAdvertised(t *testing.T) {
	for _, test := range []struct{ given, listening, want string }{
		{"api.example:80", "0.0.0.0:8080", "api.example:80"},
		{"", "0.0.0.0:8080", "localhost:8080"},
		{"", "[::]:8080", "localhost:8080"},
		{"", "10.0.0.7:8080", "10.0.0.7:8080"},
	} {
		if got := advertised(test.given, test.listening, false); got != test.want {
			t.Errorf("advertised(%q, %q) is %q, want %q", test.given, test.listening, got, test.want)
		}
		if got := advertised(test.given, test.listening, true); got != "https://"+test.want {
			t.Errorf("advertised(%q, %q) with TLS is %q, want https://%s", test.given, test.listening, got, test.want)
		}
	}
}
