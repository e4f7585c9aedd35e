package server

import (
	"encoding/base64"
	"fmt"
)

// defaultPageSize is the size of a page if the request sets none.
const defaultPageSize = 100

// pageSize returns the requested size, which has been validated, or the default.
func pageSize(asked int32) int {
	if asked == 0 {
		return defaultPageSize
	}
	return int(asked)
}

// writeToken encodes the last key of a page as a page token. The token is opaque, so
// that callers do not rely on its content.
func writeToken(last string) string { return base64.RawURLEncoding.EncodeToString([]byte(last)) }

// readToken returns the key in a page token.
func readToken(token string) (string, error) {
	last, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return "", badField("page_token", fmt.Errorf("page_token is %q; want the next_page_token of the previous page: %w", token, err))
	}
	return string(last), nil
}
