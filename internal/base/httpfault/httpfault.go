// Package httpfault tells failures of HTTP requests that last from those that may be over when the request is sent again.
package httpfault

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
)

// Lasting returns the error of a request with advice if waiting cannot help: the URL's scheme is not what the server
// speaks, the TLS handshake is refused, or the address or a header is invalid. It returns nil if waiting may help.
func Lasting(err error) error {
	_, noTLS := errors.AsType[tls.RecordHeaderError](err)
	_, alert := errors.AsType[tls.AlertError](err)
	_, address := errors.AsType[*net.AddrError](err)
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	text := ""
	if err != nil {
		text = err.Error()
	}
	switch {
	case errors.Is(err, http.ErrSchemeMismatch) || noTLS:
		return fmt.Errorf("%w; want http:// in its URL, or a server with TLS", err)
	case strings.Contains(text, "malformed HTTP"): // net/http has only texts for this and for headers
		return fmt.Errorf("%w; the server does not speak HTTP there: want https:// in its URL if it uses TLS", err)
	case alert, address, certificate, strings.Contains(text, "invalid header field"), strings.Contains(text, "unsupported protocol scheme"):
		return err
	}
	return nil
}
