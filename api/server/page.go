package server

import (
	"encoding/base64"
	"fmt"
)

// defaultPageSize is the size of a page where none is asked for.
const defaultPageSize = 100

// pageSize is the size asked for, which has been validated, or the default.
func pageSize(asked int32) int {
	if asked == 0 {
		return defaultPageSize
	}
	return int(asked)
}

// writeToken makes a page token of the last key of a page: opaque, so that
// nobody counts on what is in it.
func writeToken(last string) string { return base64.RawURLEncoding.EncodeToString([]byte(last)) }

// readToken is the key that writeToken was given.
func readToken(token string) (string, error) {
	last, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return "", badField("page_token", fmt.Errorf("page_token is %q; want the next_page_token of the page before: %w", token, err))
	}
	return string(last), nil
}
