package sessions

import (
	"testing"

	"codehand/tools/permission"
	"codehand/tools/session"
)

// What persons allowed a session ends with its process, no matter who comes back to it; plan mode, and what narrows it, do
// not.
func TestLasting(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ key, value, want string }{ // of a session that starts in dontAsk
		{GrantsCell, `[{"Rule":"Bash(rm *)"}]`, ""},
		{ModeCell, asText(t, permission.AcceptEdits), ""},
		{ModeCell, asText(t, permission.Bypass), ""},
		{ModeCell, asText(t, permission.DontAsk), ""},
		{ModeCell, `"damaged`, ""},
		{ModeCell, asText(t, permission.Plan), asText(t, permission.Plan)},
		{PlanCell, asText(t, session.Plan{Path: "/p.md", Before: permission.AcceptEdits, Left: true}), asText(t, session.Plan{Path: "/p.md", Before: permission.DontAsk})},
		{PlanCell, `7`, ""},
		{LimitCell, asText(t, session.Limit{Mode: "acceptEdits", Rules: []session.SetRule{{Rule: "Edit"}}}), asText(t, session.Limit{Rules: []session.SetRule{{Rule: "Edit"}}})},
		{LimitCell, asText(t, session.Limit{Mode: "plan"}), asText(t, session.Limit{Mode: "plan"})},
		{LimitCell, `7`, ""},
		{"cell.todos", `[]`, `[]`},
		{"seen.x", "bytes", "bytes"},
	} {
		if got := string(lasting(c.key, []byte(c.value), permission.DontAsk)); got != c.want {
			t.Errorf("of %s %s lasts %q, want %q", c.key, c.value, got, c.want)
		}
	}
}
