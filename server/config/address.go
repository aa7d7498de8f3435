package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path"
	"runtime"
	"strconv"
	"strings"
)

// term is a text of a certain form, or nothing.
type term struct {
	p    *string
	read func(s string, in input) (string, error) // returns the one spelling that is kept; not called for ""
}

func (v term) set(in input) error {
	s, ok := in.raw.(string)
	if !ok {
		return errors.New("must be a text")
	}
	if s = strings.TrimSpace(s); s == "" {
		*v.p = ""
		return nil
	}
	s, err := v.read(s, in)
	if err != nil {
		return err
	}
	*v.p = s
	return nil
}

func (v term) text() string { return *v.p }

// terms is a list of texts of a certain form. A source replaces the whole list.
type terms struct {
	p    *[]string
	read func(s string, in input) (string, error)
}

func (v terms) set(in input) error {
	list, bad := each(in, v.read)
	if len(bad) > 0 {
		return bad
	}
	*v.p = list
	return nil
}

func (v terms) text() string { return strings.Join(*v.p, ",") }

// each reads the entries of a list. What is wrong with one stands at that one's place.
func each[T any](in input, read func(string, input) (T, error)) (list []T, bad Problems) {
	texts, err := entries(in)
	if err != nil {
		return nil, Problems{{Origin: in.origin, Text: err.Error()}}
	}
	list = make([]T, 0, len(texts))
	for i, s := range texts {
		t, err := read(strings.TrimSpace(s), in)
		if err == nil {
			list = append(list, t)
			continue
		}
		at := in.origin
		if i < len(in.lines) {
			at = in.lines[i]
		}
		bad.add(at, err.Error())
	}
	return list, bad
}

// networks is a list of networks, as CIDR writes them; one address alone is a network, too.
type networks struct {
	p    *[]netip.Prefix
	read func(s string, in input) (netip.Prefix, error)
}

func (v networks) set(in input) error {
	list, bad := each(in, v.read)
	if len(bad) > 0 {
		return bad
	}
	*v.p = list
	return nil
}

func (v networks) text() string {
	texts := make([]string, len(*v.p))
	for i, n := range *v.p {
		texts[i] = n.String()
	}
	return strings.Join(texts, ",")
}

// readNetwork refuses what would silently match nothing: bits behind the mask, and IPv4 written as IPv6, which
// netip.Prefix.Contains tells apart.
func readNetwork(s string, _ input) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" && !a.Is4In6() {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	n, err := netip.ParsePrefix(s)
	switch {
	case err != nil:
		return n, fmt.Errorf("%q is not a network; write it as 10.0.0.0/8 or fd00::/8", s)
	case n.Addr().Is4In6():
		return n, fmt.Errorf("%q: write IPv4 networks as 10.0.0.0/8", s)
	case n != n.Masked():
		return n, fmt.Errorf("%q has bits outside its mask; write %s", s, n.Masked())
	}
	return n, nil
}

// maxSocketPath is how long the name of a socket may be: sun_path without its final zero.
func maxSocketPath() int {
	if runtime.GOOS == "linux" {
		return 107
	}
	return 103
}

// readListen reads one address to listen on. Whether it is fit to be served is seen when all settings are known.
func readListen(s string, in input) (string, error) {
	if s == "systemd:" {
		return s, nil
	}
	if strings.HasPrefix(s, "systemd:") {
		return "", fmt.Errorf("listen %q: write only systemd: for all sockets that systemd passes", s)
	}
	if name, ok := strings.CutPrefix(s, "unix:"); ok {
		at, err := absolute(name, in)
		if err != nil {
			return "", fmt.Errorf("listen %q: %w", s, err)
		}
		if len(at) > maxSocketPath() {
			return "", fmt.Errorf("listen %q: the path of a socket can have at most %d bytes", s, maxSocketPath())
		}
		return "unix:" + at, nil
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return "", fmt.Errorf("listen %q is not an address; write host:port, [v6]:port, systemd: or unix:/path", s)
	}
	if port, err = readPort(port); err != nil {
		return "", fmt.Errorf("listen %q: %w", s, err)
	}
	if host == "" || host == "*" {
		return "", fmt.Errorf("listen %q binds every interface; write 0.0.0.0:%s or 127.0.0.1:%s", s, port, port)
	}
	if host, err = readName(host); err != nil {
		return "", fmt.Errorf("listen %q: %w", s, err)
	}
	if host == "systemd" || host == "unix" {
		return "", fmt.Errorf("listen %q: write %s: in lower case", s, host)
	}
	return net.JoinHostPort(host, port), nil
}

func readMetricsListen(s string, in input) (string, error) {
	if strings.HasPrefix(s, "systemd:") {
		return "", fmt.Errorf("listen %q: sockets of systemd are only for http.listen; write host:port, [v6]:port or "+
			"unix:/path", s)
	}
	return readListen(s, in)
}

func readPort(s string) (string, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil {
		return "", errors.New("the port must be a number from 0 to 65535")
	}
	return strconv.FormatUint(n, 10), nil
}

// readName reads a host name or an address without brackets. A name whose last label is a number is a mistyped address:
// some resolvers would take 127.1 for one.
func readName(s string) (string, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		return a.Unmap().String(), nil
	}
	labels := strings.Split(strings.TrimSuffix(s, "."), ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 ||
			strings.ContainsFunc(label, func(r rune) bool { return r != '-' && !nameRune(r) }) {
			return "", fmt.Errorf("%q is neither a host name in ASCII nor an address", s)
		}
	}
	if _, err := strconv.ParseUint(labels[len(labels)-1], 10, 64); err == nil || len(s) > 253 {
		return "", fmt.Errorf("%q is neither a host name in ASCII nor an address", s)
	}
	return strings.ToLower(strings.Join(labels, ".")), nil
}

// readAuthority reads `host` or `host:port`, where an IPv6 address stands in brackets, and returns both canonical; port
// is "" if there is none.
func readAuthority(s string) (host, port string, err error) {
	host = s
	if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") {
		host = s[1 : len(s)-1]
	} else if strings.Contains(s, ":") {
		if host, port, err = net.SplitHostPort(s); err != nil {
			return "", "", fmt.Errorf("%q is not a host; write host, host:port or [v6]:port", s)
		}
		if port, err = readPort(port); err != nil {
			return "", "", fmt.Errorf("%q: %w", s, err)
		}
	}
	if host, err = readName(host); err != nil {
		return "", "", err
	}
	if strings.Contains(host, "%") {
		return "", "", fmt.Errorf("%q: an address with a zone works only on its own machine", s)
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host, port, nil
}

// readHost reads one entry of http.allowed_hosts.
func readHost(s string, _ input) (string, error) {
	if strings.Contains(s, "*") {
		return "", fmt.Errorf("%q: patterns are not supported; name each host", s)
	}
	if strings.Contains(s, "/") {
		return "", fmt.Errorf("%q: write only the host, without scheme and path", s)
	}
	host, port, err := readAuthority(s)
	if err != nil || port == "" {
		return host, err
	}
	return host + ":" + port, nil
}

// readOrigin reads one entry of http.allowed_origins and returns it as browsers write it: in lower case, without the
// scheme's usual port.
func readOrigin(s string, _ input) (string, error) {
	const form = "must be scheme://host[:port]"
	scheme, rest, ok := strings.Cut(s, "://")
	switch {
	case s == "null" || strings.Contains(s, "*"):
		return "", fmt.Errorf("%q would allow every page; name each origin as scheme://host[:port]", s)
	case !ok || !isScheme(scheme):
		return "", fmt.Errorf("%q: %s", s, form)
	case strings.ContainsAny(rest, "/?#@"):
		return "", fmt.Errorf("%q: %s, without a path or anything else", s, form)
	}
	host, port, err := readAuthority(rest)
	if err != nil {
		return "", err
	}
	return origin(strings.ToLower(scheme), host, port), nil
}

// isScheme says whether s is a scheme of RFC 3986, 3.1. Extensions have their own.
func isScheme(s string) bool {
	if s == "" || s[0]|0x20 < 'a' || s[0]|0x20 > 'z' {
		return false
	}
	return !strings.ContainsFunc(s,
		func(r rune) bool { return r == '_' || !nameRune(r) && !strings.ContainsRune("+-.", r) })
}

func origin(scheme, host, port string) string {
	if port == "" || scheme == "https" && port == "443" || scheme == "http" && port == "80" {
		return scheme + "://" + host
	}
	return scheme + "://" + host + ":" + port
}

// readPublicURL reads the address that clients use, without the slash at its end. It may have a path, if a proxy serves
// other things beside us.
func readPublicURL(s string, _ input) (string, error) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Opaque != "" {
		return "", errors.New("must be an absolute URL, such as https://tools.example.com")
	}
	if u.User != nil || strings.ContainsAny(s, "?#") {
		return "", errors.New("must be a URL without user, query and fragment")
	}
	host, port, err := readAuthority(u.Host)
	if err != nil {
		return "", err
	}
	prefix := strings.TrimSuffix(u.Path, "/")
	if prefix != "" && (prefix == "/" || prefix != path.Clean(prefix) || u.EscapedPath() != u.Path) {
		return "", fmt.Errorf("%q: the path must be plain, without escapes, empty parts and dots alone", s)
	}
	return origin(u.Scheme, host, port) + prefix, nil
}

// readAuditDir reads a directory, or `-` for standard output.
func readAuditDir(s string, in input) (string, error) {
	if s == "-" {
		return s, nil
	}
	return absolute(s, in)
}
