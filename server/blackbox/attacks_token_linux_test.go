package blackbox

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// fresh signs in at the attacker's address and returns the tokens of another grant.
func (x *siege) fresh(a *app) grantReply {
	x.t.Helper()
	g := x.tokens(a.redeem(a.code(x.owner())))
	if g.Status != http.StatusOK {
		x.t.Fatalf("no tokens: %d %s", g.Status, g.Body)
	}
	return g
}

// tokens asks the token endpoint, as a client that is in the right.
func (x *siege) tokens(values url.Values) grantReply {
	x.t.Helper()
	return answered(x.t, x.via, x.request(http.MethodPost, "/oauth/token", values.Encode(), "Content-Type", "application/x-www-form-urlencoded"))
}

// dead says how the tokens of a grant are answered: both must be refused.
func (x *siege) dead(a *app, g grantReply) string {
	x.t.Helper()
	r := x.tokens(a.renew(g.Refresh))
	return fmt.Sprintf("%d, %d %s", x.opens(g.Access), r.Status, r.Error)
}

const bothDead = "401, 400 invalid_grant"

// tokenAttacks are tried at the token endpoint.
func tokenAttacks(a *app, held grantReply) (all []attack) {
	row := func(name, want string, do func(x *siege) string) {
		all = append(all, attack{"token: " + name, want, do})
	}
	other := a.d.register("http://127.0.0.1:33420/callback")
	// What comes with a good code, and then the code itself: it must be dead, too.
	for _, c := range []struct{ name, key, value, want string }{
		{"no verifier", "code_verifier", "-", "400 invalid_request"},
		{"empty verifier", "code_verifier", "", "400 invalid_request"},
		{"wrong verifier", "code_verifier", strings.Repeat("w", 43), "400 invalid_grant"},
		{"challenge as verifier", "code_verifier", a.wish().Get("code_challenge"), "400 invalid_grant"},
		{"short verifier", "code_verifier", "short", "400 invalid_grant"},
		{"long verifier", "code_verifier", strings.Repeat("w", 200), "400 invalid_grant"},
		{"code of another client", "client_id", other.id, "400 invalid_grant"},
		{"code of an unknown client", "client_id", "client-x", "400 invalid_grant"},
		{"code without client", "client_id", "-", "400 invalid_request"},
		{"another redirect", "redirect_uri", "http://127.0.0.1:33420/callback", "400 invalid_grant"},
		{"foreign resource", "resource", "https://evil.example/mcp", "400 invalid_target"},
	} {
		row(c.name, c.want, func(x *siege) string {
			code := a.code(x.owner())
			got := x.form("/oauth/token", changed(a.redeem(code), c.key, c.value))
			// A request that lacks something has used nothing up; any other one has ended the grant.
			if again := x.tokens(a.redeem(code)); (again.Status == http.StatusOK) != (strings.HasSuffix(c.want, "_request") || strings.HasSuffix(c.want, "_target")) {
				x.t.Errorf("then the code with all that belongs to it: %d %s", again.Status, again.Body)
			}
			return got
		})
	}
	row("code twice", "400 invalid_grant", func(x *siege) string {
		code := a.code(x.owner())
		g := x.tokens(a.redeem(code))
		got := x.form("/oauth/token", a.redeem(code))
		if dead := x.dead(a, g); dead != bothDead {
			x.t.Errorf("the tokens of a code that came twice: %s", dead)
		}
		return got
	})
	row("code twice at once", "1 of 20", func(x *siege) string {
		code, good := a.code(x.owner()), make(chan grantReply, 20)
		var all sync.WaitGroup
		for range cap(good) {
			all.Go(func() {
				if g := x.tokens(a.redeem(code)); g.Status == http.StatusOK {
					good <- g
				}
			})
		}
		all.Wait()
		close(good)
		n := 0
		for g := range good {
			n++
			if dead := x.dead(a, g); dead != bothDead {
				x.t.Errorf("the tokens of a code that came twice: %s", dead)
			}
		}
		return fmt.Sprintf("%d of 20", n)
	})
	for name, text := range map[string]string{
		"empty": "", "prefix": "chc_", "made up": "chc_" + strings.Repeat("a", 60), "access token": held.Access, "refresh token": held.Refresh,
		"long": "chc_" + strings.Repeat("a", 8000), "with a line": "chc_\r\nx", "with a NUL": "chc_\x00",
	} {
		want := "400 invalid_grant"
		if text == "" {
			want = "400 invalid_request"
		}
		row("code that is none: "+name, want, func(x *siege) string { return x.form("/oauth/token", a.redeem(text)) })
		if text != held.Refresh {
			row("refresh token that is none: "+name, want, func(x *siege) string { return x.form("/oauth/token", a.renew(text)) })
		}
	}
	for _, kind := range []string{"password", "client_credentials", "implicit", "urn:ietf:params:oauth:grant-type:device_code",
		"urn:ietf:params:oauth:grant-type:jwt-bearer", "urn:ietf:params:oauth:grant-type:token-exchange", "Refresh_Token"} {
		row("grant type "+kind, "400 unsupported_grant_type", func(x *siege) string {
			return x.form("/oauth/token", changed(a.renew(held.Refresh), "grant_type", kind, "username", "owner", "password", x.password,
				"subject_token", held.Access, "assertion", held.Access))
		})
	}
	return append(all, refreshAttacks(a, other, held)...)
}

// refreshAttacks are about refresh tokens, and the form of requests.
func refreshAttacks(a, other *app, held grantReply) (all []attack) {
	row := func(name, want string, do func(x *siege) string) {
		all = append(all, attack{"token: " + name, want, do})
	}
	good := a.renew(held.Refresh)
	row("refresh by another client", "400 invalid_grant", func(x *siege) string {
		return x.form("/oauth/token", changed(a.renew(x.fresh(a).Refresh), "client_id", other.id))
	})
	row("refresh with another resource", "400 invalid_target", func(x *siege) string {
		return x.form("/oauth/token", changed(a.renew(x.fresh(a).Refresh), "resource", x.s.url+"/sse"))
	})
	row("refresh with a foreign resource", "400 invalid_target", func(x *siege) string {
		return x.form("/oauth/token", changed(good, "resource", "https://evil.example/mcp"))
	})
	row("refresh with more scopes", "400 invalid_scope", func(x *siege) string { return x.form("/oauth/token", changed(good, "scope", "mcp:read mcp:shell")) })
	row("refresh with all scopes", "400 invalid_scope", func(x *siege) string { return x.form("/oauth/token", changed(good, "scope", "mcp:all")) })
	row("refresh with scopes of administrators", "400 invalid_scope", func(x *siege) string { return x.form("/oauth/token", changed(good, "scope", "mcp:admin")) })
	row("used refresh token", "400 invalid_grant", func(x *siege) string {
		first := x.fresh(a)
		second := x.tokens(a.renew(first.Refresh))
		third := x.tokens(a.renew(second.Refresh))
		got := x.form("/oauth/token", a.renew(first.Refresh))
		for _, g := range []grantReply{second, third} {
			if dead := x.dead(a, g); dead != bothDead {
				x.t.Errorf("the family of a token that came twice: %s", dead)
			}
		}
		return got
	})
	row("stolen refresh token on two machines", "400 invalid_grant", func(x *siege) string {
		stolen := x.fresh(a)
		thief := x.tokens(a.renew(stolen.Refresh))
		if thief = x.tokens(a.renew(thief.Refresh)); thief.Status != http.StatusOK { // it goes on
			x.t.Fatalf("the thief: %d %s", thief.Status, thief.Body)
		}
		owner := x.door.besieged(x.t)
		got := owner.form("/oauth/token", a.renew(stolen.Refresh)) // the owner's machine wakes up
		if dead := x.dead(a, thief); dead != bothDead {
			x.t.Errorf("the thief's tokens: %s", dead)
		}
		return got
	})
	row("refresh token of a revoked grant", bothDead, func(x *siege) string {
		g := x.fresh(a)
		if got := x.form("/oauth/revoke", url.Values{"token": {g.Refresh}, "client_id": {a.id}}); got != "200" {
			x.t.Errorf("revoke: %s", got)
		}
		return x.dead(a, g)
	})
	row("revocation by another client", "200", func(x *siege) string {
		g := x.fresh(a)
		got := x.form("/oauth/revoke", url.Values{"token": {g.Refresh}, "client_id": {other.id}})
		if x.opens(g.Access) != http.StatusOK {
			x.t.Error("a stranger revoked it")
		}
		return got
	})
	row("revocation of what is unknown", "200", func(x *siege) string {
		return x.form("/oauth/revoke", url.Values{"token": {"chr_" + strings.Repeat("a", 60)}, "client_id": {a.id}})
	})
	row("revocation of nothing", "400 invalid_request", func(x *siege) string { return x.form("/oauth/revoke", url.Values{"client_id": {a.id}}) })
	row("secret of a client", "401 invalid_client", func(x *siege) string { return x.form("/oauth/token", changed(good, "client_secret", "x")) })
	row("client by Basic", "401 invalid_client", func(x *siege) string { return x.form("/oauth/token", good, "Authorization", "Basic eDp5") })
	row("client by Bearer", "401 invalid_client", func(x *siege) string { return x.form("/oauth/token", good, "Authorization", "Bearer "+held.Access) })
	row("parameters in the URL", "400 invalid_request", func(x *siege) string { return x.form("/oauth/token?"+good.Encode(), nil) })
	row("code in the URL", "400 invalid_request", func(x *siege) string { return x.form("/oauth/token?code=x", good) })
	row("read", "405 invalid_request", func(x *siege) string { return x.get("/oauth/token?" + good.Encode()) })
	row("JSON", "415 invalid_request", func(x *siege) string { return x.json("/oauth/token", `{"grant_type":"refresh_token"}`) })
	row("text", "415 invalid_request", func(x *siege) string {
		return x.said(x.request(http.MethodPost, "/oauth/token", good.Encode(), "Content-Type", "text/plain"))
	})
	row("two types", "415 invalid_request", func(x *siege) string { return x.form("/oauth/token", good, "Content-Type", "application/json") })
	row("compressed", "415 invalid_request", func(x *siege) string { return x.form("/oauth/token", good, "Content-Encoding", "gzip") })
	row("huge", "413 invalid_request", func(x *siege) string { return x.form("/oauth/token", changed(good, "x", strings.Repeat("x", 1<<20))) })
	row("broken escape", "400 invalid_request", func(x *siege) string {
		return x.said(x.request(http.MethodPost, "/oauth/token", good.Encode()+"&x=%zz", "Content-Type", "application/x-www-form-urlencoded"))
	})
	row("foreign Host", "403 forbidden_host", func(x *siege) string { return x.form("/oauth/token", good, "Host", "evil.example") })
	for _, key := range []string{"grant_type", "refresh_token", "client_id"} {
		row("twice "+key, "400 invalid_request", func(x *siege) string {
			v := changed(good)
			v.Add(key, "x")
			return x.form("/oauth/token", v)
		})
	}
	row("twice resource", "400 invalid_target", func(x *siege) string {
		v := changed(good)
		v.Add("resource", "https://evil.example/mcp")
		return x.form("/oauth/token", v)
	})
	row("guesses without end", "429 temporarily_unavailable", func(x *siege) string {
		for i := range 400 {
			if got := x.form("/oauth/token", a.renew(fmt.Sprintf("chr_%060d", i))); got != "400 invalid_grant" {
				return got
			}
		}
		return "400 guesses"
	})
	return all
}

// endpointAttacks are tried at the endpoint of tools.
func endpointAttacks(held grantReply) (all []attack) {
	row := func(name, want string, do func(x *siege) string) {
		all = append(all, attack{"endpoint: " + name, want, do})
	}
	mcp := func(x *siege, header ...string) string {
		return x.json("/mcp", hello, append([]string{"Accept", "application/json, text/event-stream"}, header...)...)
	}
	bearer := func(name, want, text string) {
		row(name, want, func(x *siege) string { return mcp(x, "Authorization", text) })
	}
	row("nobody", "401 unauthenticated", func(x *siege) string { return mcp(x) })
	row("token in the URL", "400 token_in_query", func(x *siege) string {
		return x.json("/mcp?access_token="+held.Access, hello, "Accept", "application/json, text/event-stream")
	})
	row("token in a cookie", "401 unauthenticated", func(x *siege) string { return mcp(x, "Cookie", "access_token="+held.Access) })
	row("two tokens", "401 invalid_token", func(x *siege) string {
		return mcp(x, "Authorization", "Bearer "+held.Access, "Authorization", "Bearer "+held.Access)
	})
	bearer("refresh token", "401 invalid_token", "Bearer "+held.Refresh)
	bearer("half a token", "401 invalid_token", "Bearer "+held.Access[:len(held.Access)/2])
	bearer("longer token", "401 invalid_token", "Bearer "+held.Access+"A")
	bearer("altered token", "401 invalid_token", "Bearer "+held.Access[:len(held.Access)-2]+"__")
	bearer("made up token", "401 invalid_token", "Bearer cha_"+strings.Repeat("a", 60))
	bearer("token in capitals", "401 invalid_token", "Bearer "+strings.ToUpper(held.Access))
	bearer("token behind Basic", "401 unauthenticated", "Basic "+held.Access)
	bearer("token and more", "401 invalid_token", "Bearer "+held.Access+", Bearer x")
	bearer("JWT without signature", "401 invalid_token", "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJvd25lciJ9.")
	row("foreign Host", "403 forbidden_host", func(x *siege) string { return mcp(x, "Host", "evil.example", "Authorization", "Bearer "+held.Access) })
	row("foreign Origin", "403 forbidden_origin", func(x *siege) string {
		return mcp(x, "Origin", "https://evil.example", "Authorization", "Bearer "+held.Access)
	})
	for _, header := range []string{"X-Forwarded-Host", "X-Forwarded-Proto", "Forwarded", "X-Original-URL", "X-Rewrite-URL", "X-Forwarded-Prefix"} {
		row("issuer by "+header, "unmoved", func(x *siege) string {
			for _, path := range []string{"/.well-known/oauth-authorization-server", "/.well-known/oauth-protected-resource/mcp"} {
				value := map[string]string{"Forwarded": "host=evil.example;proto=https", "X-Forwarded-Proto": "https"}[header]
				if value == "" {
					value = "evil.example"
				}
				g := answered(x.t, x.via, x.request(http.MethodGet, path, "", header, value))
				if g.Status != http.StatusOK || strings.Contains(g.Body, "evil.example") || strings.Contains(g.Body, "https://") {
					return fmt.Sprint(g.Status, " ", g.Body)
				}
			}
			return "unmoved"
		})
	}
	for name, head := range map[string]string{
		"two lengths":              "Content-Length: 0\r\nContent-Length: 5\r\n",
		"unknown encoding":         "Transfer-Encoding: xchunked\r\n",
		"two encodings":            "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
		"header with a blank":      "Authorization : Bearer x\r\n",
		"header without colon":     "Authorization Bearer x\r\n",
		"two hosts":                "Host: evil.example\r\n",
		"negative length":          "Content-Length: -1\r\n",
		"header with a NUL":        "X: a\x00b\r\n",
		"header with a lone CR":    "X: a\rAuthorization: Bearer x\r\n",
		"encoding with a tab":      "Transfer-Encoding:\x0bchunked\r\n",
		"length with a plus":       "Content-Length: +5\r\n",
		"header with odd letters ": "X\x7f: a\r\n",
	} {
		want := "400 page"
		if name == "unknown encoding" || name == "two encodings" {
			want = "501 page"
		}
		row("smuggled: "+name, want, func(x *siege) string {
			return x.raw("POST /oauth/token HTTP/1.1\r\nHost: " + x.address + "\r\nContent-Type: application/x-www-form-urlencoded\r\n" + head + "\r\n")
		})
	}
	return all
}
