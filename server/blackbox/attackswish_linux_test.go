package blackbox

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"codehand/server/replaytest"
)

// TestOAuthWishes are attacks by clients that the owner does let in: they wish for more than was approved, at each place
// where they say anything, show a token where it does not belong, and hold on to what has ended. The rest of the attacks is
// TestOAuthAttacks, and with it in the table of docs/evidence.md.
func TestOAuthWishes(t *testing.T) {
	t.Parallel()
	d := opened(t, nil)
	a := d.register("http://127.0.0.1:33419/callback")
	held := a.signIn()
	plain := d.grantOf(t, held)
	all := slices.Concat(wishes(a, plain), narrowings(a), straysOf(a, held), endings(a))
	names := map[string]bool{}
	for _, k := range all {
		if names[k.name] {
			t.Errorf("two attacks are called %q", k.name)
		}
		names[k.name] = true
		t.Run(k.name, func(t *testing.T) {
			if got := k.do(d.besieged(t)); got != k.want {
				t.Errorf("got %q, want %q", got, k.want)
			}
		})
	}
	if got := d.opens(held.Access); got != http.StatusOK {
		t.Errorf("the owner's token: %d", got)
	}
	t.Logf("%d attacks", len(all))
}

// A grantRow is what the owner's command says of a grant, without what differs from one grant to the next.
type grantRow map[string]any

// grants are those in force, by id.
func (d *door) grants(t *testing.T) map[string]grantRow {
	t.Helper()
	var all []grantRow
	must(t, json.Unmarshal([]byte(d.output("grants", "list", "--json")), &all))
	by := map[string]grantRow{}
	for _, g := range all {
		by[fmt.Sprint(g["id"])] = g
		for _, key := range []string{"id", "created", "expires", "last_use"} {
			delete(g, key)
		}
	}
	return by
}

// grantOf is the grant of a token.
func (d *door) grantOf(t *testing.T, g grantReply) grantRow {
	t.Helper()
	for id, row := range d.grants(t) {
		if strings.Contains(g.Access, id) {
			return row
		}
	}
	t.Fatalf("no grant of %d %s", g.Status, g.Body)
	return nil
}

// wished says how a grant differs from one of a request without wishes.
func (x *siege) wished(g grantReply, plain grantRow) string {
	x.t.Helper()
	if g.Status != http.StatusOK {
		return fmt.Sprintf("%d %s", g.Status, g.Error)
	}
	got := x.grantOf(x.t, g)
	if was, is := fmt.Sprint(plain), fmt.Sprint(got); was != is {
		return "it is " + is + " instead of " + was
	}
	if g.Scope != "mcp:read mcp:write" {
		return "the scope is " + g.Scope
	}
	return "as any other"
}

// wishes are parameters that a client adds, at the start and when it gets its tokens.
func wishes(a *app, plain grantRow) (all []attack) {
	for key, value := range map[string]string{
		"mode": "bypassPermissions", "max_mode": "bypassPermissions", "access": "all", "root": "/", "roots": "/", "life": "99999999",
		"principal": "root", "who": "root", "decision": "approve", "login_hint": "root", "id_token_hint": "x", "acr_values": "0",
		"claims": `{"scope":"mcp:all"}`, "authorization_details": `[{"type":"mode","mode":"bypassPermissions"}]`, "audience": "https://evil.example/",
		"approval_prompt": "auto", "max_age": "0", "ui_locales": "</title><script>", "display": "popup", "nonce": "n",
	} {
		all = append(all, attack{"wish of a sign-in: " + key, "as any other", func(x *siege) string {
			p := x.owner()
			back, err := url.Parse(p.walk(a.authorizeURL(changed(a.wish(), key, value))))
			must(x.t, err)
			return x.wished(x.tokens(a.redeem(back.Query().Get("code"))), plain)
		}})
	}
	for key, value := range map[string]string{
		"scope": "mcp:all", "mode": "bypassPermissions", "max_mode": "bypassPermissions", "roots": "/", "principal": "root", "audience": "x",
		"subject_token": "x", "actor_token": "x", "requested_token_type": "x", "expires_in": "99999999", "life": "99999999",
	} {
		all = append(all, attack{"wish with a code: " + key, "as any other", func(x *siege) string {
			return x.wished(x.tokens(changed(a.redeem(a.code(x.owner())), key, value)), plain)
		}})
		if key == "scope" {
			continue // a refresh may name fewer: narrowings
		}
		all = append(all, attack{"wish with a refresh token: " + key, "as any other", func(x *siege) string {
			return x.wished(x.tokens(changed(a.renew(x.fresh(a).Refresh), key, value)), plain)
		}})
	}
	return all
}

// called says what becomes of a call of a tool with a token: the status, and the code of a refusal.
func (x *siege) called(token, tool string, args ...any) string {
	x.t.Helper()
	c := &replaytest.HTTPClient{T: x.t, URL: x.s.url + "/mcp", Token: token, Modern: true}
	got := c.Do(c.Request(x.t.Context(), http.MethodPost, c.URL, c.CallBody("1", tool, replaytest.AsJSON(x.t, args...), "")))
	if m := jsonError.FindStringSubmatch(got.Answer); m != nil {
		return fmt.Sprintf("%d %s", got.Status, m[1])
	}
	var r struct {
		Result struct {
			IsError bool
			Content []struct{ Text string }
		}
	}
	if err := json.Unmarshal([]byte(got.Answer), &r); err != nil || len(r.Result.Content) == 0 {
		return fmt.Sprintf("%d %s", got.Status, got.Answer)
	}
	if r.Result.IsError {
		code, _, _ := strings.Cut(r.Result.Content[0].Text, ":")
		return fmt.Sprintf("%d %s", got.Status, code)
	}
	return fmt.Sprintf("%d done", got.Status)
}

// approved signs in with choices on the page that asks.
func (x *siege) approved(a *app, choices ...string) grantReply {
	x.t.Helper()
	p := x.owner()
	p.fill = func(f *webForm) {
		for i := 0; i < len(choices); i += 2 {
			if !slices.Contains(f.options[choices[i]], choices[i+1]) && f.kinds[choices[i]] != "select" {
				x.t.Fatalf("the page offers no %s %s: %q", choices[i], choices[i+1], f.options)
			}
			f.values.Set(choices[i], choices[i+1])
		}
	}
	g := x.tokens(a.redeem(a.code(p)))
	if g.Status != http.StatusOK {
		x.t.Fatalf("no tokens: %d %s", g.Status, g.Body)
	}
	return g
}

// narrowings are clients that were given little, or asked for little, and then want more.
func narrowings(a *app) (all []attack) {
	row := func(name, want string, do func(x *siege) string) {
		all = append(all, attack{"narrow: " + name, want, do})
	}
	file := func(x *siege, name string) []any {
		return []any{"file_path", filepath.Join(x.work, name+".txt"), "content", "x"}
	}
	// unwritten adds to got that a file is there, if it is.
	unwritten := func(x *siege, name, got string) string {
		if _, err := os.Stat(filepath.Join(x.work, name+".txt")); err == nil {
			return got + ", and it was written"
		}
		return got
	}
	row("read only, then a write", "403 insufficient_scope", func(x *siege) string {
		g := x.approved(a, "access", "read")
		return unwritten(x, "read", x.called(g.Access, "write_file", file(x, "read")...))
	})
	row("read only, then a write through call_tool", "200 SCOPE_MISSING", func(x *siege) string {
		g := x.approved(a, "access", "read")
		return unwritten(x, "through", x.called(g.Access, "call_tool", "name", "write_file", "arguments", map[string]any{
			"file_path": filepath.Join(x.work, "through.txt"), "content": "x"}))
	})
	row("read only, then a command", "403 insufficient_scope", func(x *siege) string {
		return x.called(x.approved(a, "access", "read").Access, "run_shell", "command", "touch "+filepath.Join(x.work, "run.txt"))
	})
	row("read only, then a refresh for writing", "400 invalid_scope", func(x *siege) string {
		return x.form("/oauth/token", changed(a.renew(x.approved(a, "access", "read").Refresh), "scope", "mcp:read mcp:write"))
	})
	row("read only, then a refresh without scope", "mcp:read", func(x *siege) string {
		return x.tokens(a.renew(x.approved(a, "access", "read").Refresh)).Scope
	})
	row("a command, which was not asked for", "403 insufficient_scope", func(x *siege) string {
		return x.called(x.fresh(a).Access, "run_shell", "command", "true")
	})
	row("fewer scopes by refresh, then a write", "403 insufficient_scope", func(x *siege) string {
		g := x.tokens(changed(a.renew(x.fresh(a).Refresh), "scope", "mcp:read"))
		if g.Scope != "mcp:read" {
			x.t.Errorf("the scope is %q", g.Scope)
		}
		return unwritten(x, "fewer", x.called(g.Access, "write_file", file(x, "fewer")...))
	})
	row("fewer scopes by refresh, then more than approved", "400 invalid_scope", func(x *siege) string {
		g := x.tokens(changed(a.renew(x.fresh(a).Refresh), "scope", "mcp:read"))
		return x.form("/oauth/token", changed(a.renew(g.Refresh), "scope", "mcp:read mcp:write mcp:shell"))
	})
	for _, key := range []string{"mode", "permission_mode", "permissions.mode"} {
		row("plan, then another mode by session_config "+key, "200 INPUT_INVALID", func(x *siege) string {
			return x.called(x.approved(a, "mode", "plan").Access, "session_config", "set", map[string]any{key: "bypassPermissions"})
		})
	}
	row("plan, then a write", "200 PLAN_MODE", func(x *siege) string {
		return unwritten(x, "plan", x.called(x.approved(a, "mode", "plan").Access, "write_file", file(x, "plan")...))
	})
	row("plan, then a wish in _meta", "200 PLAN_MODE", func(x *siege) string {
		c := &replaytest.HTTPClient{T: x.t, URL: x.s.url + "/mcp", Token: x.approved(a, "mode", "plan").Access, Modern: true}
		got := c.Call("1", "write_file", replaytest.AsJSON(x.t, file(x, "meta")...),
			`,"codehand/mode":"bypassPermissions","codehand/permissions":"allow","mode":"bypassPermissions","codehand/scopes":"mcp:all"`)
		if strings.Contains(got.Answer, "PLAN_MODE") {
			return unwritten(x, "meta", fmt.Sprintf("%d PLAN_MODE", got.Status))
		}
		return unwritten(x, "meta", got.Answer)
	})
	row("plan, then a wish in a header", "200 PLAN_MODE", func(x *siege) string {
		c := &replaytest.HTTPClient{T: x.t, URL: x.s.url + "/mcp", Token: x.approved(a, "mode", "plan").Access, Modern: true, Extra: map[string]string{
			"X-Codehand-Mode": "bypassPermissions", "X-Codehand-Principal": "root", "X-Codehand-Scopes": "mcp:all", "X-Remote-User": "root"}}
		got := c.Call("1", "write_file", replaytest.AsJSON(x.t, file(x, "header")...), "")
		if strings.Contains(got.Answer, "PLAN_MODE") {
			return unwritten(x, "header", fmt.Sprintf("%d PLAN_MODE", got.Status))
		}
		return unwritten(x, "header", got.Answer)
	})
	return all
}

// straysOf show a good token where it does not belong, or smuggle it.
func straysOf(a *app, held grantReply) (all []attack) {
	row := func(name, want string, do func(x *siege) string) {
		all = append(all, attack{"stray: " + name, want, do})
	}
	mcp := []string{"Accept", "application/json, text/event-stream"}
	for _, key := range []string{"access_token", "token", "bearer_token", "authorization", "Authorization"} {
		want := "401 unauthenticated"
		if strings.HasSuffix(key, "token") && key != "bearer_token" {
			want = "400 token_in_query"
		}
		row("in the query of the endpoint: "+key, want, func(x *siege) string {
			return x.json("/mcp?"+url.Values{key: {held.Access}}.Encode(), hello, mcp...)
		})
	}
	row("in the query of SSE", "400 token_in_query", func(x *siege) string { return x.get("/sse?access_token=" + held.Access) })
	row("in the query beside a header", "400 token_in_query", func(x *siege) string {
		return x.json("/mcp?access_token="+held.Access, hello, append(mcp, "Authorization", "Bearer "+held.Access)...)
	})
	row("in the query of metrics", "400 token_in_query", func(x *siege) string { return x.get("/metrics?access_token=" + held.Access) })
	row("as a path", "404 not_found", func(x *siege) string { return x.json("/mcp/"+held.Access, hello, mcp...) })
	row("as a user in the URL", "401 unauthenticated", func(x *siege) string {
		return x.json(strings.Replace(x.s.url, "://", "://x:"+held.Access+"@", 1)+"/mcp", hello, mcp...)
	})
	row("as a form", "401 unauthenticated", func(x *siege) string { return x.form("/mcp", url.Values{"access_token": {held.Access}}) })
	for _, header := range []string{
		"X-Access-Token", "X-Api-Key", "X-Authorization", "X-Forwarded-Access-Token", "X-Auth-Request-Access-Token", "Proxy-Authorization",
		"Sec-WebSocket-Protocol", "Cookie", "Mcp-Session-Id", "X-Forwarded-User", "X-Amzn-Oidc-Accesstoken",
	} {
		row("in the header "+header, "401 unauthenticated", func(x *siege) string {
			return x.json("/mcp", hello, append(mcp, header, "Bearer "+held.Access)...)
		})
	}
	row("as the owner's cookie", "403 page", func(x *siege) string {
		_, f, at := x.asked(a)
		return x.form(at.url, approval(f), "Origin", x.s.url, "Cookie", "codehand_signin="+held.Access+"; codehand_session="+held.Access)
	})
	head := func(x *siege, line, more string) string {
		return line + " HTTP/1.1\r\nHost: " + x.address + "\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n" + more
	}
	row("in a trailer", "401 unauthenticated", func(x *siege) string {
		return x.raw(head(x, "POST /mcp", "Transfer-Encoding: chunked\r\nTrailer: Authorization\r\n\r\n") +
			fmt.Sprintf("%x\r\n%s\r\n0\r\nAuthorization: Bearer %s\r\n\r\n", len(hello), hello, held.Access))
	})
	row("in a request behind another one", "401 unauthenticated", func(x *siege) string { // the first has no token, and its answer is the first
		return x.raw(head(x, "POST /mcp", fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(hello), hello)) +
			head(x, "POST /mcp", fmt.Sprintf("Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", held.Access, len(hello), hello)))
	})
	row("length and chunks", "401 unauthenticated", func(x *siege) string { // the second request is a body, or nothing
		return x.raw(head(x, "POST /mcp", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n") +
			head(x, "POST /mcp", fmt.Sprintf("Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", held.Access, len(hello), hello)))
	})
	row("a foreign host in the request line", "403 forbidden_host", func(x *siege) string {
		return x.raw(head(x, "POST http://evil.example/mcp", fmt.Sprintf("Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", held.Access, len(hello), hello)))
	})
	row("another method by a header", "405 invalid_request", func(x *siege) string {
		return x.get("/oauth/token?"+a.renew(held.Refresh).Encode(), "X-HTTP-Method-Override", "POST", "X-Method-Override", "POST")
	})
	row("another address by a header", "429 temporarily_unavailable", func(x *siege) string {
		for i := range 400 {
			from := fmt.Sprintf("203.0.113.%d", i%250)
			got := x.form("/oauth/token", a.renew(fmt.Sprintf("chr_%060d", i)), "X-Forwarded-For", from, "Forwarded", "for="+from, "X-Real-IP", from)
			if got != "400 invalid_grant" {
				return got
			}
		}
		return "400 guesses"
	})
	return all
}

// endings are tokens that are used while, and after, they end.
func endings(a *app) (all []attack) {
	row := func(name, want string, do func(x *siege) string) {
		all = append(all, attack{"ended: " + name, want, do})
	}
	row("stolen refresh token on two machines at once", "at most one goes on", func(x *siege) string {
		g := x.fresh(a)
		next := make(chan grantReply, 16)
		var both sync.WaitGroup
		for range cap(next) {
			machine := x.door.besieged(x.t)
			both.Go(func() { next <- machine.tokens(a.renew(g.Refresh)) })
		}
		both.Wait()
		close(next)
		goes := 0
		for got := range next {
			if got.Status == http.StatusOK && x.tokens(a.renew(got.Refresh)).Status == http.StatusOK {
				goes++
			}
		}
		if goes > 1 {
			return fmt.Sprintf("%d go on", goes)
		}
		return "at most one goes on"
	})
	row("refreshes while the grant is revoked", bothDead, func(x *siege) string {
		g := x.fresh(a)
		kept := make(chan grantReply, 1)
		stop := make(chan struct{})
		begun := make(chan struct{})
		go func() {
			last := g
			defer func() { kept <- last }()
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				got := x.tokens(a.renew(last.Refresh))
				if got.Status != http.StatusOK {
					return
				}
				if last = got; i == 0 {
					close(begun)
				}
			}
		}()
		<-begun
		if got := x.door.besieged(x.t).form("/oauth/revoke", url.Values{"token": {g.Refresh}, "client_id": {a.id}}); got != "200" {
			x.t.Errorf("revoke: %s", got)
		}
		close(stop)
		return x.dead(a, <-kept)
	})
	row("code of a sign-in that the owner ended", "400 invalid_grant", func(x *siege) string {
		code := a.code(x.owner())
		g := x.tokens(a.redeem(code))
		var ids []string
		for id := range x.grants(x.t) {
			if strings.Contains(g.Access, id) {
				ids = append(ids, id)
			}
		}
		x.output(append([]string{"grants", "revoke"}, ids...)...)
		if dead := x.dead(a, g); dead != bothDead {
			x.t.Errorf("the tokens: %s", dead)
		}
		return x.form("/oauth/token", a.redeem(code))
	})
	row("revoked access token", "401", func(x *siege) string { // its refresh token goes on, as RFC 7009 allows
		g := x.fresh(a)
		if got := x.form("/oauth/revoke", url.Values{"token": {g.Access}, "token_type_hint": {"refresh_token"}, "client_id": {a.id}}); got != "200" {
			x.t.Errorf("revoke: %s", got)
		}
		return fmt.Sprint(x.opens(g.Access))
	})
	row("a session goes on when its grant has ended", "401 invalid_token", func(x *siege) string {
		g := x.fresh(a)
		c := &replaytest.HTTPClient{T: x.t, URL: x.s.url + "/mcp", Token: g.Access}
		c.Hello()
		if got := x.form("/oauth/revoke", url.Values{"token": {g.Refresh}, "client_id": {a.id}}); got != "200" {
			x.t.Errorf("revoke: %s", got)
		}
		return x.json("/mcp", `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, "Accept", "application/json, text/event-stream",
			"Authorization", "Bearer "+g.Access, "Mcp-Session-Id", c.Session)
	})
	return all
}

// TestStolenAndKilled: that a refresh token was used is known to the server that comes after a kill -9, and so is what was
// revoked before it. An ask, a code and a browser's session survive it, once.
func TestStolenAndKilled(t *testing.T) {
	t.Parallel()
	d := opened(t, nil)
	a := d.register("http://127.0.0.1:33419/callback")
	stolen := a.signIn()
	thief := a.token(a.renew(stolen.Refresh))
	thief = a.token(a.renew(thief.Refresh))
	revoked := a.signIn()
	d.post("/oauth/revoke", "application/x-www-form-urlencoded", url.Values{"token": {revoked.Refresh}, "client_id": {a.id}}.Encode(), nil)
	code := a.code(d.person())
	spent := a.code(d.person())
	good := a.token(a.redeem(spent))
	d.again()
	x := d.besieged(t)
	if got := x.form("/oauth/token", a.renew(stolen.Refresh)); got != "400 invalid_grant" {
		t.Errorf("the stolen token: %s", got)
	}
	for name, g := range map[string]grantReply{"stolen": thief, "revoked": revoked} {
		if dead := x.dead(a, g); dead != bothDead {
			t.Errorf("tokens of the %s grant: %s", name, dead)
		}
	}
	if g := a.token(a.redeem(code)); g.Status != http.StatusOK {
		t.Errorf("a code from before: %d %s", g.Status, g.Body)
	}
	if got := d.opens(good.Access); got != http.StatusOK {
		t.Errorf("a token from before: %d", got)
	}
	d.again()
	for name, c := range map[string]string{"used before two kills": spent, "used before one": code} {
		if got := x.form("/oauth/token", a.redeem(c)); got != "400 invalid_grant" {
			t.Errorf("a code %s: %s", name, got)
		}
	}
	if dead := x.dead(a, good); dead != bothDead {
		t.Errorf("the tokens of a code that came twice: %s", dead)
	}
}
