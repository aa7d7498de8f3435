package blackbox

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"html"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// formsOfSecret are the texts in which a secret may stand: as it is, escaped for URLs, JSON and HTML, in hexadecimal, and
// inside something that was put into base64 or base32, wherever it began there.
func formsOfSecret(secret string) map[string]string {
	all := map[string]string{
		"itself": secret, "escaped for a query": url.QueryEscape(secret), "escaped for a path": url.PathEscape(secret),
		"escaped for HTML": html.EscapeString(secret),
		"hex":              hex.EncodeToString([]byte(secret)), "HEX": strings.ToUpper(hex.EncodeToString([]byte(secret))),
	}
	var percent, unicode strings.Builder
	for _, b := range []byte(secret) {
		fmt.Fprintf(&percent, "%%%02X", b)
		fmt.Fprintf(&unicode, `\u%04x`, b)
	}
	all["percent"], all["percent in small letters"] = percent.String(), strings.ToLower(percent.String())
	all["escaped for JSON"] = unicode.String()
	for name, e := range map[string]struct {
		encode func([]byte) string
		in     int // bytes that become whole letters
		bits   int // of a letter
	}{
		"base64":     {base64.RawStdEncoding.EncodeToString, 3, 6},
		"base64 URL": {base64.RawURLEncoding.EncodeToString, 3, 6},
		"base32":     {base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString, 5, 5},
	} {
		for before := range e.in {
			text := e.encode(append(make([]byte, before), secret...))
			from := (before*8 + e.bits - 1) / e.bits    // letters that hold a bit of what is before
			to := ((before+len(secret))*8 - 1) / e.bits // the last letter may hold bits of what is behind
			all[fmt.Sprint(name, " at ", before)] = text[from:to]
		}
	}
	return all
}

// secretsIn says which secrets stand in a text, and how.
func secretsIn(text string, secrets map[string]string) (found []string) {
	for name, secret := range secrets {
		for _, of := range []string{secret, tail(secret)} {
			for how, form := range formsOfSecret(of) {
				if strings.Contains(text, form) {
					found = append(found, name+" as "+how)
				}
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// TestSecretForms: what looks for secrets finds each form, wherever it stands, and nothing where there is nothing.
func TestSecretForms(t *testing.T) {
	t.Parallel()
	const secret = "chr_abcdefghij_Zx9-Kq/7+&<ü>0123456789"
	around := []byte("Basic user:" + secret + ":more of it")
	for i := range 7 {
		b := slices.Concat(make([]byte, i), around)
		for name, text := range map[string]string{
			"base64": base64.StdEncoding.EncodeToString(b), "base64 URL": base64.URLEncoding.EncodeToString(b),
			"base32": base32.StdEncoding.EncodeToString(b), "hex": fmt.Sprintf("%x", b), "HEX": fmt.Sprintf("%X", b), "itself": string(b),
			"query": url.QueryEscape(string(b)), "path": url.PathEscape(string(b)), "HTML": html.EscapeString(string(b)),
		} {
			if len(secretsIn(text, map[string]string{"it": secret})) == 0 {
				t.Errorf("%s, %d bytes before: not found in %s", name, i, text)
			}
		}
	}
	if got := secretsIn(strings.Repeat("chr_abcdefghij_Zx9-Kq", 3), map[string]string{"it": secret}); len(got) != 0 {
		t.Errorf("found where it is not: %q", got)
	}
}
