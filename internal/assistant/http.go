package assistant

import (
	"context"
	"net/http"

	"connectrpc.com/connect"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/internal/exchange/fetch"
)

// Path is where a server is served over HTTP.
const Path = "/mcp"

// Handler serves clients over streamable HTTP, a request at a time. A caller's token is sent on
// to the API, which says what the caller may do. If tokens are required, the handler refuses
// callers whose token the API does not know.
func (s *Server) Handler(tokens bool) http.Handler {
	inner := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.mcp }, &mcp.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, Logger: s.o.Logger, MaxRequestBodyBytes: maxMessage,
		DisableLocalhostProtection: true, // the caller of Handler checks hosts
	})
	mux := http.NewServeMux()
	mux.Handle(Path, s.authorized(inner, tokens))
	return mux
}

// authorized passes on the requests of those whose token the API knows.
func (s *Server) authorized(next http.Handler, tokens bool) http.Handler {
	if !tokens {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := tokenOf(r.Header.Get("Authorization"))
		if token == "" {
			refuse(w, http.StatusUnauthorized, "a token is required: send the header Authorization: Bearer TOKEN")
			return
		}
		err := s.known(WithBearer(r.Context(), token))
		switch {
		case connect.CodeOf(err) == connect.CodeUnauthenticated:
			refuse(w, http.StatusUnauthorized, s.explain(err).Error())
		case err != nil:
			refuse(w, http.StatusServiceUnavailable, s.explain(err).Error())
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// refuse answers a request that has no valid token.
func refuse(w http.ResponseWriter, status int, text string) {
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	http.Error(w, text, status)
}

// known asks the API whether it accepts the caller of a context.
func (s *Server) known(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	src, err := s.o.Place.Main(ctx)
	if err != nil {
		return err
	}
	defer src.Close()
	_, err = fetch.Send(ctx, src.Service, fetch.Service.ListStudies, &fantasiav1.ListStudiesRequest{PageSize: 1})
	return err
}

// Open reports whether the API accepts callers without a token.
func (s *Server) Open(ctx context.Context) (bool, error) {
	err := s.known(WithBearer(ctx, ""))
	if connect.CodeOf(err) == connect.CodeUnauthenticated {
		return false, nil
	}
	return err == nil, err
}
