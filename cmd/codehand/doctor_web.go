package main

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"codehand/server/auth"
	"codehand/server/config"
	"codehand/server/doctor"
	"codehand/server/listen"
)

// proxyTime is how long a proxy may take to accept a connection.
const proxyTime = 3 * time.Second

// checkWeb says which way pages and searches take, and what keeps them from it. It asks no proxy for anything: that it
// takes a connection is all that is tried. env are the variables of this process.
func checkWeb(ctx context.Context, cfg config.Config, env []string) []doctor.Finding {
	if !cfg.Web.Enabled && !cfg.Web.Search.On() {
		return []doctor.Finding{{ID: "web", Level: doctor.Note, Text: "web.enabled is false, so there is no web_fetch",
			Fix: "remove it if you want the tool"}}
	}
	found := []doctor.Finding{checkProxy(ctx, cfg.Web.Proxy)}
	if ignored := proxyVariables(env); cfg.Web.Proxy == "" && len(ignored) > 0 {
		found = append(found, doctor.Finding{ID: "web", Level: doctor.Note,
			Text: "not used for pages: " + strings.Join(ignored, ", "),
			Fix:  "set web.proxy if pages can be reached only through that proxy"})
	}
	return append(found, checkCertificates(cfg, time.Now()))
}

// checkProxy says whether a proxy takes connections. Its address holds no password: config refuses one that does.
func checkProxy(ctx context.Context, proxy string) doctor.Finding {
	f := doctor.Finding{ID: "web", Level: doctor.OK, Text: "pages are fetched without a proxy"}
	u, err := url.Parse(proxy)
	if proxy == "" || err != nil { // config has read it
		return f
	}
	f.Text = "pages are fetched through " + u.Redacted()
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443", "socks5": "1080"}[u.Scheme])
	ctx, cancel := context.WithTimeout(ctx, proxyTime)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err == nil {
		_ = conn.Close() // nothing was sent
		return f
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	f.Level, f.Fix = doctor.Warn, "start that proxy, or correct web.proxy"
	f.Text += fmt.Sprintf(" (web.proxy), which takes no connection: %v", err)
	return f
}

// proxyVariables are those that name a proxy for other programs. Their values may hold passwords.
func proxyVariables(env []string) (names []string) {
	known := []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"}
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		if value != "" && slices.Contains(known, strings.ToUpper(name)) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// checkCertificates says which certificates are trusted besides those of the system.
func checkCertificates(cfg config.Config, now time.Time) doctor.Finding {
	f := doctor.Finding{ID: "web", Level: doctor.OK, Text: "trusted: certificates of the system"}
	if cfg.Web.CAFile == "" {
		return f
	}
	if _, err := cfg.WebRoots(); err != nil {
		return doctor.Finding{ID: "web", Level: doctor.Fail, Text: err.Error(),
			Fix: "name a file of certificates in PEM form"}
	}
	all, expired := countCertificates(cfg.Web.CAFile, now)
	f.Text += fmt.Sprintf(", and %d of %s (web.ca_file)", all, cfg.Web.CAFile)
	if expired > 0 {
		f.Level, f.Fix = doctor.Warn, "replace them in that file"
		f.Text += fmt.Sprintf(", of which %d expired", expired)
	}
	return f
}

// countCertificates counts those of a file that config has read, and which of them hold no more.
func countCertificates(path string, now time.Time) (all, expired int) {
	rest, err := os.ReadFile(path)
	if err != nil {
		return 0, 0
	}
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return all, expired
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil && block.Type == "CERTIFICATE" {
			if all++; now.After(c.NotAfter) {
				expired++
			}
		}
	}
}

// checkShared says what a server that others can reach does not use of the configuration.
func checkShared(cfg config.Config) []doctor.Finding {
	if _, err := auth.ParseModes(cfg.Auth.Mode); err != nil {
		cfg.Auth.Mode = auth.ModeNone // auto: what is sure without a look at the tokens
	}
	why := listen.WhyShared(cfg)
	if why == "" || len(cfg.Tools.Agent.Command.Argv) == 0 {
		return nil
	}
	return []doctor.Finding{{ID: "backends", Level: doctor.Warn,
		Text: "serve: agent.command is not used, because it has all rights of the server and others can connect: " +
			why,
		Fix: "set agent.api for a server that several people use"}}
}
