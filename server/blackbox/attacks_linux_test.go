package blackbox

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// An attack is a request without the right to it. want is what siege.said says of the answer.
type attack struct {
	name, want string
	do         func(x *siege) string
}

// attacksWanted is how many there are at least.
const attacksWanted = 200

// TestOAuthAttacks: the endpoints of sign-in refuse each attack with its status, and no attack gets a token. At the end
// the owner can still sign in, and the tokens from before still hold.
func TestOAuthAttacks(t *testing.T) {
	t.Parallel()
	d := opened(t, nil)
	a := d.register("http://127.0.0.1:33419/callback")
	site := d.register("https://app.example.com/cb")
	held := a.signIn()
	var all []attack
	all = append(all, authorizeAttacks(a)...)
	all = append(all, redirectAttacks(a, site)...)
	all = append(all, clientAttacks(a)...)
	all = append(all, registerAttacks()...)
	all = append(all, tokenAttacks(a, held)...)
	all = append(all, endpointAttacks(held)...)
	all = append(all, pageAttacks(a)...)
	if len(all) < attacksWanted {
		t.Errorf("there are %d attacks, want %d", len(all), attacksWanted)
	}
	names := map[string]bool{}
	for _, k := range all {
		if names[k.name] {
			t.Errorf("two attacks are called %q", k.name)
		}
		names[k.name] = true
		t.Run(k.name, func(t *testing.T) {
			x := d.besieged(t)
			if got := k.do(x); got != k.want {
				t.Errorf("got %q, want %q", got, k.want)
			}
		})
	}
	if got := d.opens(held.Access); got != http.StatusOK {
		t.Errorf("the owner's token: %d", got)
	}
	if g := a.token(a.renew(held.Refresh)); g.Status != http.StatusOK {
		t.Errorf("the owner's refresh: %d %s", g.Status, g.Body)
	}
	t.Logf("%d attacks", len(all))
}

// authorizeAttacks change one thing of a good request.
func authorizeAttacks(a *app) (all []attack) {
	for _, c := range []struct{ name, key, value, want string }{
		{"no PKCE", "code_challenge", "-", "back invalid_request"},
		{"empty challenge", "code_challenge", "", "back invalid_request"},
		{"plain PKCE", "code_challenge_method", "plain", "back invalid_request"},
		{"no method of PKCE", "code_challenge_method", "-", "back invalid_request"},
		{"method of PKCE in lower case", "code_challenge_method", "s256", "back invalid_request"},
		{"method of PKCE with a blank", "code_challenge_method", "S256 ", "back invalid_request"},
		{"unknown method of PKCE", "code_challenge_method", "S512", "back invalid_request"},
		{"short challenge", "code_challenge", strings.Repeat("a", 42), "back invalid_request"},
		{"long challenge", "code_challenge", strings.Repeat("a", 44), "back invalid_request"},
		{"padded challenge", "code_challenge", strings.Repeat("a", 42) + "=", "back invalid_request"},
		{"challenge in plain base64", "code_challenge", strings.Repeat("a", 42) + "+", "back invalid_request"},
		{"implicit flow", "response_type", "token", "back unsupported_response_type"},
		{"hybrid flow", "response_type", "code token", "back unsupported_response_type"},
		{"ID token", "response_type", "id_token", "back unsupported_response_type"},
		{"no response type", "response_type", "-", "back unsupported_response_type"},
		{"response type none", "response_type", "none", "back unsupported_response_type"},
		{"answer in the fragment", "response_mode", "fragment", "back invalid_request"},
		{"answer by a form", "response_mode", "form_post", "back invalid_request"},
		{"answer to a window", "response_mode", "web_message", "back invalid_request"},
		{"request object", "request", "eyJhbGciOiJub25lIn0.e30.", "back request_not_supported"},
		{"request object elsewhere", "request_uri", "https://evil.example/r", "back request_uri_not_supported"},
		{"approval without a person", "prompt", "none", "back interaction_required"},
		{"resource of a stranger", "resource", "https://evil.example/mcp", "back invalid_target"},
		{"resource at another port", "resource", "http://127.0.0.1:1/mcp", "back invalid_target"},
		{"resource with another scheme", "resource", "https://" + a.d.address + "/mcp", "back invalid_target"},
		{"resource with a longer port", "resource", "http://" + a.d.address + "0/mcp", "back invalid_target"},
		{"resource with a user name", "resource", "http://x@" + a.d.address + "/mcp", "back invalid_target"},
		{"resource with a fragment", "resource", a.resource + "#x", "back invalid_target"},
		{"resource with a query", "resource", a.resource + "?x=1", "back invalid_target"},
		{"resource that goes up", "resource", a.d.s.url + "/x/../mcp", "back invalid_target"},
		{"resource that is escaped", "resource", a.d.s.url + "/%6dcp", "back invalid_target"},
		{"resource that is another path", "resource", a.d.s.url + "/metrics", "back invalid_target"},
		{"resource that is no URL", "resource", "mcp", "back invalid_target"},
		{"unknown scope alone", "scope", "root", "back invalid_scope"},
		{"scope of administrators", "scope", "mcp:admin", "back invalid_scope"},
		{"scopes without end", "scope", strings.Repeat("mcp:read ", 1000), "back invalid_scope"},
		{"state without end", "state", strings.Repeat("s", 4000), "back invalid_request"},
		{"query without end", "state", strings.Repeat("s", 17<<10), "400 page"},
		{"unknown client", "client_id", "client-" + strings.Repeat("a", 26), "400 page"},
		{"no client", "client_id", "-", "400 page"},
		{"client of another spelling", "client_id", strings.ToUpper(a.id), "400 page"},
		{"client with a blank", "client_id", a.id + " ", "400 page"},
		{"client with a line", "client_id", a.id + "\r\nSet-Cookie: a=b", "400 page"},
		{"client with markup", "client_id", "<script>alert(1)</script>", "400 page"},
		{"client that is a path", "client_id", "../../tokens", "400 page"},
	} {
		all = append(all, attack{"authorize: " + c.name, c.want, func(x *siege) string {
			return x.get(a.authorizeURL(changed(a.wish(), c.key, c.value)))
		}})
	}
	for _, key := range []string{"state", "scope", "code_challenge", "code_challenge_method", "response_type"} {
		all = append(all, attack{"authorize: twice " + key, "back invalid_request", func(x *siege) string {
			q := a.wish()
			q.Add(key, q.Get(key))
			return x.get(a.authorizeURL(q))
		}})
	}
	for key, want := range map[string]string{"client_id": "400 page", "redirect_uri": "400 page", "resource": "back invalid_target"} {
		all = append(all, attack{"authorize: twice " + key, want, func(x *siege) string {
			q := a.wish()
			q.Add(key, "https://evil.example/")
			return x.get(a.authorizeURL(q))
		}})
	}
	return append(all,
		attack{"authorize: posted", "405 invalid_request", func(x *siege) string { return x.form("/oauth/authorize", a.wish()) }},
		attack{"authorize: semicolons", "400 page", func(x *siege) string {
			return x.get(x.s.url + "/oauth/authorize?" + strings.ReplaceAll(a.wish().Encode(), "&", ";"))
		}},
		attack{"authorize: broken escape", "400 page", func(x *siege) string { return x.get(a.authorizeURL(a.wish()) + "&x=%zz") }},
		attack{"authorize: foreign Host", "403 forbidden_host", func(x *siege) string {
			return x.get(a.authorizeURL(a.wish()), "Host", "evil.example")
		}},
	)
}

// redirectAttacks send the answer elsewhere. Nothing may be redirected.
func redirectAttacks(loop, site *app) (all []attack) {
	port := "33419"
	for a, spellings := range map[*app][]string{
		site: {
			"https://app.example.com/cb/", "https://app.example.com/CB", "https://app.example.com/cb?x=1", "https://app.example.com/cb#f",
			"http://app.example.com/cb", "HTTPS://app.example.com/cb", "https://APP.example.com/cb", "https://app.example.com:443/cb",
			"https://app.example.com./cb", "https://app.example.com/./cb", "https://app.example.com/x/../cb", "https://app.example.com/%63b",
			"https://app.example.com//cb", "https://user@app.example.com/cb", "https://app.example.com@evil.example/cb",
			"https://app.example.com.evil.example/cb", "https://evil.example/cb", `https://app.example.com\@evil.example/cb`,
			"https://app.example.com/cb\x00", "https://app.example.com/cb\r\nSet-Cookie: a=b", " https://app.example.com/cb",
			"https://app.example.com/cb ", "https://app.example.com/cb;x", "https://app.ex\u0430mple.com/cb", "javascript:alert(1)",
			"data:text/html,x", "//app.example.com/cb", "/cb", "https:app.example.com/cb", "https:///app.example.com/cb",
			"https://app.example.com/cb?code=x", "https://app.example.com/cb%2f..", "https://app.example.com:8443/cb",
		},
		loop: {
			"https://127.0.0.1:" + port + "/callback", "http://127.0.0.2:" + port + "/callback", "http://localhost:" + port + "/callback",
			"http://[::1]:" + port + "/callback", "http://127.1:" + port + "/callback", "http://2130706433:" + port + "/callback",
			"http://0x7f000001:" + port + "/callback", "http://127.0.0.1:" + port + "/callback/", "http://127.0.0.1:" + port + "/other",
			"http://127.0.0.1:" + port + "@evil.example/callback", "http://127.0.0.1.evil.example:" + port + "/callback",
			"http://0.0.0.0:" + port + "/callback", "http://127.0.0.1:/callback", "http://127.0.0.1:999999/callback",
			"http://127.0.0.1:" + port + "/callback?next=https://evil.example", "http://[::ffff:127.0.0.1]:" + port + "/callback",
		},
	} {
		for _, spelling := range spellings {
			all = append(all, attack{"redirect: " + spelling, "400 page", func(x *siege) string {
				return x.get(a.authorizeURL(changed(a.wish(), "redirect_uri", spelling)))
			}})
		}
	}
	// The answer to a mistake of a client that only registered goes to no address of another site: its host is not
	// verified.
	return append(all, attack{"redirect: open redirector by a mistake", "400 page", func(x *siege) string {
		return x.get(site.authorizeURL(changed(site.wish(), "response_type", "token")))
	}})
}

// clientAttacks name documents that must not be fetched. TestOAuthDocumentAttacks has those that can be.
func clientAttacks(a *app) (all []attack) {
	for _, id := range []string{
		"https://127.0.0.1/c", "https://localhost/c", "https://10.0.0.1/c", "https://192.168.1.1/c", "https://[::1]/c", "https://[fd00::1]/c",
		"https://[::ffff:127.0.0.1]/c", "https://169.254.169.254/latest/meta-data", "https://metadata.google.internal/c", "https://printer.local/c",
		"https://2130706433/c", "https://0x7f.1/c", "https://0177.0.0.1/c", "https://127.1/c", "https://0.0.0.0/c", "https://example.com",
		"https://example.com/", "http://example.com/c", "https://user@example.com/c", "https://example.com/c?x=1", "https://example.com/c#f",
		"https://example.com/a/../c", "https://example.com/%2e%2e/c", "https://example.com:22/c", "https://EXAMPLE.com/c", "https://example.com./c",
		"https://example/c", "file:///etc/passwd", "ftp://example.com/c", "https:example.com/c", "https://exa mple.com/c", "https://example.com/" + strings.Repeat("c", 600),
	} {
		all = append(all, attack{"client: " + id[:min(len(id), 60)], "400 page", func(x *siege) string {
			return x.get(a.authorizeURL(changed(a.wish(), "client_id", id)))
		}})
	}
	return all
}

func registerAttacks() (all []attack) {
	const path = "/oauth/register"
	many := strings.Repeat(`"https://a.example/cb",`, 17)
	for _, c := range []struct{ name, body, want string }{
		{"no redirect", `{"client_name":"x"}`, "400 invalid_redirect_uri"},
		{"empty list", `{"redirect_uris":[]}`, "400 invalid_redirect_uri"},
		{"no list", `{"redirect_uris":"https://a.example/cb"}`, "400 invalid_client_metadata"},
		{"script", `{"redirect_uris":["javascript:alert(1)"]}`, "400 invalid_redirect_uri"},
		{"script with a line", `{"redirect_uris":["java\nscript:alert(1)"]}`, "400 invalid_redirect_uri"},
		{"data", `{"redirect_uris":["data:text/html,x"]}`, "400 invalid_redirect_uri"},
		{"file", `{"redirect_uris":["file:///etc/passwd"]}`, "400 invalid_redirect_uri"},
		{"blob", `{"redirect_uris":["blob:https://a.example/x"]}`, "400 invalid_redirect_uri"},
		{"plain http", `{"redirect_uris":["http://a.example/cb"]}`, "400 invalid_redirect_uri"},
		{"address of a network", `{"redirect_uris":["http://192.168.0.1/cb"]}`, "400 invalid_redirect_uri"},
		{"loopback by another name", `{"redirect_uris":["http://127.0.0.1.evil.example/cb"]}`, "400 invalid_redirect_uri"},
		{"fragment", `{"redirect_uris":["https://a.example/cb#x"]}`, "400 invalid_redirect_uri"},
		{"user", `{"redirect_uris":["https://u:p@a.example/cb"]}`, "400 invalid_redirect_uri"},
		{"wildcard", `{"redirect_uris":["https://*.example/cb"]}`, "400 invalid_redirect_uri"},
		{"relative", `{"redirect_uris":["/cb"]}`, "400 invalid_redirect_uri"},
		{"no host", `{"redirect_uris":["https:///cb"]}`, "400 invalid_redirect_uri"},
		{"planted code", `{"redirect_uris":["https://a.example/cb?code=x"]}`, "400 invalid_redirect_uri"},
		{"planted state", `{"redirect_uris":["https://a.example/cb?STATE=x"]}`, "400 invalid_redirect_uri"},
		{"one bad of two", `{"redirect_uris":["https://a.example/cb","http://b.example/cb"]}`, "400 invalid_redirect_uri"},
		{"many", `{"redirect_uris":[` + many[:len(many)-1] + `]}`, "400 invalid_redirect_uri"},
		{"long", `{"redirect_uris":["https://a.example/` + strings.Repeat("x", 4000) + `"]}`, "400 invalid_redirect_uri"},
		{"secret", `{"redirect_uris":["https://a.example/cb"],"client_secret":"x"}`, "400 invalid_client_metadata"},
		{"implicit", `{"redirect_uris":["https://a.example/cb"],"response_types":["token"]}`, "400 invalid_client_metadata"},
		{"password grant", `{"redirect_uris":["https://a.example/cb"],"grant_types":["password"]}`, "400 invalid_client_metadata"},
		{"client credentials", `{"redirect_uris":["https://a.example/cb"],"grant_types":["client_credentials"]}`, "400 invalid_client_metadata"},
		{"no JSON", `redirect_uris=https://a.example/cb`, "400 invalid_client_metadata"},
		{"a list", `["https://a.example/cb"]`, "400 invalid_client_metadata"},
		{"deep", strings.Repeat("[", 15_000), "400 invalid_client_metadata"},
		{"huge", `{"client_name":"` + strings.Repeat("x", 1<<20) + `"}`, "413 invalid_request"},
	} {
		all = append(all, attack{"register: " + c.name, c.want, func(x *siege) string { return x.json(path, c.body) }})
	}
	good := `{"redirect_uris":["https://a.example/cb"]}`
	return append(all,
		attack{"register: as a form", "415 invalid_request", func(x *siege) string { return x.form(path, url.Values{"redirect_uris": {"https://a.example/cb"}}) }},
		attack{"register: as text", "415 invalid_request", func(x *siege) string {
			return x.said(x.request(http.MethodPost, path, good, "Content-Type", "text/plain"))
		}},
		attack{"register: read", "405 invalid_request", func(x *siege) string { return x.get(path) }},
		attack{"register: deleted", "405 invalid_request", func(x *siege) string { return x.said(x.request(http.MethodDelete, path, "")) }},
		attack{"register: foreign Host", "403 forbidden_host", func(x *siege) string { return x.json(path, good, "Host", "evil.example") }},
		attack{"register: without end", "429 temporarily_unavailable", func(x *siege) string {
			for range 300 {
				if got := x.json(path, good); got != "201" {
					return got
				}
			}
			return "300 were taken"
		}},
	)
}
