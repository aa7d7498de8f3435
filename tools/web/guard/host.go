package guard

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// ErrInvalid is in the error for what is no URL, or no host, that can be asked for. Its text says why.
var ErrInvalid = errors.New("invalid")

// maxURL is the longest URL in bytes.
const maxURL = 2000

// URL reads the address of a page. It may name the ports 80, 443 and those given here. The host of the result is as
// Host returns it, and a port stands there only if it is not the usual one of the scheme. The error contains
// ErrInvalid.
func URL(text string, ports ...uint16) (*url.URL, error) {
	invalid := func(why string) (*url.URL, error) { return nil, fmt.Errorf("%w: the URL %s", ErrInvalid, why) }
	switch {
	case len(text) > maxURL:
		return invalid(fmt.Sprintf("is longer than %d bytes", maxURL))
	case !utf8.ValidString(text):
		return invalid("is not valid UTF-8")
	case strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }):
		return invalid("contains white space or a control character")
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return invalid("cannot be read: " + unwrapped(err))
	case u.Scheme != "http" && u.Scheme != "https":
		return invalid("must begin with http:// or https://")
	case u.User != nil:
		return invalid("must not contain a user name or password")
	case u.Host == "":
		return invalid("names no host")
	}
	port := u.Port()
	switch name := strings.TrimSuffix(u.Host, ":"+port); {
	case port == "" && strings.HasSuffix(u.Host, ":"), port != "" && !named(port, ports):
		if host, err := Host(name); err == nil && ofThisMachine(host) {
			return invalid("names a port of this machine other than 80, 443 and those of web.ports; a command, such " +
				"as curl, may reach it")
		}
		return invalid("names a port other than 80, 443 and those of web.ports")
	default:
		if u.Host, err = Host(name); err != nil {
			return nil, err
		}
	}
	if port != "" && port != map[string]string{"http": "80", "https": "443"}[u.Scheme] {
		u.Host += ":" + port
	}
	return u, nil
}

// ofThisMachine says whether a host, as Host returns it, is the machine itself by name or address.
func ofThisMachine(host string) bool {
	a, ok := literal(host)
	return ok && a.IsLoopback() || host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// named says whether a port, as it is spelt, is 80, 443 or one of more.
func named(port string, more []uint16) bool {
	return port == "80" || port == "443" ||
		slices.ContainsFunc(more, func(p uint16) bool { return strconv.Itoa(int(p)) == port })
}

// unwrapped leaves the URL out of an error of url.Parse, since the caller knows it.
func unwrapped(err error) string {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}

// Host returns the one normal form of a host as a URL has it: a name in ASCII and lower case without its final dot, an
// IPv4 address with four decimal numbers, or an IPv6 address in brackets. There is no other spelling of an address: a
// name that a resolver could read as one (0x7f.1, 017700000001, 127.1) is refused. The error contains ErrInvalid.
func Host(text string) (string, error) {
	invalid := func(why string) (string, error) {
		return "", fmt.Errorf("%w: the host %q %s", ErrInvalid, text, why)
	}
	if strings.ContainsAny(text, "[]:%") {
		if a, ok := literal(text); ok {
			return "[" + a.String() + "]", nil
		}
		return invalid("is no name and no address; write an IPv6 address in brackets and without a zone")
	}
	if !utf8.ValidString(text) { // a URL can hide it in escapes
		return invalid("is not valid UTF-8")
	}
	// The ideographic full stop becomes a dot, so a final dot is removed behind the translation.
	name, err := idna.Lookup.ToASCII(text)
	// A name that is accepted can become one that is not (x/net v0.62.0), so the result must stand the check, too.
	if again, twice := idna.Lookup.ToASCII(name); err != nil || twice != nil || again != name {
		return invalid("is not a name that can be looked up")
	}
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	if len(name) > 253 {
		return invalid("is longer than 253 bytes")
	}
	labels := strings.Split(name, ".")
	number := onlyDigits(labels[len(labels)-1])
	for _, label := range labels {
		switch {
		case label == "":
			return invalid("has an empty part")
		case len(label) > 63:
			return invalid("has a part of more than 63 bytes")
		case strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") != "":
			return invalid("is not a name that can be looked up")
		}
		number = number || strings.HasPrefix(label, "0x")
	}
	if _, ok := literal(name); number && !ok {
		return invalid("looks like an address; write it as four decimal numbers")
	}
	return name, nil
}

// onlyDigits says whether a label is digits of any script. IDNA makes names of those that it does not translate, which
// some program behind a proxy may read as numbers all the same; and no top level is a number.
func onlyDigits(label string) bool {
	text, err := idna.Punycode.ToUnicode(label)
	return err == nil && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsDigit(r) })
}

// literal returns the address that a host of a URL is; ok is false for a name.
func literal(host string) (a netip.Addr, ok bool) {
	if inner, found := strings.CutPrefix(host, "["); found {
		inner, found = strings.CutSuffix(inner, "]")
		a, err := netip.ParseAddr(inner)
		return a, found && err == nil && a.Is6() && a.Zone() == ""
	}
	a, err := netip.ParseAddr(host)
	return a, err == nil && a.Is4()
}
