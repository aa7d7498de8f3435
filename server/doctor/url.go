package doctor

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"

	"codehand/server/public"
)

// A series of findings about one URL.
type series struct {
	id    string
	found []Finding
}

func (s *series) add(level Level, text, fix string) {
	s.found = append(s.found, Finding{s.id, level, text, fix})
}

// url sends the endpoint what clients and what attackers send.
func (r Remote) url(ctx context.Context) []Finding {
	s := &series{id: "url"}
	l, err := r.open(ctx)
	if err != nil {
		s.add(Fail, r.URL+": "+err.Error(), "give the URL that serve prints")
		return s.found
	}
	defer l.close()
	if !l.reach(ctx, s) {
		return s.found
	}
	l.probes(ctx, s)
	open := l.openness(ctx, s)
	l.strangers(ctx, s)
	if !open && l.bearer() == "" {
		s.add(Note, "a token is needed, so the tools were not listed",
			"give the token: --token-env NAME or --token-file FILE")
		return s.found
	}
	for _, era := range []string{legacy, modern} {
		l.listed(ctx, s, era)
	}
	return s.found
}

// soonExpired is how long before its end a certificate is a warning.
const soonExpired = 14 * 24 * time.Hour

// reach sees whether anything answers, and by which certificate. false: there is no use in going on.
func (l *link) reach(ctx context.Context, s *series) bool {
	if l.at.Scheme == "http" && !l.local {
		s.add(Fail, l.URL+": not encrypted: everybody on the way can read the token and change what is run",
			"serve it over https://: set http.tls_cert and http.tls_key, or put a proxy with TLS before it")
	}
	answer, err := l.get(ctx, l.page("/healthz"))
	if err != nil {
		text, fix := unreachable(err)
		s.add(Fail, l.URL+": "+text, fix)
		return false
	}
	if answer.tls == nil || len(answer.tls.PeerCertificates) == 0 {
		return true
	}
	end := answer.tls.PeerCertificates[0].NotAfter
	left := end.Sub(l.time())
	text := fmt.Sprintf("the certificate is good until %s", end.UTC().Format(time.DateOnly))
	if left < soonExpired {
		s.add(Warn, fmt.Sprintf("%s, %d days from now", text, int(left.Hours()/24)), "renew it: serve reads a new "+
			"file by itself")
	} else {
		s.add(OK, text, "")
	}
	return true
}

func (r Remote) time() time.Time {
	if r.now != nil {
		return r.now()
	}
	return time.Now()
}

// unreachable says why nothing answered, and what to do.
func unreachable(err error) (text, fix string) {
	if bad, ok := errors.AsType[x509.CertificateInvalidError](err); ok && bad.Reason == x509.Expired {
		return "its certificate is not valid now: " + bad.Error(), "renew it, or set this machine's clock"
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "its certificate is signed by nobody whom this machine knows",
			"give the authority's certificate with --ca-file FILE, here and to codehand connect"
	}
	if bad, ok := errors.AsType[x509.HostnameError](err); ok {
		return bad.Error(), "use a name that is in the certificate, or get one for this name"
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "it does not answer", "see whether a firewall stands between, and whether serve runs there"
	}
	return err.Error(), "see whether codehand serve runs there, and whether the name and the port are right"
}

// probes asks the pages of load balancers.
func (l *link) probes(ctx context.Context, s *series) {
	for _, page := range []string{"/healthz", "/readyz"} {
		r, err := l.get(ctx, l.page(page))
		if err == nil {
			err = r.failed()
		}
		switch status := statusOf(err); {
		case err == nil:
			s.add(OK, page+" answers", "")
		case status == http.StatusServiceUnavailable:
			s.add(Fail, page+": the server is not ready: "+notReady(r.body), "read the server's log; it says why")
		case status == http.StatusNotFound:
			s.add(Warn, page+": nothing is there: load balancers cannot see whether the server is up",
				"let the proxy pass on "+page+", too")
		default:
			s.add(Warn, fmt.Sprintf("%s: %v", page, err), "read the server's log")
		}
	}
}

// notReady is what /readyz says of its checks.
func notReady(body []byte) string {
	var ready struct {
		Checks map[string]string `json:"checks"`
	}
	if err := json.Unmarshal(body, &ready); err != nil || len(ready.Checks) == 0 {
		return "it does not say why"
	}
	text, err := json.Marshal(ready.Checks)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// openness sees whether the endpoint serves those who have no token, and says so.
func (l *link) openness(ctx context.Context, s *series) (open bool) {
	r, err := l.first(ctx, nil)
	switch {
	case err != nil:
		s.add(Fail, "no answer to initialize: "+err.Error(), "read the server's log")
	case r.status == http.StatusUnauthorized:
		s.add(OK, "without a token: 401", "")
	case r.failed() != nil:
		s.add(Warn, "without a token: "+r.failed().Error()+", not 401", "see whether the URL ends in /mcp, and "+
			"whether something else answers for the endpoint")
	case l.local:
		s.add(OK, "without a token: served, on this machine only", "")
		open = true
	default:
		s.add(Fail, "without a token: served. Everybody who reaches it can read and change files and run commands",
			"make a token with codehand token new NAME, and start serve anew with --auth-mode token")
		open = true
	}
	if id := r.header.Get("Mcp-Session-Id"); id != "" {
		l.leave(ctx, http.Header{"Mcp-Session-Id": {id}, "Mcp-Protocol-Version": {"2025-11-25"}})
	}
	return open
}

// first sends initialize without a token, changed by change; nil: as it is.
func (l *link) first(ctx context.Context, change func(*http.Request)) (reply, error) {
	req, err := l.message(ctx, "", initialize)
	if err != nil {
		return reply{}, err
	}
	if change != nil {
		change(req)
	}
	return l.do(req)
}

// strangers sends the requests that a foreign web page would make a browser send.
func (l *link) strangers(ctx context.Context, s *series) {
	for _, c := range []struct {
		what, fix string
		change    func(*http.Request)
	}{
		{"Origin", "remove the origins from http.allowed_origins that are not yours, and let the proxy pass Origin on",
			func(req *http.Request) { req.Header.Set("Origin", "https://codehand-doctor.invalid") }},
		{"Host", "let the proxy refuse names that are not yours, or pass Host on: the endpoint refuses them",
			func(req *http.Request) { req.Host = "codehand-doctor.invalid" }},
	} {
		r, err := l.first(ctx, func(req *http.Request) {
			c.change(req)
			l.authorize(req)
		})
		switch {
		case err != nil:
			s.add(Warn, fmt.Sprintf("a foreign %s: no answer: %v", c.what, err),
				"see that the proxy answers such requests with 403 or passes them on; until then nobody knows whether "+
					"they are served")
		case r.status == http.StatusForbidden, c.what == "Host" && r.status >= 400 && r.status < 500 &&
			r.status != http.StatusUnauthorized: // a proxy knows no such name
			s.add(OK, fmt.Sprintf("a foreign %s: %d", c.what, r.status), "")
		default:
			s.add(Fail, fmt.Sprintf("a foreign %s: HTTP %d, not 403: web pages could use the endpoint", c.what,
				r.status), c.fix)
		}
		if id := r.header.Get("Mcp-Session-Id"); id != "" {
			l.leave(ctx, http.Header{"Mcp-Session-Id": {id}, "Mcp-Protocol-Version": {"2025-11-25"}})
		}
	}
}

// listed lists the tools.
func (l *link) listed(ctx context.Context, s *series, era string) {
	got, err := l.list(ctx, era)
	switch {
	case err == nil:
		s.add(OK, fmt.Sprintf("%s: %s", era, got), "")
	case statusOf(err) == http.StatusUnauthorized:
		s.add(Fail, era+": the token is not accepted: "+err.Error(),
			"make a new one with codehand token new NAME, or correct the variable or the file that holds it")
	default:
		s.add(Fail, era+": "+err.Error(), "read the server's log; if a proxy stands between, let it pass on the "+
			"headers Mcp-* and streams of events")
	}
}

// public asks which process answers, and by which URL it believes to be called: clients refuse a sign-in that is for
// another one.
func (r Remote) public(ctx context.Context) []Finding {
	s := &series{id: "public"}
	l, err := r.open(ctx)
	if err != nil {
		return nil // url says it
	}
	defer l.close()
	nonce := public.NewNonce()
	answer, err := l.get(ctx, l.page(public.Path+nonce))
	if err != nil {
		return nil
	}
	proof, err := public.Verify(answer.body, nonce)
	switch base := strings.TrimSuffix(l.page(""), "/"); {
	case answer.status == http.StatusNotFound && json.Valid(answer.body):
		s.add(Note, "the endpoint has no public URL, so no client can sign in there from outside",
			"if it is meant for others: codehand serve --public "+base)
	case answer.status != http.StatusOK || err != nil:
		s.add(Warn, fmt.Sprintf("the challenge at %s… is not answered by a codehand: HTTP %d", public.Path,
			answer.status), "let the proxy pass on /.well-known/, and cache nothing there")
	case !strings.EqualFold(proof.URL, base):
		s.add(Fail, fmt.Sprintf("the endpoint takes itself for %s, so a sign-in through %s fails", proof.URL, base),
			"start serve with --public "+base+", or use that URL")
	default:
		s.add(OK, "the challenge is answered by instance "+proof.Instance, "")
	}
	return s.found
}

// Where clients look for what describes OAuth.
const (
	wellKnownResource = "/.well-known/oauth-protected-resource"
	wellKnownServer   = "/.well-known/oauth-authorization-server"
)

// oauth sees whether the document that sends clients to a login is there if and only if there is a login. Where it is
// and tokens are wanted, Cursor ignores the headers that it was given.
func (r Remote) oauth(ctx context.Context) []Finding {
	s := &series{id: "oauth"}
	l, err := r.open(ctx)
	if err != nil {
		return nil // url says it
	}
	defer l.close()
	answer, err := l.first(ctx, nil)
	if err != nil {
		return nil
	}
	on := strings.Contains(strings.Join(answer.header.Values("Www-Authenticate"), ","), "resource_metadata")
	document, at := l.metadata(ctx)
	switch {
	case !on && at == "":
		s.add(OK, "no OAuth, and no document that says so", "")
	case !on:
		s.add(Fail, at+" is there, and the endpoint takes tokens only: clients start a login that cannot end and "+
			"ignore the token that they were given", "remove that document from the proxy or the web server")
	case at == "":
		s.add(Fail, "OAuth is on, and "+wellKnownResource+" is not there: no client finds the login",
			"let the proxy pass on /.well-known/ to the endpoint")
	default:
		l.issuers(ctx, s, document)
	}
	return s.found
}

// metadata finds a document about OAuth; at is "" if there is none.
func (l *link) metadata(ctx context.Context) (body []byte, at string) {
	origin := *l.at
	origin.RawQuery, origin.Fragment = "", ""
	for _, path := range []string{wellKnownResource + l.at.Path, wellKnownResource, wellKnownServer} {
		origin.Path = path
		r, err := l.get(ctx, origin.String())
		if err == nil && r.status == http.StatusOK && json.Valid(r.body) {
			return r.body, origin.String()
		}
	}
	return nil, ""
}

// issuers sees whether those who issue tokens can be reached.
func (l *link) issuers(ctx context.Context, s *series, document []byte) {
	var d struct {
		Servers []string `json:"authorization_servers"`
	}
	if err := json.Unmarshal(document, &d); err != nil || len(d.Servers) == 0 {
		s.add(Fail, "the document about OAuth names no issuer", "set the issuer in the server's configuration")
		return
	}
	for _, issuer := range d.Servers {
		r, err := l.get(ctx, strings.TrimSuffix(issuer, "/")+wellKnownServer)
		if err == nil && r.status == http.StatusNotFound {
			r, err = l.get(ctx, strings.TrimSuffix(issuer, "/")+"/.well-known/openid-configuration")
		}
		if err == nil {
			err = r.failed()
		}
		if err != nil {
			s.add(Fail, fmt.Sprintf("the issuer %s cannot be reached: %v", issuer, err),
				"correct the issuer in the server's configuration, or start it")
			continue
		}
		s.add(OK, "issuer "+issuer, "")
	}
}

// maxSkew is how far clocks may differ: tokens of OAuth and signatures bear times.
const maxSkew = time.Minute

// clock compares this machine's clock with the endpoint's.
func (r Remote) clock(ctx context.Context) []Finding {
	l, err := r.open(ctx)
	if err != nil {
		return nil // url says it
	}
	defer l.close()
	answer, err := l.get(ctx, l.page("/healthz"))
	if err != nil {
		return nil
	}
	there, err := http.ParseTime(answer.header.Get("Date"))
	if err != nil {
		return []Finding{{"clock", Note, "the endpoint does not say what time it is", "let the proxy pass on Date"}}
	}
	skew := l.time().Sub(there)
	if skew.Abs() > maxSkew {
		order := "ahead of"
		if skew < 0 {
			order = "behind"
		}
		return []Finding{{"clock", Warn, fmt.Sprintf("this machine's clock is %d s %s the endpoint's",
			int(math.Round(skew.Abs().Seconds())), order), "let both machines set their clocks by NTP"}}
	}
	return []Finding{{"clock", OK, "both clocks agree", ""}}
}
