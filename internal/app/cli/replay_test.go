package cli

import (
	"context"
	"errors"
	"testing"

	"github.com/fantasia-hpo/fantasia/coordinator/ledger"
)

// What goes wrong at the end of reading from etcd is told, too.
func TestReadStoreTellsOfItsEnd(t *testing.T) {
	client, err := ledger.Connect([]string{"http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	broken := errors.New("broken")
	done := func() error { return errors.Join(client.Close(), broken) }
	if _, err := readStore(ctx, client, done, "digits"); !errors.Is(err, context.Canceled) || !errors.Is(err, broken) {
		t.Errorf("%v, want both errors", err)
	}
}
