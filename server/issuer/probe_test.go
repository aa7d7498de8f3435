package issuer

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"codehand/server/config"
)

// What keeps an issuer from working is said, with what to do.
func TestProbe(t *testing.T) {
	t.Parallel()
	body := func(path string, status int, text string) func(*http.Request) *http.Response {
		return func(r *http.Request) *http.Response {
			if !strings.HasSuffix(r.URL.Path, path) {
				return nil
			}
			return &http.Response{StatusCode: status, Status: http.StatusText(status), Request: r,
				Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader([]byte(text)))}
		}
	}
	for name, c := range map[string]struct {
		change func(*rig, *config.Issuer)
		found  string
		err    string
		fix    string
	}{
		"good":         {func(*rig, *config.Issuer) {}, "3 keys from " + issuerURL + "/keys", "", ""},
		"without":      {func(_ *rig, c *config.Issuer) { c.JWKSURI = issuerURL + "/keys" }, "3 keys", "", ""},
		"down":         {func(r *rig, _ *config.Issuer) { r.down = true }, "", "discovery: ", "whether this machine reaches"},
		"another name": {func(_ *rig, c *config.Issuer) { c.Issuer += "/" }, "", "did not match", `exactly as the document says, "` + issuerURL + `"`},
		"not there":    {func(_ *rig, c *config.Issuer) { c.Issuer += "/x" }, "", "Not Found", "before /.well-known"},
		"in clear": {func(r *rig, _ *config.Issuer) {
			r.answer = body("configuration", 200, `{"issuer":"`+issuerURL+`","jwks_uri":"http://login.example.com/k"}`)
		}, "", "not https", "jwks_uri"},
		"no keys":    {func(r *rig, _ *config.Issuer) { r.answer = body("/keys", 500, "") }, "", "keys: ", "can be read"},
		"empty":      {func(r *rig, _ *config.Issuer) { r.answer = body("/keys", 200, `{"keys":[]}`) }, "", "not a set of keys", "can be read"},
		"no list":    {func(r *rig, _ *config.Issuer) { r.answer = body("/keys", 200, `{"keys":7}`) }, "", "not a set of keys", "can be read"},
		"wrong list": {func(_ *rig, c *config.Issuer) { c.Algorithms = []string{"ES512"} }, "", "none of its keys is for ES512; it has keys for RSA RS256 sig, EC ES256 sig, OKP EdDSA sig", "algorithms"},
	} {
		r := newRig(t)
		of := corp()
		c.change(r, &of)
		found, fix, err := Probe(t.Context(), of, r)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) || !strings.Contains(found, c.found) || !strings.Contains(fix, c.fix) {
			t.Errorf("%s: %q, %q, %v", name, found, fix, err)
		}
	}
}
