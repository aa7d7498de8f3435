package config

import (
	"maps"
	"slices"
	"strings"
)

// keptBack are settings that are about this process and its client, not about what may be done.
var keptBack = []string{"roots", "state_dir", modeKey, askFallbackKey, "log.file", "client.profile"}

// Handed returns the flags with which `codehand stdio` has the settings of this process, whatever its environment and
// directory are: the operator's file, the directory for state, and what flags and environment say, but roots, mode and
// ask_fallback. deny are rules that come to those of permissions.deny.
func (c Config) Handed(deny []string) []string {
	flags := []string{"--state-dir=" + c.StateDir}
	if file := c.Permissions.UserFile; slices.Contains(c.Files, file) {
		flags = append(flags, "--config="+file)
	}
	own := maps.Clone(c.typed)
	if own == nil {
		own = map[string]string{}
	}
	if len(deny) > 0 {
		own[denyKey] = together(own[denyKey], strings.Join(deny, ","))
	}
	for _, s := range serveTable(&c) {
		delete(own, s.key)
	}
	for _, key := range slices.Sorted(maps.Keys(own)) {
		if _, flag := spellings(key); !slices.Contains(keptBack, key) {
			flags = append(flags, flag+"="+own[key])
		}
	}
	return flags
}

// together is both of two lists, as a flag takes them.
func together(a, b string) string { return strings.Trim(a+","+b, ",") }

// setTyped sets a typed value, and notes it for Handed. Paths are noted as they were understood.
func setTyped(l *loader, s setting, value, origin string) {
	l.set(s, l.typed(value, origin))
	if _, grows := s.at.(growing); grows {
		value = together(l.config.typed[s.key], value)
	} else {
		value = s.at.text()
	}
	l.config.typed[s.key] = value
}
