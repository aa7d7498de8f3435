package listen

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"codehand/server/auth"
	"codehand/server/config"
)

func misconfigured(hint, format string, args ...any) error {
	return &config.Unusable{Err: fmt.Errorf(format, args...), Hint: hint}
}

// A BindError is an address that could not be bound, although nothing is wrong with the configuration as such.
type BindError struct {
	Address string // as configured
	Err     error
	Hint    string // "": none
}

func (e *BindError) Error() string { return "listen " + e.Address + ": " + e.Err.Error() }
func (e *BindError) Unwrap() error { return e.Err }

// A Listener is one bound address of serve. It hands out plain connections, also where TLS is set.
type Listener struct {
	net.Listener
	URL      string // http://127.0.0.1:7433, https://..., unix:/path
	Loopback bool   // only this machine reaches it
	Unix     bool
	TLS      *tls.Config // nil: none

	pair *keyPair // of TLS
}

// Reload reads certificate and key again, also if the files look unchanged. With an error the old pair goes on.
func (l Listener) Reload() error {
	if l.pair == nil {
		return nil
	}
	return l.pair.reload()
}

// Options are what Open needs besides the configuration.
type Options struct {
	Inherited []net.Listener // sockets that systemd opened, for the item `systemd:`; they are Listen's afterwards
	Log       *slog.Logger   // nil: nothing is logged
}

// An address is one item of http.listen.
type address struct {
	text    string // as configured
	network string // tcp, unix, systemd
	at      string // for net.Listen
	local   bool   // only this machine reaches it
}

const (
	unixPrefix = "unix:"
	systemd    = "systemd:" // whatever sockets systemd opened
)

// parseAddress reads an item of http.listen. A name other than localhost counts as one that others reach, because it
// may mean another address tomorrow.
func parseAddress(text string) (address, error) {
	a := address{text: text, network: "tcp", at: text}
	if text == systemd {
		a.network = "systemd"
		return a, nil
	}
	if path, ok := strings.CutPrefix(text, unixPrefix); ok {
		if !filepath.IsAbs(path) {
			return a, misconfigured("", "listen %s: the path must be absolute: unix:/run/codehand/http.sock", text)
		}
		a.network, a.at, a.local = "unix", filepath.Clean(path), true
		return a, nil
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return a, misconfigured("", "listen %q is not an address; write host:port, [v6]:port, unix:/path or systemd:",
			text)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || port != strconv.FormatUint(n, 10) {
		return a, misconfigured("", "listen %q: the port must be a number from 0 to 65535", text)
	}
	if host == "" {
		return a, misconfigured("", "listen %q binds every interface; write 0.0.0.0:%s or 127.0.0.1:%s", text, port,
			port)
	}
	ip, err := netip.ParseAddr(host)
	a.local = err == nil && ip.Unmap().IsLoopback() || strings.EqualFold(host, "localhost")
	return a, nil
}

// addresses reads http.listen and puts what systemd opened where the configuration says so.
func addresses(c config.Config, inherited []net.Listener) ([]address, error) {
	if len(c.HTTP.Listen) == 0 {
		return nil, misconfigured("--listen 127.0.0.1:7433", "http.listen is empty")
	}
	var all []address
	for _, text := range c.HTTP.Listen {
		a, err := parseAddress(text)
		if err != nil {
			return nil, err
		}
		if a.network != "systemd" {
			all = append(all, a)
			continue
		}
		if len(inherited) == 0 {
			return nil, misconfigured("start it from a systemd socket unit, or give an address with --listen",
				"listen systemd: no socket was passed by systemd")
		}
		for _, l := range inherited {
			all = append(all, address{text: systemd + l.Addr().String(), network: "systemd", at: l.Addr().String(),
				local: onThisMachine(l.Addr())})
		}
	}
	return all, nil
}

// onThisMachine says whether only this machine reaches a bound address.
func onThisMachine(a net.Addr) bool {
	switch a := a.(type) {
	case *net.UnixAddr:
		return true
	case *net.TCPAddr:
		return a.IP.IsLoopback()
	}
	return false
}

// authMode says how callers are told apart, with auto decided: token if the tokens file has one, even a revoked one,
// since the last revocation must not open the door; oidc if there is an issuer; none if only the person who started
// serve can reach a listener. The error is a config.Unusable.
func authMode(c config.Config, inherited ...net.Listener) (string, error) {
	if c.Auth.Mode != "auto" {
		return c.Auth.Mode, nil
	}
	all, err := addresses(c, inherited)
	if err != nil {
		return "", err
	}
	tokens, err := auth.OpenTokenFile(c.TokenFile()).List()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", &config.Unusable{Err: err}
	}
	switch issuers := len(c.Auth.Issuers) > 0; {
	case issuers && len(tokens) > 0:
		return "token+oidc", nil
	case issuers:
		return "oidc", nil
	case len(tokens) > 0:
		return "token", nil
	}
	for _, a := range all {
		if !a.local {
			return "", needsAuthentication(a)
		}
	}
	return "none", nil
}

// Settle decides what depends on addresses and tokens: Auth.Mode is never auto afterwards, and the defaults are
// those for one person where only that person can connect. The error is a config.Unusable.
func Settle(c config.Config, inherited ...net.Listener) (config.Config, error) {
	mode, err := authMode(c, inherited...)
	if err != nil {
		return c, err
	}
	c.Auth.Mode = mode
	if WhyShared(c) == "" {
		c = c.ForOnePerson()
	}
	return c, nil
}

// WhyShared says why others than the person who started serve can connect, as the end of a sentence; "": only that
// person can. Auth.Mode must be decided.
func WhyShared(c config.Config) string {
	for _, text := range c.HTTP.Listen {
		a, err := parseAddress(text)
		if err != nil || !a.local && a.network != "systemd" { // Check looks at what systemd opened
			return "other machines can reach " + text
		}
	}
	switch {
	case c.Auth.Mode != auth.ModeNone:
		return whoSignsIn(c.Auth.Mode)
	case len(c.HTTP.AllowedHosts) > 0 || c.HTTP.BehindProxy || len(c.HTTP.TrustedProxies) > 0:
		return "others can connect through a proxy (http.allowed_hosts, behind_proxy or trusted_proxies)"
	case c.HTTP.PublicURL != "":
		return "others can connect to " + c.HTTP.PublicURL + " (http.public_url)"
	case c.Auth.LocalPeer != "same-user":
		return "every user of this machine can connect (auth.local_peer)"
	case !auth.TellsUsers():
		return "every user of this machine can connect: this system does not say which user does"
	}
	return ""
}

// whoSignsIn ends a sentence about why others can connect.
func whoSignsIn(mode string) string {
	if modes, err := auth.ParseModes(mode); err == nil && modes.OAuth() {
		return "people who sign in can connect"
	}
	return "people with tokens can connect"
}

func needsAuthentication(a address) error {
	return misconfigured(`--auth-mode token, then "codehand token new NAME"`, "listen %s needs authentication", a.text)
}

// Check refuses what must not be served as it is configured, before anything is bound: an empty host, and an
// address that other machines reach without authentication, without TLS or a named proxy, or without a name that it is
// called by; a certificate that cannot be used. The error is a config.Unusable.
func Check(c config.Config, inherited ...net.Listener) error {
	all, err := addresses(c, inherited)
	if err != nil {
		return err
	}
	mode, err := authMode(c, inherited...)
	if err != nil {
		return err
	}
	for _, a := range all {
		switch {
		case a.local:
		case mode == "none":
			return needsAuthentication(a)
		case c.HTTP.TLSCert == "" && !c.HTTP.BehindProxy:
			return misconfigured("set http.tls_cert and http.tls_key, or http.behind_proxy = true if a proxy in "+
				"front speaks TLS", "listen %s would send tokens without encryption", a.text)
		case c.HTTP.PublicURL == "" && len(c.HTTP.AllowedHosts) == 0:
			return misconfigured(
				"--http-public-url https://NAME, as clients call this server; more names: http.allowed_hosts",
				"listen %s needs the host name that clients use", a.text)
		}
	}
	if err := checkSignIn(c, mode, all); err != nil {
		return err
	}
	if c.HTTP.BehindProxy && mode == "none" {
		return misconfigured(`--auth-mode token, then "codehand token new NAME"`,
			"http.behind_proxy needs authentication: without it everyone who reaches the proxy could connect")
	}
	_, _, err = loadTLS(c, nil)
	return err
}

// checkSignIn refuses a sign-in whose clients would not know where they are: what they are told to trust begins with
// http.public_url.
func checkSignIn(c config.Config, mode string, all []address) error {
	modes, err := auth.ParseModes(mode)
	if err != nil {
		return misconfigured("", "auth.mode %q: %w", mode, err)
	}
	if !modes.OAuth() {
		return nil
	}
	if c.HTTP.PublicURL != "" {
		u, err := url.Parse(c.HTTP.PublicURL)
		if err != nil || u.Scheme != "https" && u.Hostname() != "localhost" && !isLoopback(u.Hostname()) {
			return misconfigured("--http-public-url https://NAME",
				"auth.mode %s needs http.public_url with https", mode)
		}
		return nil
	}
	if c.HTTP.BehindProxy || len(c.HTTP.AllowedHosts) > 0 ||
		slices.ContainsFunc(all, func(a address) bool { return !a.local || a.network != "tcp" }) {
		return misconfigured("--http-public-url https://NAME, as clients call this server",
			"auth.mode %s needs http.public_url, unless only this machine can connect to a loopback address", mode)
	}
	return nil
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// Outside says whether other machines may reach an item of http.listen.
func Outside(text string) bool {
	a, err := parseAddress(text)
	return err == nil && !a.local && a.network == "tcp"
}

// Open binds all addresses or none, and checks them as Check does. The error is a config.Unusable, or a BindError
// with the address.
func Open(ctx context.Context, c config.Config, o Options) (_ []Listener, err error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	var bound []Listener
	defer func() {
		if err != nil {
			for _, l := range o.Inherited {
				_ = l.Close() // not served
			}
			for _, l := range bound {
				_ = l.Close() // likewise
			}
		}
	}()
	if err := Check(c, o.Inherited...); err != nil {
		return nil, err
	}
	all, err := addresses(c, o.Inherited)
	if err != nil {
		return nil, err
	}
	config, pair, err := loadTLS(c, o.Log)
	if err != nil {
		return nil, err
	}
	slots := newSlots(c.HTTP.MaxConnections)
	inherited := o.Inherited
	for _, a := range all {
		var l net.Listener
		if a.network == "systemd" {
			l, inherited = inherited[0], inherited[1:]
		} else if l, err = bind(ctx, a, c.HTTP.UnixMode, elsewhere(c)); err != nil {
			return nil, err
		}
		bound = append(bound, describe(l, slots, config, pair))
	}
	return bound, nil
}

// elsewhere is where a person writes another address: in the file that names this one, or on the command line.
func elsewhere(c config.Config) string {
	if at := c.Origin("http.listen"); strings.Contains(at, ".toml:") {
		return "http.listen (" + at + ")"
	}
	return "--listen"
}

// bind opens one address. where is where another one would be written.
func bind(ctx context.Context, a address, mode fs.FileMode, where string) (l net.Listener, err error) {
	if a.network == "unix" {
		l, err = listenUnix(ctx, a.at, mode)
	} else {
		l, err = new(net.ListenConfig).Listen(ctx, a.network, a.at)
	}
	if err != nil {
		return nil, bindError(a, err, where)
	}
	if a.local && !onThisMachine(l.Addr()) { // localhost is whatever the resolver says
		_ = l.Close() // not served
		return nil, misconfigured("write 127.0.0.1 or [::1]",
			"listen %s resolves to %s, which other machines can reach", a.text, l.Addr())
	}
	return l, nil
}

func describe(l net.Listener, s *slots, config *tls.Config, pair *keyPair) Listener {
	b := Listener{Listener: s.limit(l), Loopback: onThisMachine(l.Addr())}
	if _, b.Unix = l.Addr().(*net.UnixAddr); b.Unix {
		b.URL = unixPrefix + l.Addr().String()
		return b
	}
	b.URL = "http://" + l.Addr().String()
	if config != nil {
		b.URL, b.TLS, b.pair = "https://"+l.Addr().String(), config, pair
	}
	return b
}

// bindError says who has an address.
func bindError(a address, err error, where string) error {
	e := &BindError{Address: a.text, Err: err}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		e.Err = errno
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		e.Hint = "choose another address with " + where
		switch pid, sure := holder(a); {
		case sure:
			e.Hint = fmt.Sprintf("codehand has it already, pid %d; stop it, or choose another address with %s",
				pid, where)
		case pid > 0:
			e.Hint = fmt.Sprintf("perhaps codehand has it already, pid %d; stop it, or choose another address with "+
				"%s", pid, where)
		}
	case errors.Is(err, fs.ErrPermission):
		e.Hint = "this user may not use that port or directory; choose another address with " + where
	}
	return e
}
