package server

import "context"

// WithGrant returns a context whose requests to a restricted backend have a grant.
func WithGrant(ctx context.Context, g Grant) context.Context {
	return context.WithValue(ctx, grantKey{}, g)
}

// Restrict returns a backend that shows and changes only the studies that the grant of
// the request's context covers (see WithGrant). For all others, and without a grant, its
// methods return ErrNotFound.
func Restrict(b Backend) Backend { return authorized{b} }
