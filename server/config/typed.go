package config

import (
	"maps"
	"slices"
	"strings"
)

// notSettings are variables of ours that are no settings: for other commands, for commands that we start, and for our
// own tests.
var notSettings = map[string]bool{
	"CODEHAND_SESSION": true, "CODEHAND_AGENT_DEPTH": true, "CODEHAND_CHROME": true, "CODEHAND_CLUSTER": true,
	"CODEHAND_UPDATE": true, "CODEHAND_TREE": true,
}

// environment applies the variables. An empty one counts as not set: clients write empty ones for fields that the
// person left empty.
func (l *loader) environment() {
	rest := map[string]string{}
	for name, value := range l.env {
		if strings.HasPrefix(name, envPrefix) && value != "" && !notSettings[name] {
			rest[name] = value
		}
	}
	for _, s := range l.table {
		name, _ := spellings(s.key)
		if value, ok := rest[name]; ok {
			setTyped(l, s, value, name)
			delete(rest, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rest)) {
		l.unknownVariable(name)
	}
}

// unknownVariable: one of two words and more looks like a setting, so a typing error must not pass; CODEHAND_TOKEN and
// the like may be anything.
func (l *loader) unknownVariable(name string) {
	switch words := strings.TrimPrefix(name, envPrefix); {
	case strings.HasPrefix(words, "TEST_"):
	case strings.Contains(words, "_"):
		l.problems.add(name, "unknown setting in the environment"+
			meant(name, spelled(l.table, func(env, _ string) string { return env })))
	default:
		l.warnings = append(l.warnings, Warning{Origin: name, Text: "is not a setting; ignored"})
	}
}

// flags applies the flags.
func (l *loader) flags() {
	rest := map[string]string{}
	for name, value := range l.src.Flags {
		rest["--"+strings.TrimLeft(name, "-")] = value
	}
	for _, s := range l.table {
		_, name := spellings(s.key)
		if value, ok := rest[name]; ok {
			setTyped(l, s, value, "flag "+name)
			delete(rest, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rest)) {
		l.problems.add("flag "+name, "unknown flag"+
			meant(name, spelled(l.table, func(_, flag string) string { return flag })))
	}
}

// spelled lists one spelling of all settings.
func spelled(table []setting, as func(env, flag string) string) []string {
	names := make([]string, len(table))
	for i, s := range table {
		names[i] = as(spellings(s.key))
	}
	return names
}

// typed is a typed input: relative to where it was typed.
func (l *loader) typed(value, origin string) input {
	return input{raw: value, origin: origin, base: l.config.WorkDir, home: l.config.Home}
}
