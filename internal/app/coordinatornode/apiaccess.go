package coordinatornode

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/pflag"

	"github.com/fantasia-hpo/fantasia/api/oidc"
	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/coordinator/quota"
	"github.com/fantasia-hpo/fantasia/internal/app/access"
	"github.com/fantasia-hpo/fantasia/internal/base/httpserve"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// APIAccess is a coordinator's identity to callers of its API, and the callers it
// accepts. The zero value has no TLS and accepts everybody.
type APIAccess struct {
	// TLS has the coordinator's certificate, and the authorities that sign the other
	// replicas' certificates.
	TLS access.Files
	// ServerName is the name that the other replicas' certificates must have; empty for the
	// host that each advertises.
	ServerName string
	// Tokens is the file of tokens and their permissions (see server.Tokens).
	Tokens string
	// Quotas are those of callers who may change only some studies (see quota.Parse), in place of
	// the usual ones. A line of a file can name others.
	Quotas []string
	// OIDC says whose tokens of OpenID Connect are accepted too.
	OIDC OIDC
	// Insecure lets callers without a token in on an address that other machines reach.
	Insecure bool
	// AllowedHosts are names by which the API may be called, besides localhost, IP
	// addresses and the coordinator's own names, as httpserve.NewHosts takes them.
	AllowedHosts []string
}

// OIDC is an issuer of OpenID Connect whose tokens the API accepts. The zero value is none.
type OIDC struct {
	// Issuer and Audience are those that tokens must name (see oidc.Options).
	Issuer, Audience string
	// Grants is the file of what tokens' claims grant (see server.ClaimGrants).
	Grants string
	// Keys is the URL of the issuer's keys; empty for that in its discovery document.
	Keys string
	// CA is the file of the authorities that sign the issuer's certificate; empty for the
	// system's.
	CA string
}

// verifier returns what accepts the issuer's tokens, and those that next knows.
func (i *OIDC) verifier(next server.Bearers, log *slog.Logger) (server.Bearers, error) {
	if *i == (OIDC{}) {
		return next, nil
	}
	for _, f := range []struct{ flag, value string }{
		{"--oidc-issuer", i.Issuer}, {"--oidc-audience", i.Audience}, {"--oidc-grants", i.Grants},
	} {
		if f.value == "" {
			return nil, fmt.Errorf("%s is not set; want --oidc-issuer, --oidc-audience and --oidc-grants together", f.flag)
		}
	}
	o := oidc.Options{Issuer: i.Issuer, Audience: i.Audience, Keys: i.Keys, Next: next, Logger: log}
	err := oidc.CheckKeys(i.Issuer, i.Keys)
	if err != nil {
		return nil, fmt.Errorf("--oidc-keys: %w", err)
	}
	if o.Grants, err = server.ReadClaimGrants(i.Grants, log); err != nil {
		return nil, fmt.Errorf("--oidc-grants: %w", err)
	}
	if o.Roots, err = (&access.Files{CA: i.CA, Flag: "oidc"}).Roots(); err != nil {
		return nil, err
	}
	v, err := oidc.New(o)
	if err != nil {
		return nil, fmt.Errorf("--oidc-issuer: %w", err)
	}
	return v, nil
}

// Flags adds the flags.
func (a *APIAccess) Flags(f *pflag.FlagSet) {
	f.StringVar(&a.TLS.Cert, "tls-cert", "", "PEM file of the API's certificate; enables TLS")
	f.StringVar(&a.TLS.Key, "tls-key", "", "PEM file of the certificate's key")
	f.StringVar(&a.TLS.CA, "tls-ca", "", "PEM file of the CA certificates for the other replicas (default: the system's)")
	f.StringVar(&a.ServerName, "tls-server-name", "", "`name` in the other replicas' certificates (default: the host in their --advertise)")
	f.StringSliceVar(&a.AllowedHosts, "allowed-hosts", nil, "`names` by which the API is called, besides localhost, IP addresses and this "+
		"machine's name; .name for all below it, * for any")
	f.StringVar(&a.Tokens, "tokens", "", "file of accepted tokens, one a line: NAME SHA256 read|write [PREFIX,…] [QUOTA=BOUND…] (default: "+
		"no token is required)")
	f.StringSliceVar(&a.Quotas, "quotas", nil, "`QUOTA=BOUND` of each line of --tokens and --oidc-grants that names no other (default: "+
		""+quota.Usual().String()+")")
	f.StringVar(&a.OIDC.Issuer, "oidc-issuer", "", "`URL` of an issuer of OpenID Connect whose tokens are accepted too; needs "+
		"--oidc-audience and --oidc-grants")
	f.StringVar(&a.OIDC.Audience, "oidc-audience", "", "`name` that the issuer's tokens for this API have in their audience")
	f.StringVar(&a.OIDC.Grants, "oidc-grants", "", "file of what the issuer's tokens grant, one a line: CLAIM=VALUE read|write [PREFIX,…] "+
		"[QUOTA=BOUND…]")
	f.StringVar(&a.OIDC.Keys, "oidc-keys", "", "`URL` of the issuer's keys (default: as the issuer's discovery document says)")
	f.StringVar(&a.OIDC.CA, "oidc-ca", "", "PEM file of the CA certificates for the issuer (default: the system's)")
	f.BoolVar(&a.Insecure, "insecure", false, "let callers without a token in, though other machines reach --listen")
}

// Open reports whether callers need no token.
func (a *APIAccess) Open() bool { return a.Tokens == "" && a.OIDC.Issuer == "" }

// CheckListen returns an error if the API is open on an address that other machines reach, and nobody has
// said that it may be. An address that cannot be resolved is left to who listens there.
func (a *APIAccess) CheckListen(listen string) error {
	if at, err := net.ResolveTCPAddr("tcp", listen); err == nil && a.Open() {
		return a.CheckAddress(listen, at.IP)
	}
	return nil
}

// CheckAddress is CheckListen of an open API with an address that was resolved.
func (a *APIAccess) CheckAddress(listen string, ip net.IP) error {
	if a.Insecure || ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("--listen is %s, which others reach, and the API requires no token; want an address such as localhost:8090, or "+
		"--tokens or --oidc-issuer, or --insecure to let everybody in", listen)
}

// Guard returns a handler that refuses requests for hosts that are neither allowed nor
// the coordinator's own (the addresses and the machine's name), and requests that
// browsers send for other pages. It answers in the request's protocol.
func (a *APIAccess) Guard(next http.Handler, log *slog.Logger, own ...string) (http.Handler, error) {
	hosts, err := httpserve.NewHosts(a.AllowedHosts...)
	if err != nil {
		return nil, fmt.Errorf("--allowed-hosts: %w", err)
	}
	for _, address := range own {
		hosts.Add(address)
	}
	if machine, err := os.Hostname(); err == nil {
		hosts.Add(machine)
	}
	writer, refused := connect.NewErrorWriter(), telemetry.NewRefusals(log, "refused a request", time.Now)
	return hosts.Guard(next, "--allowed-hosts", func(w http.ResponseWriter, r *http.Request, status int, err error) {
		refused.Log(r, err)
		if r.Method != http.MethodPost || !writer.IsSupported(r) {
			http.Error(w, err.Error(), status)
			return
		}
		if err := writer.Write(w, r, connect.NewError(connect.CodePermissionDenied, err)); err != nil {
			log.Debug("the caller is gone", telemetry.LogError, err)
		}
	}), nil
}

// Secure reports whether the API uses TLS.
func (a *APIAccess) Secure() bool { return a.TLS.Cert != "" }

// Options checks every file and completes the API's options.
func (a *APIAccess) Options(o *server.Options, log *slog.Logger) error {
	a.TLS.Flag = "tls"
	if err := a.TLS.Check(); err != nil {
		return err
	}
	if a.TLS.CA != "" || a.ServerName != "" {
		roots, err := a.TLS.Roots()
		if err != nil {
			return err
		}
		o.ForwardTLS = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: a.ServerName}
	}
	limits, err := quota.Parse(a.Quotas)
	if err != nil {
		return fmt.Errorf("--quotas: %w", err)
	}
	var tokens server.Bearers
	if a.Tokens != "" {
		known, err := server.ReadTokens(a.Tokens, log)
		if err != nil {
			return fmt.Errorf("--tokens: %w", err)
		}
		tokens = known
	}
	tokens, err = a.OIDC.verifier(tokens, log)
	if err != nil {
		return err
	}
	if tokens != nil && !a.Secure() {
		log.Warn("tokens are sent unencrypted unless a proxy adds TLS", "flag", "--tls-cert")
	}
	o.Tokens, o.Quotas = tokens, server.NewQuotas(tokens, limits, time.Now)
	return nil
}

// Listener returns the listener, with TLS if the API uses it. The certificate is read
// again for each connection.
func (a *APIAccess) Listener(l net.Listener) net.Listener {
	if !a.Secure() {
		return l
	}
	return tls.NewListener(l, &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			own, err := a.TLS.Own()
			return &own, err
		},
	})
}
