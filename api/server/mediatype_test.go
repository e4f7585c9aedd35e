package server_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/api/fantasia/v1/fantasiav1connect"
	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/internal/test/servertest"
)

// A call without a usable Content-Type is told which one is wanted (RFC 9110, section 15.5.16).
func TestUnknownMediaType(t *testing.T) {
	base := serve(t, servertest.New(t), server.Options{})
	for _, given := range []string{"", "application/x-www-form-urlencoded", "text/plain", "application/xml", "application/json",
		"application/json; charset=utf-8"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+base+fantasiav1connect.StudyServiceListStudiesProcedure,
			strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", given)
		transport := &http.Transport{}
		answer, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		var body struct{ Code, Message string }
		err = json.NewDecoder(answer.Body).Decode(&body)
		if closed := answer.Body.Close(); err != nil || closed != nil {
			t.Fatalf("%q: %v, %v", given, err, closed)
		}
		transport.CloseIdleConnections()
		want, message := http.StatusUnsupportedMediaType, "Content-Type is \""+given+"\"; want application/json"
		if strings.HasPrefix(given, "application/json") {
			want, message = http.StatusOK, ""
		}
		if answer.StatusCode != want || body.Message != message || !strings.HasPrefix(answer.Header.Get("Content-Type"), "application/json") {
			t.Errorf("%q: %s, %+v", given, answer.Status, body)
		}
	}
}
