package auth

import (
	"net/url"
	"strings"
)

// What a request presents.
type presented int

const (
	noCredentials  presented = iota
	badCredentials           // something that cannot be a token: two headers, or Bearer without exactly one word
	oneToken
)

// bearer reads the values of the Authorization header: one header, the scheme Bearer in any case, one token. Another
// scheme counts as no credentials, as RFC 6750, section 3.1 has it.
func bearer(values []string) (token string, p presented) {
	if len(values) == 0 {
		return "", noCredentials
	}
	if len(values) > 1 {
		return "", badCredentials
	}
	scheme, rest, _ := strings.Cut(strings.Trim(values[0], " \t"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", noCredentials
	}
	token = strings.Trim(rest, " ")
	if token == "" || strings.Trim(token, tokenBytes) != "" {
		return "", badCredentials
	}
	return token, oneToken
}

// tokenBytes are what a bearer token is made of: RFC 6750, section 2.1.
const tokenBytes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/="

// tokenInQuery says whether a URL carries a token, whatever it is worth: URLs end in logs and histories. It reads the
// query itself, because url.ParseQuery drops what it does not understand.
func tokenInQuery(raw string) bool {
	for part := range strings.FieldsFuncSeq(raw, func(r rune) bool { return r == '&' || r == ';' }) {
		key, _, _ := strings.Cut(part, "=")
		if plain, err := url.QueryUnescape(key); err == nil {
			key = plain
		}
		if strings.EqualFold(key, "access_token") || strings.EqualFold(key, "token") {
			return true
		}
	}
	return false
}
