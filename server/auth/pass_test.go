package auth

import (
	"encoding/json"
	"errors"
	"testing"
)

// A pass from another node is good only for what holds here: the same token of the same principal, with the rights that
// it has here.
func TestPass(t *testing.T) {
	t.Parallel()
	f := tokenFile(t)
	_, text := f.add(t, Token{Principal: "ann"})
	first := porter(t, f, nil)
	second := porter(t, f, func(o *Options) { o.Named = map[string]Values{"ann": {Mode: new("plan")}} })
	who, err := first.Authenticate(ask(text))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(who.Pass())
	if err != nil {
		t.Fatal(err)
	}
	var pass Pass
	if err := json.Unmarshal(raw, &pass); err != nil {
		t.Fatal(err)
	}
	if known, err := second.Know(pass); err != nil || known.ID != "ann" || known.Via != who.Via || known.Mode != "plan" {
		t.Errorf("got %+v, %v", known, err)
	}
	for name, bad := range map[string]Pass{
		"nobody":            {},
		"another principal": {ID: "bob", Via: who.Via},
		"an unknown token":  {ID: "ann", Via: "token:aaaaaaaaaa"},
		"no token":          {ID: "ann", Via: ModeNone},
		"no issuer of ours": {ID: "ann", Via: "oidc:a:b:1", Found: &Found{ID: "ann", Via: "oidc:a:b:1"}},
	} {
		_, err := second.Know(bad)
		refusal, ok := errors.AsType[*Error](err)
		if !ok || refusal.Code != "invalid_token" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := f.Revoke(func(Token) bool { return true }); err != nil {
		t.Fatal(err)
	}
	if err := second.Reload(); err != nil {
		t.Fatal(err)
	}
	if _, err := second.Know(pass); err == nil {
		t.Error("a revoked token is known")
	}
}
