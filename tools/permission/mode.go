package permission

import (
	"fmt"
	"strings"
)

// A Mode is a session's permission mode. The zero value asks before every change.
type Mode int

// The modes. What each allows is the table in decide.go.
const (
	Default Mode = iota
	Plan
	AcceptEdits
	DontAsk
	Bypass
	Auto
)

// modes are the names of the modes, by their value.
var modes = [...]string{"default", "plan", "acceptEdits", "dontAsk", "bypassPermissions", "auto"}

// ParseMode reads a mode as configuration and hooks write it: default (or manual), acceptEdits, plan, dontAsk,
// bypassPermissions, auto.
func ParseMode(s string) (Mode, error) {
	if s == "manual" {
		return Default, nil
	}
	for i, name := range modes {
		if s == name {
			return Mode(i), nil
		}
	}
	return Default, fmt.Errorf("unknown mode %q; the modes are %s", s, strings.Join(modes[:], ", "))
}

// String returns the mode's name as ParseMode reads it.
func (m Mode) String() string {
	if m < 0 || int(m) >= len(modes) {
		return fmt.Sprintf("mode %d", int(m))
	}
	return modes[m]
}

// ranks order the modes by what they let pass without a question.
var ranks = [...]int{Plan: 0, Default: 1, DontAsk: 1, AcceptEdits: 2, Auto: 3, Bypass: 4}

// AtMost returns m, or most if m lets more pass.
func (m Mode) AtMost(most Mode) Mode {
	if ranks[m] > ranks[most] {
		return most
	}
	return m
}
