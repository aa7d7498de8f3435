package session

import (
	"errors"
	"testing"
)

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

// What another version of the program had chosen, and this one does not make, was shown as chosen beside the usual value.
func TestChoicesOfAnotherVersion(t *testing.T) {
	t.Parallel()
	usual := Usual{MaxRunes: 20_000, Prefs: Prefs{GrepMode: "count", ShellDefaultMS: 120_000, ShellMaxMS: 300_000}}
	for _, o := range (Choices{ResultCap: 100, GrepMode: "tree", ShellTimeoutMS: -1}).Options(usual) {
		if o.Chosen {
			t.Errorf("%s = %s counts as chosen", o.Key, o.Value)
		}
	}
}

// With makes only what Under gives back as it is.
func TestChoicesWith(t *testing.T) {
	t.Parallel()
	usual := Usual{MaxRunes: 20_000, Prefs: Prefs{ReadDedup: true, GrepMode: "count", ShellDefaultMS: 120_000, ShellMaxMS: 300_000}}
	no := false
	all := Choices{ResultCap: 600, ReadDedup: &no, GrepMode: "content", ShellTimeoutMS: 7}
	for _, tt := range []struct {
		key, value string
		want       error
	}{
		{"result_cap", "500", nil},
		{"result_cap", "20000", nil},
		{"result_cap", "default", nil},
		{"result_cap", "499", ErrValue},
		{"result_cap", "20001", ErrValue},
		{"result_cap", "-1", ErrValue},
		{"result_cap", "99999999999999999999", ErrValue},
		{"result_cap", "1e3", ErrValue},
		{"result_cap", "", ErrValue},
		{"read_dedup", "on", nil},
		{"read_dedup", "off", nil},
		{"read_dedup", "default", nil},
		{"read_dedup", "once", ErrValue},
		{"grep_mode", "files_with_matches", nil},
		{"grep_mode", "default", nil},
		{"grep_mode", "Count", ErrValue},
		{"shell_timeout_ms", "1", nil},
		{"shell_timeout_ms", "300000", nil},
		{"shell_timeout_ms", "default", nil},
		{"shell_timeout_ms", "0", ErrValue},
		{"shell_timeout_ms", "300001", ErrValue},
		{"cwd", "/", ErrOption},
		{"", "", ErrOption},
		{"permissions.mode", "plan", ErrOption},
	} {
		for _, before := range []Choices{{}, all} {
			c, err := before.With(usual, tt.key, tt.value)
			if !errors.Is(err, tt.want) {
				t.Errorf("%s %q: %v, want %v", tt.key, tt.value, err, tt.want)
			}
			if err != nil {
				continue
			}
			for _, o := range c.Options(usual) {
				switch {
				case o.Key != tt.key:
				case tt.value == "default" && o.Chosen:
					t.Errorf("%s is still chosen: %+v", tt.key, o)
				case tt.value != "default" && (!o.Chosen || o.Value != tt.value):
					t.Errorf("%s %q gives %+v", tt.key, tt.value, o)
				}
			}
		}
	}
	if (all != Choices{ResultCap: 600, ReadDedup: &no, GrepMode: "content", ShellTimeoutMS: 7}) || no {
		t.Error("a choice was changed in place")
	}
}

func TestFixed(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"permissions": true, "permissions.mode": true, "permission_mode": true, "Mode": true, "mode": true, "sandbox": true, "sandbox-policy": true,
		"roots": true, "root": true, "hooks": true, "hooks.PreToolUse": true, "hook": true, "--permissions-mode": true, "CODEHAND_READ_DEDUP": true,
		"read.dedup": true, "shell": true, "state_dir": true, "allow": true, "nonsense.x": true, " roots ": true,
		"model": false, "theme": false, "result_caps": false, "grep_modes": false, "shell_timeout": false, "": false, "tool": false,
	} {
		if Fixed(name) != want {
			t.Errorf("%q: fixed is %t", name, !want)
		}
	}
}
