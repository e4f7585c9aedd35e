package access

import (
	"log/slog"
	"sync"

	"github.com/fantasia-hpo/fantasia/telemetry"
)

// maxSaid bounds how many reasons are remembered as said.
const maxSaid = 32

// says logs why tries fail, each reason once: tries follow each other quickly.
// Safe for concurrent use.
type says struct {
	log *slog.Logger

	mu   sync.Mutex
	said map[string]bool // since the last success
}

func (s *says) say(what string, err error) {
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

// forget is for a try that has succeeded.
func (s *says) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = nil
}
