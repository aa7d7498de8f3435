package notices

import (
	"log/slog"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/filestate/leaktest"
	"codehand/server/replies"
	"codehand/server/request"
	"codehand/server/state"
	"codehand/server/tenants"
	"codehand/tools/session"
	"codehand/tools/skills"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// TestKeepLevel: the level that a connection asked for is in the Store, for that connection alone; one that cannot be
// kept fails the turn.
func TestKeepLevel(t *testing.T) {
	t.Parallel()
	store := state.NewMemory(state.MemoryOptions{})
	n := New(Parts{
		Replies: replies.Replies{Log: slog.New(slog.DiscardHandler)},
		Memory:  func(key session.Key) session.Memory { return state.Scoped(store, "sess."+key.Session) },
	})
	one, other := session.Key{Principal: "bo", Session: "one"}, session.Key{Principal: "bo", Session: "other"}
	turn := &request.Turn{Req: request.Request{Shelf: one}}
	n.KeepLevel(turn, mcp.LoggingLevelWarning)
	if turn.Failure != nil {
		t.Fatal(turn.Failure.Message)
	}
	for key, want := range map[session.Key]mcp.LoggingLevel{one: mcp.LoggingLevelWarning, other: ""} {
		if got, err := n.wishes(key).Load(t.Context()); err != nil || got.Level != want {
			t.Errorf("%s: %q, %v, want %q", key.Session, got.Level, err, want)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if n.KeepLevel(turn, mcp.LoggingLevelError); turn.Failure == nil {
		t.Error("a level that could not be kept is no failure")
	}
}

func TestNearSkills(t *testing.T) {
	t.Parallel()
	at := &tenants.Tenant{SkillDirs: []skills.Dir{{Path: "/opt/skills"}}}
	for file, want := range map[string]bool{
		"/opt/skills/go/SKILL.md":          true,
		"/opt/skills2/go/SKILL.md":         false,
		"/work/.claude/skills/go/SKILL.md": true,
		"/work/.codehand/skills/a.md":      true,
		"/work/claude/skills/a.md":         false,
	} {
		if got := nearSkills(at, file); got != want {
			t.Errorf("%s: %t", file, got)
		}
	}
}
