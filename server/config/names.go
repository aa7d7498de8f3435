package config

import "strings"

// envPrefix is what the environment variables of all settings begin with.
const envPrefix = "CODEHAND_"

// spellings returns how the setting key is written in the environment and as a flag. It is the only place where one
// name becomes three: `log.level`, `CODEHAND_LOG_LEVEL`, `--log-level`.
func spellings(key string) (env, flag string) {
	words := strings.ReplaceAll(key, ".", "_")
	return envPrefix + strings.ToUpper(words), "--" + strings.ReplaceAll(words, "_", "-")
}

// A Setting describes one setting, for help texts and the reference.
type Setting struct {
	Key     string   // log.level
	Env     string   // CODEHAND_LOG_LEVEL
	Flag    string   // --log-level
	Doc     string   // half a sentence
	Default string   // as Flag would take it; "": empty
	Values  []string // the only ones that there are; nil: others, too
}

// Settings lists all settings, in the order of the reference. The slice is the caller's.
func Settings() []Setting {
	c := defaults()
	var list []Setting
	for _, s := range table(&c) {
		env, flag := spellings(s.key)
		one := Setting{Key: s.key, Env: env, Flag: flag, Doc: s.doc, Default: s.at.text()}
		switch at := s.at.(type) {
		case choice:
			one.Values = at.of
		case profile:
			one.Values = at.of
		case partly:
			one.Values = at.of
		case mode:
			one.Values = modeNames()
		case level:
			one.Values = levelNames
		case toggle:
			one.Values = []string{"true", "false"}
		}
		list = append(list, one)
	}
	return list
}
