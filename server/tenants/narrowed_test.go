package tenants

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"codehand/filestate/leaktest"
	"codehand/server/auth"
	"codehand/tools/tool"
)

// one is a Source with one token, which is narrowed to directories.
type one []string

func (o one) Find(string, time.Time) (auth.Found, bool, error) {
	return auth.Found{ID: "ann", Via: "oauth:one", Token: "t", Values: auth.Values{Roots: o, Scopes: []string{"mcp:read"}}}, true, nil
}
func (one) Valid(auth.Principal) (valid, mine bool) { return true, true }

// narrowed is who comes with a token for directories.
func narrowed(t *testing.T, v auth.Values, dirs ...string) auth.Principal {
	t.Helper()
	p, err := auth.New(auth.Options{Mode: "owner", TokenFile: filepath.Join(leaktest.Dir(t), "tokens.jsonl"), Sources: []auth.Source{one(dirs)},
		Named: map[string]auth.Values{"ann": v}})
	must(t, err)
	r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
	r.Header.Set("Authorization", "Bearer x")
	who, err := p.Authenticate(r)
	must(t, err)
	return who
}

// A token for some of the roots begins in the first of them as the principal has them; that one gets the seed, and a
// part of a root never does.
func TestSeedOfNarrowed(t *testing.T) {
	base, seed := auth.Real(leaktest.Dir(t)), leaktest.Dir(t)
	must(t, os.WriteFile(filepath.Join(seed, "README"), nil, 0o600))
	a, b, c := filepath.Join(base, "a"), filepath.Join(base, "b"), filepath.Join(base, "c")
	m := maker(t, leaktest.Dir(t), nil)
	who := narrowed(t, auth.Values{Roots: []string{a, b, c}, Seed: &seed}, c, b)
	p, err := NewRegistry(m).make(who)
	must(t, err)
	t.Cleanup(func() { _ = p.Space.Close() })
	if p.Space.Cwd() != b {
		t.Errorf("a session begins in %s", p.Space.Cwd())
	}
	for dir, want := range map[string]bool{b: true, c: false, a: false} {
		if _, err := os.Stat(filepath.Join(dir, "README")); (err == nil) != want {
			t.Errorf("%s is seeded: %v, want %v", dir, err == nil, want)
		}
	}
	write := tool.Tool{Spec: tool.Spec{Name: "write_file", Scope: tool.ScopeWrite}}
	if no := p.Forbids(write); no == nil || no.Code != tool.ScopeMissing || !strings.Contains(no.Text, "sign in again") {
		t.Errorf("a scope that the person did not allow: %v", no)
	}
	p.Who = auth.Principal{ID: "ann", Via: "token:x"}
	if no := p.Forbids(write); no == nil || !strings.Contains(no.Text, "operator can make a token") {
		t.Errorf("a scope that a static token lacks: %v", no)
	}
	part, err := NewRegistry(m).make(narrowed(t, auth.Values{Roots: []string{a}, Seed: &seed}, filepath.Join(a, "part")))
	must(t, err)
	t.Cleanup(func() { _ = part.Space.Close() })
	if _, err := os.Stat(filepath.Join(a, "part", "README")); err == nil {
		t.Error("a part of a root is seeded")
	}
}

// A directory that is exchanged for a link between the look at the token and the opening is not served.
func TestExchangedRoot(t *testing.T) {
	base, elsewhere := auth.Real(leaktest.Dir(t)), leaktest.Dir(t)
	part := filepath.Join(base, "part")
	must(t, os.Mkdir(part, 0o700))
	must(t, os.WriteFile(filepath.Join(elsewhere, "secret"), nil, 0o600))
	m := maker(t, leaktest.Dir(t), map[string]string{"permissions.additional_dirs": leaktest.Dir(t)})
	who := narrowed(t, auth.Values{Roots: []string{base}}, part)
	p, err := NewRegistry(m).make(who)
	must(t, err)
	must(t, p.Space.Close())
	must(t, os.Remove(part))
	if err := os.Symlink(elsewhere, part); err != nil {
		t.Skipf("links cannot be made here: %v", err)
	}
	if p, err := NewRegistry(m).make(who); err == nil || !strings.Contains(err.Error(), "exchanged") {
		t.Errorf("it is served: %v", err)
		_ = p.Space.Close()
	}
}
