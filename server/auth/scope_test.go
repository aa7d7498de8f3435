package auth

import (
	"strings"
	"testing"
)

func TestParseScopes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ names, want string }{
		{"", ""},
		{"mcp:read", "mcp:read"},
		{"mcp:write", "mcp:read mcp:write"},
		{"mcp:shell", "mcp:read mcp:write mcp:shell"},
		{"mcp:web", "mcp:web"},
		{"mcp:web mcp:read mcp:read", "mcp:read mcp:web"},
		{"mcp:all", "mcp:read mcp:write mcp:shell mcp:web"},
		{"mcp:admin", "mcp:admin"},
		{"mcp:admin mcp:all", "mcp:read mcp:write mcp:shell mcp:web mcp:admin"},
	} {
		s, err := ParseScopes(strings.Fields(c.names))
		if err != nil || s.String() != c.want {
			t.Errorf("%q: got %q (%v), want %q", c.names, s, err, c.want)
		}
		again, err := ParseScopes(strings.Fields(s.String()))
		if err != nil || again != s {
			t.Errorf("%q is read again as %q (%v)", s, again, err)
		}
	}
	for _, name := range []string{"", "read", "mcp:Read", "mcp:reed", " mcp:read", "mcp:*"} {
		if s, err := ParseScopes([]string{"mcp:read", name}); err == nil || s != 0 || !strings.Contains(err.Error(), "mcp:shell") {
			t.Errorf("%q: got %v, %v; want an error that lists the scopes", name, s, err)
		}
	}
}

func TestScopesHas(t *testing.T) {
	t.Parallel()
	if Scopes(0).Has(Read) {
		t.Error("the zero value may read")
	}
	if s := Read | Web; !s.Has(Read) || !s.Has(Read|Web) || s.Has(Read|Write) {
		t.Errorf("%q has the wrong ones", s)
	}
}
