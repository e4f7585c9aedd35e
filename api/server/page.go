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

// scanSize is how many studies or trials are read at a time if a filter may drop some.
const scanSize = 500

// scan returns up to limit of those that read returns after a key, without those that the
// filter does not keep.
func scan[T, K any](after K, limit int, read func(after K, limit int) ([]T, error), key func(T) K, keep func(T) bool) ([]T, error) {
	var kept []T
	for {
		scanned, err := read(after, scanSize)
		if err != nil {
			return nil, err
		}
		for _, one := range scanned {
			if keep(one) {
				kept = append(kept, one)
			}
		}
		if len(kept) >= limit {
			return kept[:limit], nil
		}
		if len(scanned) < scanSize {
			return kept, nil
		}
		after = key(scanned[len(scanned)-1])
	}
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
