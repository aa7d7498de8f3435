package endpoint

import (
	"net"
	"net/http"
	"strings"
	"time"

	"codehand/server/auth"
	"codehand/server/public"
)

// forwardingHeaders are what proxies, tunnels and their networks add to a request, in canonical form.
// forwardingPrefixes are how whole families of them begin. No client of ours sends one.
var (
	forwardingHeaders = []string{
		"Forwarded", "Via", "X-Real-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "X-Original-Host",
		"X-Envoy-External-Address", "True-Client-Ip", "Fastly-Client-Ip", "Fly-Client-Ip", "Cdn-Loop",
		"X-Azure-Ref", "X-Amzn-Trace-Id",
		"X-Proxyuser-Ip",
	}
	forwardingPrefixes = []string{"X-Forwarded", "X-Original-Forwarded", "Cf-", "Tailscale-", "Ngrok-"}
)

// proxied says whether a proxy or tunnel that says so sent r.
func proxied(r *http.Request) bool {
	for _, name := range forwardingHeaders {
		if _, ok := r.Header[name]; ok {
			return true
		}
	}
	for name := range r.Header {
		for _, prefix := range forwardingPrefixes {
			if strings.HasPrefix(name, prefix) {
				return true
			}
		}
	}
	return false
}

// A front knows what stands before the endpoint.
type front struct {
	mode   string         // of auth
	proxy  bool           // http.behind_proxy
	prefix string         // path of http.public_url
	prover *public.Prover // nil: there is no public URL
}

// local says whether r comes from this machine, without a proxy between. A tunnel runs here, too, so the address of the
// connection alone says nothing.
func (f front) local(r *http.Request) bool {
	here := r.Host == "" || public.OnThisMachine(hostOf(r))
	return here && isLoopbackPeer(r) && !f.proxy && !proxied(r)
}

// hostOf is the host that r names, without its port.
func hostOf(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.Host); err == nil {
		return host
	}
	return r.Host
}

// outside refuses requests that may come from outside to a server without sign-in. There every caller acts as the
// person who started the server, and behind a proxy the caller could be a stranger. nil: r may go on.
func (f front) outside(r *http.Request, unix bool) *auth.Error {
	if f.mode != auth.ModeNone || !proxied(r) && (unix || public.OnThisMachine(hostOf(r))) {
		return nil
	}
	return &auth.Error{Status: http.StatusForbidden, Code: "through_proxy",
		Message: "This request came through a proxy or tunnel, and nobody signs in here (auth.mode none), so it is " +
			"refused. " + signInRemedy}
}

// signInRemedy is what the operator can do where others are to connect.
const signInRemedy = `The operator can run "codehand owner new" and start serve with --public URL --auth-mode owner.`

// challenge answers a challenge of public.Check. done is true if it has answered.
func (f front) challenge(w http.ResponseWriter, r *http.Request) (done bool) {
	nonce, ok := strings.CutPrefix(strings.TrimPrefix(r.URL.Path, f.prefix), public.Path)
	if f.prover == nil || !ok || r.Method != http.MethodGet {
		return false
	}
	body, ok := f.prover.Answer(nonce)
	if !ok {
		return false
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	_, _ = w.Write(body) // a client that is gone needs no answer
	return true
}

// unproven refuses everything while it is not known where the public URL leads.
func (f front) unproven() *auth.Error {
	if f.prover == nil || f.prover.Opened() {
		return nil
	}
	return &auth.Error{Status: http.StatusServiceUnavailable, Code: "not_ready", RetryAfter: 2 * time.Second,
		Message: "The server is checking its public URL. Try again in a few seconds."}
}
