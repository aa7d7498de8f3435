package tenants

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"codehand/server/auth"
	"codehand/server/config"
)

// A directory with the short name of before goes to a name that worked here or that the operator vouches for, and to no
// other: a person finds a name with the same short one within minutes.
func TestCarryOver(t *testing.T) {
	t.Parallel()
	const id = "https://issuer.example#Ann"
	who := auth.Principal{ID: id, Slug: auth.Slug(id), Via: "oidc:x"}
	for name, c := range map[string]struct {
		via    string
		worked bool
		named  bool
		want   bool
	}{
		"a name of an issuer":                    {via: "oidc:x"},
		"one that worked here":                   {via: "oidc:x", worked: true, want: true},
		"one that the operator's settings name":  {via: "oidc:x", named: true, want: true},
		"one of a token that the operator makes": {via: "token:x", want: true},
		"not known":                              {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := t.TempDir()
			m := &Maker{State: filepath.Join(base, "state"), Log: slog.New(slog.DiscardHandler),
				Worked: func(string) bool { return c.worked }}
			if c.named {
				m.Config.Principals = config.Principals{Named: map[string]auth.Values{id: {}}}
			}
			old := filepath.Join(base, "w", "x-"+auth.OldSlug(id), "own")
			if err := os.MkdirAll(old, 0o700); err != nil {
				t.Fatal(err)
			}
			who := who
			who.Via = c.via
			root := filepath.Join(base, "w", "x-"+who.Slug, "own")
			who.Roots = []string{root, filepath.Join(filepath.Dir(root), "two"), filepath.Join(base, "shared")}
			r := NewRegistry(m)
			for range 2 {
				if err := r.settle(who); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := os.Stat(root); (err == nil) != c.want {
				t.Errorf("carried over: %v, want %v", err == nil, c.want)
			}
			other := who
			other.ID = "somebody else"
			if err := r.settle(other); err == nil {
				t.Error("another name has the same directories")
			}
		})
	}
}
