package access

import (
	"log/slog"
	"sync"

	"github.com/fantasia-hpo/fantasia/telemetry"
)

// maxSaid bounds how many reasons are remembered as said.
const maxSaid = 32

// Reasons logs why attempts to connect fail, each reason once until one succeeds:
// attempts follow each other quickly.
// Safe for concurrent use.
type Reasons struct {
	log *slog.Logger

	mu   sync.Mutex
	said map[string]bool // since the last success
}

// NewReasons logs to log.
func NewReasons(log *slog.Logger) *Reasons { return &Reasons{log: log} }

// Say logs an attempt that failed, unless its reason has been logged.
func (s *Reasons) Say(what string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := err.Error()
	if s.said[text] {
		return
	}
	if s.said == nil || len(s.said) >= maxSaid {
		s.said = map[string]bool{}
	}
	s.said[text] = true
	s.log.Warn(what, telemetry.LogError, err)
}

// Forget is for an attempt that succeeded.
func (s *Reasons) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = nil
}
