package running

import (
	"strings"
	"testing"
	"time"

	"codehand/tools/session"
	"codehand/tools/shell"
	"codehand/tools/tool"
)

func TestAnswerBy(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	for _, c := range []struct {
		name         string
		backgroundMS int
		by, want     time.Time
	}{
		{"never", 0, time.Time{}, time.Time{}},
		{"the setting", 110_000, time.Time{}, at(110)},
		{"the client", 110_000, at(45), at(45)},
		{"the client alone", 0, at(45), at(45)},
		{"the setting is sooner", 10_000, at(45), at(10)},
		{"nearly over", 110_000, at(1), at(5)},
		{"over", 0, at(-7), at(5)},
	} {
		env := tool.Env{State: &session.State{Prefs: session.Prefs{ShellBackgroundMS: c.backgroundMS}}, AnswerBy: c.by}
		if got := AnswerBy(env, start); !got.Equal(c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// The note named permissions.unprotect for HEAD beside .git, which no setting opens.
func TestAsideNote(t *testing.T) {
	t.Parallel()
	for aside, opens := range map[string]bool{
		"/w/.envrc": true, "/w/.git/HEAD": true, "/w/HEAD": false, "/w/.envrc, /w/HEAD": true, "/w/sub/HEAD": false,
	} {
		note := asideNote(shell.Info{Trouble: shell.Trouble{Aside: aside}})
		if !strings.Contains(note, aside) || strings.Contains(note, "permissions.unprotect") != opens {
			t.Errorf("%s: %s", aside, note)
		}
		if other := strings.HasSuffix(aside, "/HEAD") && !strings.HasSuffix(aside, ".git/HEAD"); strings.Contains(note, "use another name") != other {
			t.Errorf("%s: %s", aside, note)
		}
	}
}
