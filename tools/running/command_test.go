package running

import (
	"testing"
	"time"

	"codehand/tools/session"
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
