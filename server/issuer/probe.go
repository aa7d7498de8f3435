package issuer

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"codehand/server/config"
)

// Probe asks an issuer for what serve needs of it, the discovery document and the keys, and says what it found. With an
// error, fix says what to do about it. A nil over uses the network.
func Probe(ctx context.Context, c config.Issuer, over http.RoundTripper) (found, fix string, err error) {
	client := newClient(over)
	uri := c.JWKSURI
	if uri == "" {
		if uri, err = discover(ctx, c.Issuer, client); err != nil {
			return "", discoveryFix(err), fmt.Errorf("discovery: %w", err)
		}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, uri, nil)
	if err != nil {
		return "", "fix jwks_uri", err
	}
	body, _, err := newKeys(uri, client, time.Now).fetch(r)
	if err != nil {
		return "", "see whether " + uri + " can be read from this machine", fmt.Errorf("keys: %w", err)
	}
	n, others, err := usable(body, c.Algorithms)
	if err != nil {
		return "", "see what " + uri + " answers", err
	}
	if n == 0 {
		return "", "add the algorithm with which it signs to algorithms, if it is not a shared secret",
			fmt.Errorf("none of its keys is for %s; it has keys for %s", strings.Join(c.Algorithms, ", "),
				strings.Join(others, ", "))
	}
	return fmt.Sprintf("%s: %d keys from %s", c.Issuer, n, uri), "", nil
}

// discoveryFix says what to do about an error of discovery.
func discoveryFix(err error) string {
	if bad, ok := errors.AsType[*oidc.IssuerMismatchError](err); ok {
		return fmt.Sprintf("write issuer exactly as the document says, %q, if that is the issuer that you mean",
			bad.Discovered[:min(len(bad.Discovered), maxCause)])
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "add the authority of its certificate to this machine, or name the file in SSL_CERT_FILE"
	}
	switch text := err.Error(); {
	case strings.Contains(text, "404"):
		return "issuer is the part before /.well-known/openid-configuration; without such a document set jwks_uri"
	case strings.Contains(text, "jwks_uri"), strings.Contains(text, "not https"):
		return "set jwks_uri to the https address of its keys"
	}
	return "see whether this machine reaches the issuer, and whether a proxy stands between (HTTPS_PROXY)"
}

// usable counts the keys of a set that may have signed with one of the algorithms, and says what the others are for.
func usable(body []byte, algorithms []string) (n int, others []string, err error) {
	var set struct {
		Keys []struct {
			Type      string `json:"kty"`
			Algorithm string `json:"alg"`
			Use       string `json:"use"`
		} `json:"keys"`
	}
	if err := json.Unmarshal(body, &set); err != nil {
		return 0, nil, errors.New("its keys are not a set of keys")
	}
	kinds := map[string]string{"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
	for _, k := range set.Keys {
		fits := slices.ContainsFunc(algorithms, func(a string) bool {
			return kinds[a[:2]] == k.Type && (k.Algorithm == "" || k.Algorithm == a)
		})
		if fits && k.Use != "enc" {
			n++
			continue
		}
		if other := strings.TrimSpace(k.Type + " " + k.Algorithm + " " + k.Use); !slices.Contains(others, other) {
			others = append(others, other)
		}
	}
	return n, others, nil
}
