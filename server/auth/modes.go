package auth

import (
	"fmt"
	"strings"
)

// ModeNone is the mode without sign-in. It is also the Via of a principal that needed no token.
const ModeNone = "none"

// Modes are the ways in which callers sign in, as auth.mode names them.
type Modes struct {
	None  bool // there is no sign-in, and one person calls
	Token bool // tokens of the tokens file
	Owner bool // one person signs in on a page of this server
	Team  bool // principals do
	OIDC  bool // an issuer of others signs people in
}

// ModeNames are what auth.mode can be, apart from auto. With owner and team, tokens of the tokens file are good, too.
func ModeNames() []string {
	return []string{ModeNone, "token", "owner", "team", "oidc", "token+oidc", "owner+oidc", "team+oidc"}
}

// ParseModes reads one of ModeNames. The order of the parts does not matter, and token may stand beside owner and team.
func ParseModes(text string) (Modes, error) {
	var m Modes
	ways := map[string]*bool{ModeNone: &m.None, "token": &m.Token, "owner": &m.Owner, "team": &m.Team, "oidc": &m.OIDC}
	for name := range strings.SplitSeq(text, "+") {
		way := ways[name]
		if way == nil || *way {
			return Modes{}, fmt.Errorf("unknown mode %q; the modes are %s", text, strings.Join(ModeNames(), ", "))
		}
		*way = true
	}
	if m.None && m != (Modes{None: true}) || m.Owner && m.Team {
		return Modes{}, fmt.Errorf("%q is no mode; the modes are %s", text, strings.Join(ModeNames(), ", "))
	}
	m.Token = m.Token || m.Owner || m.Team
	return m, nil
}

// Pages says whether people sign in on pages of this server.
func (m Modes) Pages() bool { return m.Owner || m.Team }

// OAuth says whether clients can sign in by OAuth.
func (m Modes) OAuth() bool { return m.Pages() || m.OIDC }
