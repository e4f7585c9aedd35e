package messaging_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fantasia-hpo/fantasia/messaging"
)

func FuzzAssignment(f *testing.F) {
	fuzz(f, func() messaging.Envelope { return new(messaging.Assignment) }, assignment())
}

func FuzzClaim(f *testing.F) {
	fuzz(f, func() messaging.Envelope { return new(messaging.Claim) }, claim())
}

func FuzzResult(f *testing.F) {
	fuzz(f, func() messaging.Envelope { return new(messaging.Result) }, result())
}

func FuzzMeasurement(f *testing.F) {
	fuzz(f, func() messaging.Envelope { return new(messaging.Measurement) }, measurement())
}

func FuzzHeartbeat(f *testing.F) {
	fuzz(f, func() messaging.Envelope { return new(messaging.Heartbeat) }, heartbeat())
}

func FuzzControl(f *testing.F) {
	fuzz(f, func() messaging.Envelope { return new(messaging.Control) }, control())
}

// fuzz checks that the decoder never panics, and that whatever it accepts is valid, can
// be encoded, and decodes to an equal value.
func fuzz(f *testing.F, zero func() messaging.Envelope, seed messaging.Envelope) {
	data, err := messaging.Encode(seed)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"version":1,"study":"s","trial":1,"attempt":1,"nonce":"n","worker":"w","pool":"p"}`))
	f.Add([]byte(`{"version":2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		first := zero()
		if messaging.Decode(data, first) != nil {
			return
		}
		again, err := messaging.Encode(first)
		if errors.Is(err, messaging.ErrTooLarge) && len(data) > messaging.MaxEnvelope/8 {
			return // escapes can make it longer
		}
		if err != nil {
			t.Fatalf("accepted %q, and cannot encode it: %v", data, err)
		}
		second := zero()
		if err := messaging.Decode(again, second); err != nil {
			t.Fatalf("accepted %q, and not what it is encoded as, %q: %v", data, again, err)
		}
		if diff := cmp.Diff(first, second, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%q changes on the way (-first +second):\n%s", data, diff)
		}
	})
}
