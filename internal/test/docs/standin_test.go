package docs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// The pages call curl and openssl. On a machine without one of them, the tests' own program takes
// its place, so that `make test` needs neither. It does what the pages ask for, and refuses every
// other flag. TestPython runs the pages with the real programs.
var standIns = map[string]func(args []string) error{"curl": curl, "openssl": openssl}

func TestMain(m *testing.M) {
	name := filepath.Base(os.Args[0])
	run, ok := standIns[name]
	if !ok {
		os.Exit(m.Run())
	}
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		os.Exit(1)
	}
}

// linkStandIns gives the tests' program the names of the programs that are missing.
func linkStandIns(t *testing.T, dir string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name := range standIns {
		if _, err := exec.LookPath(name); errors.Is(err, exec.ErrNotFound) {
			t.Logf("%s is not installed: the test stands in for it", name)
			if err := os.Symlink(self, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// curl sends one request, and writes the answer's body.
func curl(args []string) error {
	flags := pflag.NewFlagSet("curl", pflag.ContinueOnError)
	fail := flags.BoolP("fail", "f", false, "")
	flags.BoolP("silent", "s", false, "")
	flags.BoolP("show-error", "S", false, "")
	headers := flags.StringArrayP("header", "H", nil, "")
	data := flags.StringP("data", "d", "", "")
	after := flags.StringP("write-out", "w", "", "")
	retries := flags.Int("retry", 0, "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return fmt.Errorf("got the addresses %q, want one", flags.Args())
	}
	for wait := time.Second; ; wait *= 2 {
		resp, err := request(flags.Arg(0), *data, *headers)
		if err != nil {
			return err
		}
		passing := []int{http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
			http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}
		if *retries > 0 && slices.Contains(passing, resp.StatusCode) {
			*retries--
			_ = resp.Body.Close()
			time.Sleep(wait) // as long as curl does
			continue
		}
		defer func() { _ = resp.Body.Close() }()
		if *fail && resp.StatusCode >= http.StatusBadRequest {
			return errors.New("the server answers " + resp.Status)
		}
		_, err = io.Copy(os.Stdout, resp.Body)
		fmt.Print(strings.ReplaceAll(*after, `\n`, "\n"))
		return err
	}
}

func request(url, data string, headers []string) (*http.Response, error) {
	method := http.MethodGet
	if data != "" {
		method = http.MethodPost
	}
	req, err := http.NewRequest(method, url, strings.NewReader(data))
	if err != nil {
		return nil, err
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ":")
		req.Header.Set(name, strings.TrimSpace(value))
	}
	return http.DefaultClient.Do(req)
}

// openssl draws random numbers, hashes what it reads, and makes a certificate that signs itself.
func openssl(args []string) error {
	command := strings.Join(args[:min(2, len(args))], " ")
	switch {
	case command == "rand -hex" && len(args) == 3:
		n, err := strconv.Atoi(args[2])
		if err != nil {
			return err
		}
		secret := make([]byte, n)
		_, _ = rand.Read(secret) // it never fails
		fmt.Println(hex.EncodeToString(secret))
		return nil
	case strings.Join(args, " ") == "dgst -sha256 -r":
		hash := sha256.New()
		if _, err := io.Copy(hash, os.Stdin); err != nil {
			return err
		}
		fmt.Printf("%x *stdin\n", hash.Sum(nil))
		return nil
	case command == "req -x509":
		return certify(args[2:])
	}
	return fmt.Errorf("the stand-in does not know %q", args)
}

func certify(args []string) error {
	flags := flag.NewFlagSet("openssl req -x509", flag.ContinueOnError)
	kind, option := flags.String("newkey", "", ""), flags.String("pkeyopt", "", "")
	flags.Bool("nodes", false, "")
	days, subject := flags.Int("days", 30, ""), flags.String("subj", "", "")
	extension := flags.String("addext", "", "")
	keyFile, certFile := flags.String("keyout", "", ""), flags.String("out", "", "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	name, named := strings.CutPrefix(*subject, "/CN=")
	host, hosted := strings.CutPrefix(*extension, "subjectAltName=DNS:")
	if *kind != "ec" || *option != "ec_paramgen_curve:prime256v1" || !named || !hosted {
		return fmt.Errorf("the stand-in does not know %q", args)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{host},
		NotBefore: now, NotAfter: now.AddDate(0, 0, *days), IsCA: true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(*keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600),
		os.WriteFile(*certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o600))
}
