package session

import "testing"

// What a session has chosen holds as far as the operator and the client's profile allow it by now.
func TestChoicesUnder(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	usual := Usual{MaxRunes: 20_000, Prefs: Prefs{ReadDedup: true, GrepMode: "files_with_matches", ShellDefaultMS: 120_000, ShellMaxMS: 300_000, ListLimit: 100}}
	with := func(change func(*Usual)) Usual {
		u := usual
		change(&u)
		return u
	}
	for name, tt := range map[string]struct {
		chosen Choices
		under  Usual
		want   Usual
	}{
		"nothing":               {Choices{}, usual, usual},
		"a smaller cap":         {Choices{ResultCap: 500}, usual, with(func(u *Usual) { u.MaxRunes = 500 })},
		"a cap that is too big": {Choices{ResultCap: 20_001}, usual, usual},
		"a cap that is none":    {Choices{ResultCap: 499}, usual, usual},
		"a cap below nothing":   {Choices{ResultCap: -1}, usual, usual},
		"no profile": {Choices{ResultCap: 500_000}, with(func(u *Usual) { u.MaxRunes = 0 }),
			with(func(u *Usual) { u.MaxRunes = mostResultCap })},
		"no dedup":                {Choices{ReadDedup: &no}, usual, with(func(u *Usual) { u.Prefs.ReadDedup = false })},
		"dedup":                   {Choices{ReadDedup: &yes}, usual, usual},
		"a mode":                  {Choices{GrepMode: "count"}, usual, with(func(u *Usual) { u.Prefs.GrepMode = "count" })},
		"a mode that is none":     {Choices{GrepMode: "all"}, usual, usual},
		"a time":                  {Choices{ShellTimeoutMS: 200_000}, usual, with(func(u *Usual) { u.Prefs.ShellDefaultMS = 200_000 })},
		"a time that is too long": {Choices{ShellTimeoutMS: 600_000}, usual, with(func(u *Usual) { u.Prefs.ShellDefaultMS = 300_000 })},
		"a time below nothing":    {Choices{ShellTimeoutMS: -5}, usual, usual},
	} {
		if got := tt.chosen.Under(tt.under); got != tt.want {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, tt.want)
		}
	}
}
