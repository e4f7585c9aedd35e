package worker

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"

	"github.com/fantasia-hpo/fantasia/messaging"
)

// Name returns the worker's name that is stored in stateDir: receipts for results that
// an earlier run spooled go to that name. If there is none, it stores a new one, made
// of the host, the process id and a random part.
func Name(stateDir string) (string, error) {
	path := filepath.Join(stateDir, "name")
	data, err := os.ReadFile(path)
	if name := strings.TrimSpace(string(data)); err == nil && messaging.ValidToken(name) {
		return name, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the worker's name: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "worker"
	}
	name := fmt.Sprintf("%.64s-%d-%s", messaging.Token(host), os.Getpid(), randomText())
	if err := os.MkdirAll(stateDir, 0o700); err != nil {
		return "", fmt.Errorf("create the worker's state directory: %w", err)
	}
	if err := renameio.WriteFile(path, []byte(name+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("write the worker's name: %w", err)
	}
	return name, nil
}

// randomText returns 8 random hex digits.
func randomText() string {
	var b [4]byte
	rand.Read(b[:]) // never fails: see crypto/rand
	return hex.EncodeToString(b[:])
}
