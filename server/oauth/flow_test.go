package oauth

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"codehand/server/auth"
)

func TestSignInAndRefresh(t *testing.T) {
	x := newRig(t).durable()
	client := x.register()
	id := x.authorize(asks(client))
	ask, err := x.s.Pending(t.Context(), id)
	must(t, err)
	if ask.Client.Name != "Testing" || !ask.Client.Loopback || ask.Client.Kind != Registered || ask.Client.Host != "" ||
		ask.Resource != site+"/mcp" || ask.Expires.Sub(ask.Created) != AskLife {
		t.Errorf("the ask is %+v", ask)
	}
	to, err := x.s.Approve(t.Context(), id, usual())
	must(t, err)
	u, err := url.Parse(to)
	must(t, err)
	if q := u.Query(); !strings.HasPrefix(to, back+"?") || q.Get("state") != "st&te" || q.Get("iss") != site {
		t.Errorf("the browser goes to %s", to)
	}
	a := x.post(pathToken, exchange(client, u.Query().Get("code")))
	if v := a.json(t); v["token_type"] != "Bearer" || v["scope"] != "mcp:read mcp:write" || v["expires_in"] != 3600.0 ||
		a.Header.Get("Cache-Control") != "no-store" || a.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("answered %v, %v", v, a.Header)
	}
	first := x.tokens(client, a)
	f, mine, err := x.s.Find(first.access, x.clock())
	if err != nil || !mine || f.ID != "owner" || !strings.HasPrefix(f.Via, "oauth:") {
		t.Errorf("found %+v, %v, %v", f, mine, err)
	}
	x.pass(59 * time.Minute)
	x.again()
	if !x.works(first.access) {
		t.Error("a restart signed the client out")
	}
	x.pass(time.Minute)
	if x.works(first.access) {
		t.Error("an access token works after its time")
	}
	_, second := x.refresh(first)
	if !x.works(second.access) || second.refresh == first.refresh {
		t.Error("the new tokens are not good")
	}
	grants, err := x.s.Grants(t.Context())
	must(t, err)
	if len(grants) != 1 || grants[0].Principal != "owner" || grants[0].LastUse.IsZero() || grants[0].Client.ID != client {
		t.Fatalf("the grants are %+v", grants)
	}
	must(t, x.s.RevokeGrant(t.Context(), grants[0].ID))
	if x.works(second.access) || x.ended != 1 {
		t.Error("a revoked token works")
	}
	if a, _ := x.refresh(second); a.StatusCode != http.StatusBadRequest || a.problem() != "invalid_grant" {
		t.Errorf("a revoked refresh token: %d %s", a.StatusCode, a.body)
	}
	if names, reason := x.happened(); names != "login refresh logout" || reason != "revoked by the operator" {
		t.Errorf("the audit has %q, %q", names, reason)
	}
	if valid, mine := x.s.Valid(auth.Principal{ID: "owner", Via: f.Via}); valid || !mine {
		t.Errorf("a revoked grant: valid %v, mine %v", valid, mine)
	}
}
