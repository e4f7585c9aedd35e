package remote

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/fantasia-hpo/fantasia"
)

// againError says that a request can be sent again.
type againError struct {
	why   error
	after time.Duration // when; 0 if the server does not say
}

// Error returns the reason.
func (e *againError) Error() string { return e.why.Error() }

// Unwrap returns the reason.
func (e *againError) Unwrap() error { return e.why }

// proxyCodes are what Connect's protocol makes of an answer that is none of its own.
var proxyCodes = map[int]string{
	http.StatusBadRequest: "internal", http.StatusUnauthorized: "unauthenticated", http.StatusForbidden: "permission_denied",
	http.StatusNotFound: "unimplemented", http.StatusTooManyRequests: "unavailable", http.StatusBadGateway: "unavailable",
	http.StatusServiceUnavailable: "unavailable", http.StatusGatewayTimeout: "unavailable",
}

// answeredError is an error as Connect's protocol has it in JSON.
type answeredError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Details []struct {
		Type  string `json:"type"`
		Debug struct {
			RetryDelay      string `json:"retryDelay"`
			FieldViolations []struct {
				Description string `json:"description"`
			} `json:"fieldViolations"`
		} `json:"debug"`
	} `json:"details"`
}

// place is where a problem is in a study file, which nobody has written here.
var place = regexp.MustCompile(`^[0-9]+:[0-9]+: `)

// refusal returns the error that an answer holds.
func refusal(status int, answer []byte) error {
	var said answeredError
	if err := json.Unmarshal(answer, &said); err != nil || said.Code == "" {
		said = answeredError{Code: proxyCodes[status], Message: fmt.Sprintf("HTTP %d %s: %.200s", status, http.StatusText(status), answer)}
		if said.Code == "" {
			said.Code = "unknown"
		}
	}
	var problems []string
	for _, d := range said.Details {
		switch d.Type {
		case "google.rpc.RetryInfo": // the server has not begun
			after, _ := time.ParseDuration(d.Debug.RetryDelay) // then the pauses grow
			return &againError{why: &fantasia.ServerError{Code: said.Code, Message: said.Message}, after: after}
		case "google.rpc.BadRequest":
			for _, v := range d.Debug.FieldViolations {
				problems = append(problems, place.ReplaceAllString(v.Description, ""))
			}
		}
	}
	if len(problems) > 0 {
		said.Message = strings.Join(problems, "\n")
	}
	if said.Code == "unauthenticated" {
		said.Message += "; see Token and TokenFile of remote.Server, or set FANTASIA_TOKEN"
	}
	e := &fantasia.ServerError{Code: said.Code, Message: said.Message}
	switch said.Code {
	case "unavailable", "deadline_exceeded", "canceled": // nothing here cancels a request that is still wanted
		return &againError{why: e}
	}
	return e
}
