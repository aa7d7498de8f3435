package issuer

import (
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"codehand/server/config"
)

// Every token that is not exactly what was asked for gets the same answer.
func TestBadTokens(t *testing.T) {
	const rs = `{"alg":"RS256","kid":"rsa"}`
	der, err := x509.MarshalPKIXPublicKey(testKeys()["rsa"].Public())
	if err != nil {
		t.Fatal(err)
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	claims := encoded(t, good(nil))
	in := func(d time.Duration) int64 { return start.Add(d).Unix() }
	whole := token(t, nil)
	parts := strings.Split(whole, ".")
	strict := corp()
	strict.Types = []string{"at+jwt"}
	mail := corp()
	mail.PrincipalClaim = "email"
	client := corp()
	client.AudienceClaim, client.Audience = "client_id", []string{"app"}
	for name, c := range map[string]struct {
		text  string
		of    *config.Issuer // nil: corp
		wants string         // in the reason
	}{
		"alg none":                    {part(`{"alg":"none"}`) + "." + part(claims) + ".", nil, "algorithm"},
		"alg None":                    {part(`{"alg":"None","kid":"rsa"}`) + "." + part(claims) + ".", nil, "algorithm"},
		"alg none with a signature":   {part(`{"alg":"none","kid":"rsa"}`) + "." + part(claims) + "." + parts[2], nil, "algorithm"},
		"no alg":                      {signed(t, `{"kid":"rsa"}`, claims, "rsa"), nil, "algorithm"},
		"alg that is a list":          {signed(t, `{"alg":["RS256"],"kid":"rsa"}`, claims, "rsa"), nil, "algorithm"},
		"alg in small letters":        {signed(t, `{"alg":"rs256","kid":"rsa"}`, claims, "rsa"), nil, "algorithm"},
		"HS256 with the public key":   {shared(`{"alg":"HS256","kid":"rsa"}`, claims, public), nil, "algorithm"},
		"HS256 with its DER":          {shared(`{"alg":"HS256","kid":"rsa"}`, claims, der), nil, "algorithm"},
		"RS256 with the public key":   {shared(rs, claims, public), nil, "signature"},
		"RS384, not listed":           {oidctest.SignIDToken(testKeys()["rsa"], "rsa", "RS384", claims), nil, "algorithm"},
		"ES256 with the kid of RSA":   {oidctest.SignIDToken(testKeys()["ec"], "rsa", "ES256", claims), nil, "signature"},
		"a stranger's key, our kid":   {oidctest.SignIDToken(testKeys()["stranger"], "rsa", "RS256", claims), nil, "signature"},
		"another issuer's key":        {oidctest.SignIDToken(testKeys()["rsa2"], "rsa2", "RS256", claims), nil, "signature"},
		"no kid, a stranger's key":    {signed(t, `{"alg":"RS256"}`, claims, "stranger"), nil, "signature"},
		"kid that is a number":        {signed(t, `{"alg":"RS256","kid":1}`, claims, "rsa"), nil, "kid"},
		"kid of 300 bytes":            {signed(t, `{"alg":"RS256","kid":"`+strings.Repeat("k", 300)+`"}`, claims, "rsa"), nil, "too long"},
		"its key in the header":       {signed(t, `{"alg":"RS256","kid":"x","jwk":{"kty":"RSA","n":"AQAB","e":"AQAB"}}`, claims, "stranger"), nil, "signature"},
		"crit":                        {signed(t, `{"alg":"RS256","kid":"rsa","crit":["exp"]}`, claims, "rsa"), nil, "extension"},
		"b64 false":                   {signed(t, `{"alg":"RS256","kid":"rsa","crit":["b64"],"b64":false}`, claims, "rsa"), nil, "extension"},
		"doubled alg":                 {signed(t, `{"alg":"RS256","alg":"none","kid":"rsa"}`, claims, "rsa"), nil, "twice"},
		"ALG":                         {signed(t, `{"alg":"RS256","ALG":"none","kid":"rsa"}`, claims, "rsa"), nil, "another case"},
		"typ of another kind":         {signed(t, `{"alg":"RS256","kid":"rsa","typ":"dpop+jwt"}`, claims, "rsa"), nil, "typ"},
		"typ logout":                  {signed(t, `{"alg":"RS256","kid":"rsa","typ":"logout+jwt"}`, claims, "rsa"), nil, "typ"},
		"typ that is a number":        {signed(t, `{"alg":"RS256","kid":"rsa","typ":7}`, claims, "rsa"), nil, "typ"},
		"no typ where at+jwt must be": {whole, &strict, "typ"},
		"typ jwt where at+jwt is":     {signed(t, `{"alg":"RS256","kid":"rsa","typ":"JWT"}`, claims, "rsa"), &strict, "typ"},
		"one dot":                     {parts[0] + "." + parts[1], nil, "parts"},
		"four parts":                  {whole + ".x", nil, "parts"},
		"five parts, as encrypted":    {whole + ".x.y", nil, "parts"},
		"only dots":                   {"..", nil, "JSON"},
		"larger than 16 KiB":          {token(t, map[string]any{"x": strings.Repeat("x", maxToken)}), nil, "larger"},
		"a header that is no JSON":    {part("alg") + "." + parts[1] + "." + parts[2], nil, "JSON"},
		"a header that is a list":     {part("[]") + "." + parts[1] + "." + parts[2], nil, "JSON"},
		"claims that are null":        {signed(t, rs, "null", "rsa"), nil, "JSON"},
		"text after the claims":       {signed(t, rs, claims+"{}", "rsa"), nil, "JSON"},
		"claims in standard base64":   {parts[0] + "." + parts[1] + "=." + parts[2], nil, "base64"},
		"changed claims":              {parts[0] + "." + part(encoded(t, good(map[string]any{"sub": "admin"}))) + "." + parts[2], nil, "signature"},
		"no signature":                {parts[0] + "." + parts[1] + ".", nil, "signature"},
		"doubled aud":                 {signed(t, rs, strings.Replace(claims, `"aud"`, `"aud":"x","aud"`, 1), "rsa"), nil, "twice"},
		"doubled name further down":   {signed(t, rs, strings.Replace(claims, `{`, `{"a":[{"b":1,"b":2}],`, 1), "rsa"), nil, "twice"},
		"doubled by an escape":        {signed(t, rs, strings.Replace(claims, `{`, `{"\u0073ub":"admin",`, 1), "rsa"), nil, "twice"},
		"ISS besides iss":             {signed(t, rs, strings.Replace(claims, `{`, `{"ISS":"`+otherURL+`",`, 1), "rsa"), nil, "another case"},
		"nested too deeply":           {signed(t, rs, strings.Replace(claims, `{`, `{"a":`+strings.Repeat("[", 99)+strings.Repeat("]", 99)+`,`, 1), "rsa"), nil, "deeply"},
		"no iss":                      {token(t, map[string]any{"iss": nil}), nil, "issuer"},
		"iss with a slash":            {token(t, map[string]any{"iss": issuerURL + "/"}), nil, "issuer"},
		"iss of nobody":               {token(t, map[string]any{"iss": "https://evil.example.com"}), nil, "issuer"},
		"iss that is a list":          {token(t, map[string]any{"iss": []string{issuerURL}}), nil, "issuer"},
		"expired":                     {token(t, map[string]any{"exp": in(-time.Second)}), nil, "expiry"},
		"expires now":                 {token(t, map[string]any{"exp": in(0)}), nil, "expired"},
		"no exp":                      {token(t, map[string]any{"exp": nil}), nil, "expiry"},
		"exp that is a text":          {token(t, map[string]any{"exp": "9999999999"}), nil, ""},
		"exp null":                    {signed(t, rs, strings.Replace(encoded(t, good(map[string]any{"exp": nil})), `{`, `{"exp":null,`, 1), "rsa"), nil, "expiry"},
		"exp below 0":                 {token(t, map[string]any{"exp": -1}), nil, "expiry"},
		"exp without end":             {signed(t, rs, strings.Replace(encoded(t, good(map[string]any{"exp": nil})), `{`, `{"exp":1e300,`, 1), "rsa"), nil, ""},
		"nbf ahead":                   {token(t, map[string]any{"nbf": in(61 * time.Second)}), nil, "nbf"},
		"nbf that is a text":          {token(t, map[string]any{"nbf": "soon"}), nil, ""},
		"iat ahead":                   {token(t, map[string]any{"iat": in(61 * time.Second)}), nil, "iat"},
		"iat ahead by a year":         {token(t, map[string]any{"iat": in(365 * 24 * time.Hour)}), nil, "iat"},
		"no aud":                      {token(t, map[string]any{"aud": nil}), nil, "audience"},
		"aud of another service":      {token(t, map[string]any{"aud": "https://wiki.example.com"}), nil, "audience"},
		"aud that begins like ours":   {token(t, map[string]any{"aud": us + "/x"}), nil, "audience"},
		"aud in capitals":             {token(t, map[string]any{"aud": strings.ToUpper(us)}), nil, "audience"},
		"an empty list of aud":        {token(t, map[string]any{"aud": []string{}}), nil, "audience"},
		"aud with null":               {signed(t, rs, strings.Replace(encoded(t, good(map[string]any{"aud": nil})), `{`, `{"aud":[null,"`+us+`"],`, 1), "rsa"), nil, ""},
		"aud that is an object":       {token(t, map[string]any{"aud": map[string]any{us: true}}), nil, ""},
		"client_id of another app":    {token(t, map[string]any{"client_id": "other"}), &client, "audience"},
		"aud where client_id counts":  {token(t, nil), &client, "audience"},
		"an ID token by typ":          {token(t, map[string]any{"typ": "ID"}), nil, "ID token"},
		"an ID token by its nonce":    {token(t, map[string]any{"nonce": "x"}), nil, "ID token"},
		"an ID token, empty nonce":    {token(t, map[string]any{"nonce": ""}), nil, "ID token"},
		"an ID token by at_hash":      {token(t, map[string]any{"at_hash": "x"}), nil, "ID token"},
		"no sub":                      {token(t, map[string]any{"sub": nil}), nil, "sub"},
		"an empty sub":                {token(t, map[string]any{"sub": ""}), nil, "sub"},
		"sub that is a number":        {token(t, map[string]any{"sub": 7}), nil, ""},
		"sub with a line break":       {token(t, map[string]any{"sub": "a\nb"}), nil, "printable"},
		"a long sub":                  {token(t, map[string]any{"sub": strings.Repeat("x", 300)}), nil, "bytes"},
		"an address without a word":   {token(t, map[string]any{"email": "a@example.com"}), &mail, "verified"},
		"an address not verified":     {token(t, map[string]any{"email": "a@example.com", "email_verified": false}), &mail, "verified"},
		"verified as a text":          {token(t, map[string]any{"email": "a@example.com", "email_verified": "true"}), &mail, "verified"},
		"claims from elsewhere":       {token(t, map[string]any{"_claim_names": map[string]string{"groups": "src"}}), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			of := corp()
			if c.of != nil {
				of = *c.of
			}
			r := newRig(t, of)
			for range 2 { // a second time from what is remembered
				if err := r.refused(c.text, http.StatusUnauthorized); !strings.Contains(err.Reason, c.wants) && !strings.Contains(err.Reason, "key is not known") {
					t.Errorf("reason %q, want %q", err.Reason, c.wants)
				}
			}
		})
	}
}

// What has no dot is not for this source: static tokens and ours are asked for next.
func TestOpaque(t *testing.T) {
	r := newRig(t)
	for _, text := range []string{"", "opaque", "chd_aaaaaaaaaa_" + strings.Repeat("x", 43), "cha_x"} {
		if f, ok, err := r.s.Find(text, start); ok || err != nil || f.ID != "" {
			t.Errorf("%q: %v %v %v", text, f, ok, err)
		}
	}
}
