package access

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/spf13/pflag"

	"github.com/fantasia-hpo/fantasia/internal/base/tokenfile"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// Caller is a program's identity to the API, and the authorities it trusts.
type Caller struct {
	// Token is sent with each request; empty for none. If TokenFile is set, it is the token
	// in that file instead, which is read again for each request.
	Token, TokenFile string
	// CA is the file of the certificate authorities that sign the API's certificate;
	// empty for the system's.
	CA string
}

// Flags adds the flags.
func (c *Caller) Flags(f *pflag.FlagSet) {
	f.StringVar(&c.Token, "token", "", "token for the server; prefer FANTASIA_TOKEN, which other users of this machine cannot see")
	f.StringVar(&c.TokenFile, "token-file", "", "`file` of the token for the server, which is read again for each request: for tokens that "+
		"are renewed")
	f.StringVar(&c.CA, "ca", "", "PEM `file` of the CA certificates for the server (default: the system's)")
}

// Check returns what is wrong with the token.
func (c *Caller) Check() error {
	if c.TokenFile == "" {
		_, err := tokenfile.Trim(c.Token)
		return err
	}
	if c.Token != "" {
		return errors.New("--token and --token-file: set only one")
	}
	_, err := c.readToken()
	return err
}

// Bearer returns the token for a request now; empty for none. A file that cannot be read
// has none.
func (c *Caller) Bearer() string {
	if c.TokenFile == "" {
		token, _ := tokenfile.Trim(c.Token) // see Check
		return token
	}
	token, _ := c.readToken() // Check has said why not; the server says that a token is required
	return token
}

func (c *Caller) readToken() (string, error) {
	token, err := tokenfile.Read(c.TokenFile)
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	return token, nil
}

// TLS returns the configuration for a server whose address starts with https://.
func (c *Caller) TLS() (*tls.Config, error) {
	return (&Files{CA: c.CA}).Config()
}

// maxSaid is the number of logged reasons that are remembered.
const maxSaid = 32

// Reasons logs why attempts to connect fail. As attempts follow each other quickly, it
// logs each reason only once until an attempt succeeds. It is safe for concurrent use.
type Reasons struct {
	log *slog.Logger

	mu   sync.Mutex
	said map[string]bool // since the last success
}

// NewReasons logs to log.
func NewReasons(log *slog.Logger) *Reasons { return &Reasons{log: log} }

// Say logs a failed attempt, unless its reason was already logged.
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

// Forget records a successful attempt.
func (s *Reasons) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = nil
}
