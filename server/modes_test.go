package server

import (
	"testing"

	"codehand/server/auth"
	"codehand/tools/permission"
)

// The orders of modes of tokens and of sessions are written in two rooms that do not know each other. They are the same.
func TestModesHaveOneOrder(t *testing.T) {
	t.Parallel()
	all := []permission.Mode{permission.Plan, permission.DontAsk, permission.Default, permission.AcceptEdits, permission.Auto, permission.Bypass}
	for _, m := range all {
		for _, most := range all {
			name, limit := m.String(), most.String()
			if who, _ := auth.Resolve("alice", "", auth.Values{Mode: &name, MaxMode: &limit}); who.Mode != m.AtMost(most).String() {
				t.Errorf("a principal in %s, at most %s: %s; a session: %v", name, limit, who.Mode, m.AtMost(most))
			}
		}
	}
}
