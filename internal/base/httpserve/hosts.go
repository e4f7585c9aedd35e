package httpserve

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Hosts are the names by which a server may be called. Checking them protects a server
// that asks for no password from web pages: a page can make its own name resolve to the
// server's address (DNS rebinding), and a browser then takes the server for the page's
// own, but it still sends the page's name.
//
// Accepted without being listed are localhost and names below it, and every IP address:
// a page that was loaded from an address cannot give this address to another machine.
type Hosts struct {
	any      bool
	names    []string
	suffixes []string
}

// NewHosts returns the hosts of a list: a name, .name for all names below it, or * for
// every name. Empty entries are ignored.
func NewHosts(names ...string) (*Hosts, error) {
	h := &Hosts{}
	for _, name := range names {
		clean := strings.ToLower(strings.TrimSuffix(name, "."))
		switch {
		case clean == "":
		case clean == "*":
			h.any = true
		case strings.ContainsAny(clean, "/:*@ "):
			return nil, fmt.Errorf("host %q: want a name without scheme or port, .name for all names below it, or *", name)
		case strings.HasPrefix(clean, "."):
			h.suffixes = append(h.suffixes, clean)
		default:
			h.names = append(h.names, clean)
		}
	}
	slices.Sort(h.names)
	h.names = slices.Compact(h.names)
	return h, nil
}

// Add adds the host of an address, host:port or a URL. Addresses without a host add
// nothing.
func (h *Hosts) Add(address string) {
	_, rest, url := strings.Cut(address, "://")
	if url {
		address, _, _ = strings.Cut(rest, "/")
	}
	if host, _, err := net.SplitHostPort(address); err == nil {
		address = host
	}
	if address = strings.ToLower(address); address != "" && !slices.Contains(h.names, address) {
		h.names = append(h.names, address)
	}
}

// Allow reports whether a request's Host is accepted. Its port does not matter. A
// request without a host does not come from a browser, so it is accepted.
func (h *Hosts) Allow(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if h.any || host == "" || host == "localhost" || strings.HasSuffix(host, ".localhost") || slices.Contains(h.names, host) {
		return true
	}
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return true
	}
	return slices.ContainsFunc(h.suffixes, func(suffix string) bool { return strings.HasSuffix(host, suffix) })
}

// String lists what is accepted.
func (h *Hosts) String() string {
	accepted := []string{"localhost", "IP addresses"}
	for _, name := range append(slices.Clone(h.names), h.suffixes...) {
		if _, err := netip.ParseAddr(name); err != nil && name != "localhost" {
			accepted = append(accepted, name)
		}
	}
	return strings.Join(accepted, ", ")
}

// errCrossOrigin is what a page of another origin is told.
var errCrossOrigin = errors.New("cross-origin requests of browsers are refused")

// Guard passes on requests for an accepted host, except changes that a browser sends for
// a page of another origin. It passes others to refuse, with a status and an error that
// names flag, the flag that adds hosts; "" if there is none.
func (h *Hosts) Guard(next http.Handler, flag string, refuse func(w http.ResponseWriter, r *http.Request, status int,
	err error)) http.Handler {
	origin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !h.Allow(r.Host) {
			more := ""
			if flag != "" {
				more = "; add others with " + flag
			}
			refuse(w, r, http.StatusMisdirectedRequest, fmt.Errorf("unknown host %q: this server accepts requests for %s%s", r.Host, h, more))
			return
		}
		if err := origin.Check(r); err != nil {
			refuse(w, r, http.StatusForbidden, fmt.Errorf("%w (origin %q)", errCrossOrigin, r.Header.Get("Origin")))
			return
		}
		next.ServeHTTP(w, r)
	})
}
