package skills

import (
	"cmp"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxName is the length of a name, in characters: the public format's.
const maxName = 64

// usable reports whether a skill can have this name: 1 to 64 characters, letters and digits of any script and _ . : -,
// of which the first is a letter, a digit or _, and none is invisible: a repository's name must not look like one of
// the user's. The public format allows a-z, 0-9 and - alone (see Skill.Public), but skills in use have capitals, dots
// and colons, too.
func usable(name string) bool {
	if name == "" || !utf8.ValidString(name) || utf8.RuneCountInString(name) > maxName {
		return false
	}
	for i, r := range name {
		letter := r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r)
		invisible := unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
		if invisible || !letter && (i == 0 || !strings.ContainsRune(".:-", r) && !unicode.IsMark(r)) {
			return false
		}
	}
	return true
}

// Public reports whether the skill meets the public format, so that it may be published to clients: its front matter is
// YAML, names it as its directory does, in a-z, 0-9 and single hyphens, and describes it.
func (s Skill) Public() bool {
	if s.Flat || s.Loose {
		return false
	}
	var front struct{ Name, Description json.RawMessage }
	var name, description string
	err := json.Unmarshal(s.Front, &front)
	err = cmp.Or(err, json.Unmarshal(front.Name, &name), json.Unmarshal(front.Description, &description))
	return err == nil && name == s.Name && publicName(name) && strings.TrimSpace(description) != ""
}

// publicName is ^(?!.*--)[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$.
func publicName(name string) bool {
	if name == "" || len(name) > maxName || strings.Contains(name, "--") || strings.Trim(name, "-") != name {
		return false
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}
