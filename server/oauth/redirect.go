package oauth

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"codehand/server/clients"
)

// Limits of redirect URIs.
const (
	maxRedirect  = 1024 // bytes
	maxRedirects = 16   // of a client
)

// isAppScheme says whether a scheme, in lower case, is one that an app has for itself. Without a dot it is one that a
// known client has. Any other is refused: a system opens its own programs by such names (search-ms, callto, shell,
// help), and no list of the dangerous ones would be whole. What has a dot is a domain name that its owner reversed, as
// RFC 8252, section 7.1, wants it.
func isAppScheme(scheme string) bool {
	first, rest, dotted := strings.Cut(scheme, ".")
	if !dotted {
		return clients.IsScheme(scheme)
	}
	// Registered schemes with a dot (z39.50r, iris.beep, soap.beep, ms-settings.x) are no domain names.
	return strings.Trim(first, "abcdefghijklmnopqrstuvwxyz") == "" && first != "" && !strings.HasPrefix(rest, "beep") &&
		!strings.HasPrefix(rest, "xpc") && !slices.Contains(strings.Split(rest, "."), "")
}

// answerKeys are the parameters of an answer, which a redirect URI must not have already.
var answerKeys = []string{"code", "state", "iss", "error", "error_description", "error_uri"}

// checkRedirect refuses what cannot be the redirect URI of a client: it is https, http to this machine's loopback, or
// an app's own scheme; without fragment, user name, wildcards, white space and parameters of an answer.
func checkRedirect(text string) error {
	if text == "" || len(text) > maxRedirect {
		return fmt.Errorf("a redirect URI has 1 to %d bytes", maxRedirect)
	}
	for _, r := range text {
		if r <= ' ' || r > '~' || strings.ContainsRune(`*\"<>^{|}`+"`", r) {
			return errors.New("a redirect URI has a character that URIs do not have, or a wildcard")
		}
	}
	if strings.Contains(text, "#") {
		return errors.New("a redirect URI must not have a fragment")
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" {
		return errors.New("a redirect URI must be absolute")
	}
	if !strings.HasPrefix(text, u.Scheme+":") { // url.Parse lowers it
		return errors.New("the scheme of a redirect URI must be in lower case")
	}
	if u.User != nil {
		return errors.New("a redirect URI must not have a user name")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return errors.New("the query of a redirect URI cannot be read")
	}
	for key := range query {
		if slices.Contains(answerKeys, strings.ToLower(key)) {
			return fmt.Errorf("a redirect URI must not have the parameter %s", strings.ToLower(key))
		}
	}
	switch u.Scheme {
	case "https":
		if u.Hostname() == "" || u.Opaque != "" || strings.HasSuffix(u.Host, ":") {
			return errors.New("a redirect URI with https needs a host")
		}
	case "http":
		if u.Opaque != "" || !isLoopbackName(u.Hostname()) || strings.HasSuffix(u.Host, ":") {
			return errors.New("a redirect URI with http must lead to localhost, 127.0.0.1 or [::1]")
		}
	default:
		if !isAppScheme(u.Scheme) {
			return errors.New("the scheme of a redirect URI must be https, http to this machine, or that of an app: " +
				"a reversed domain name such as com.example.app, or one that is known here, such as cursor or vscode")
		}
	}
	return nil
}

// isLoopbackName takes the names of RFC 8252, and localhost, which clients use.
func isLoopbackName(host string) bool {
	return host == "localhost" || host == "127.0.0.1" || host == "::1"
}

// redirectOf returns the redirect URI of a request: asked for, and one of the client's. Only the port of a loopback URI
// is free. Without asked the client must have exactly one.
func redirectOf(registered []string, asked string) (string, bool) {
	if asked == "" {
		if len(registered) != 1 {
			return "", false
		}
		return registered[0], true
	}
	if checkRedirect(asked) != nil {
		return "", false
	}
	bare, loopback := withoutPort(asked)
	for _, r := range registered {
		if r == asked {
			return asked, true
		}
		if other, ok := withoutPort(r); ok && loopback && other == bare {
			return asked, true
		}
	}
	return "", false
}

// withoutPort returns a loopback URI without its port, byte for byte otherwise.
func withoutPort(text string) (bare string, loopback bool) {
	rest, ok := strings.CutPrefix(text, "http://")
	if !ok {
		return "", false
	}
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	for _, host := range [...]string{"localhost", "127.0.0.1", "[::1]"} {
		port, found := strings.CutPrefix(rest[:end], host)
		if !found {
			continue
		}
		digits, given := strings.CutPrefix(port, ":")
		if port == "" || given && digits != "" && len(digits) <= 5 && strings.Trim(digits, "0123456789") == "" {
			return host + rest[end:], true
		}
	}
	return "", false
}

// whereTo says of a checked redirect URI what a person should know.
func whereTo(text string) (host string, loopback bool) {
	u, err := url.Parse(text)
	if err != nil {
		return "", false
	}
	switch u.Scheme {
	case "http":
		return "", true
	case "https":
		return strings.ToLower(u.Host), false
	}
	return u.Scheme + ":", false
}

// answerAt adds the parameters of an answer to a checked redirect URI. What is there stays byte for byte.
func answerAt(redirect string, answer url.Values) string {
	join := "?"
	if strings.Contains(redirect, "?") {
		join = "&"
	}
	return redirect + join + answer.Encode()
}

// isShown says whether a rune may stand in a text about a stranger: nothing that hides, reorders or stacks.
func isShown(r rune) bool {
	return unicode.IsPrint(r) && !unicode.Is(unicode.Mn, r) && !unicode.Is(unicode.Me, r)
}
