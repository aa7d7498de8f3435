package git

import (
	"slices"
	"strings"
)

// programKeys are the keys of git's configuration by which git starts programs, reads further configuration or works
// elsewhere: section, key, and whether the key has a subsection between. A `*` is any key.
var programKeys = map[string][]string{
	"core": {"fsmonitor", "hookspath", "pager", "editor", "sshcommand", "askpass", "gitproxy", "alternaterefscommand",
		"worktree", "attributesfile"},
	"diff": {"external", "command", "textconv"}, "merge": {"driver"}, "submodule": {"update"},
	"interactive": {"difffilter"},
	"remote":      {"uploadpack", "receivepack", "vcs", "proxy", "promisor", "partialclonefilter"},
	"extensions":  {"partialclone"}, "url": {"insteadof"}, "include": {"path"}, "sequence": {"editor"},
	"web":   {"browser"},
	"pager": {"*"}, "alias": {"*"}, "filter": {"*"}, "credential": {"*"}, "gpg": {"*"}, "includeif": {"*"},
	"difftool": {"*"}, "mergetool": {"*"}, "protocol": {"*"}, "uploadpack": {"*"}, "trailer": {"*"}, "browser": {"*"},
	"man": {"*"}, "sendemail": {"*"}, "safe": {"*"}, "hook": {"*"},
}

// fileKeys are the keys that name a file of which read-only git shows lines: git blame says of the first that it is no
// name of an object, names of people come from the second, git check-ignore -v shows patterns of the third (v2.55).
var fileKeys = []string{"blame.ignorerevsfile", "mailmap.file", "core.excludesfile"}

// KeyRuns says whether a key, such as core.fsmonitor or diff.x.textconv, is one of programKeys. Case does not count.
func KeyRuns(key string) bool {
	key = strings.ToLower(key)
	section, _, _ := strings.Cut(key, ".")
	name := key[strings.LastIndexByte(key, '.')+1:]
	keys := programKeys[section]
	return name == "program" || slices.Contains(keys, "*") || slices.Contains(keys, name)
}

// KeyStarts says whether the value of a key that KeyRuns knows may name a program, or a file that says what git starts.
// Those of the others are addresses, names, directories or words of git's.
func KeyStarts(key string) bool {
	section, _, _ := strings.Cut(strings.ToLower(key), ".")
	name := strings.ToLower(key[strings.LastIndexByte(key, '.')+1:])
	return KeyRuns(key) && !slices.Contains([]string{"include", "includeif", "url", "protocol", "safe", "extensions"},
		section) && !slices.Contains([]string{"worktree", "promisor", "proxy", "partialclonefilter", "vcs"}, name)
}

// configRuns returns the first key of a git configuration file that makes git start programs, as `core.fsmonitor`, or a
// sentence about the line that git would not understand; "": there is none. What is harmless does not count.
func configRuns(config []byte, harmless func(key, value string) bool) (found string) {
	whole := configKeys(config, func(key, value string) bool {
		if KeyRuns(key) && (harmless == nil || !harmless(key, value)) {
			found = key
		}
		return found == ""
	})
	if !whole {
		return "a line that cannot be read"
	}
	return found
}

// configKeys tells each key of a git configuration file, as it is written, with its value, until each returns false.
// not whole: a line cannot be read.
func configKeys(config []byte, each func(key, value string) bool) (whole bool) {
	g := gitConfig{rest: strings.ReplaceAll(strings.TrimPrefix(string(config), "\ufeff"), "\r\n", "\n")}
	for {
		key, ok := g.next()
		switch {
		case !ok:
			return g.rest == ""
		case !each(key, g.text):
			return true
		}
	}
}

// configFiles returns the values of fileKeys in a git configuration file that configRuns has nothing against.
func configFiles(config []byte) (names []string) {
	configKeys(config, func(key, value string) bool {
		if slices.Contains(fileKeys, strings.ToLower(key)) {
			names = append(names, value)
		}
		return true
	})
	return names
}

// A gitConfig reads keys as git's own reader does (git v2.39, config.c: git_parse_source): several may stand on one
// line, also behind the head of their section, and a value goes on behind a backslash at the end of a line.
type gitConfig struct {
	rest    string // what was not read yet
	section string // `core`, `diff.x`
	text    string // the value of the last key
	bare    bool   // the last key has no `=`: its value is true
	key     int    // where the last key begins, counted in bytes from the end
	heads   []head // of sections, in their order
}

// A head is that of a section.
type head struct {
	section    string // as gitConfig.section
	start, end int    // counted in bytes from the end
}

// next returns the next key; false at the end, and, with a rest, where a line is wrong.
func (g *gitConfig) next() (string, bool) {
	for g.rest != "" {
		switch c := g.rest[0]; {
		case strings.IndexByte(" \t\n\v\f\r", c) >= 0:
			g.rest = g.rest[1:]
		case c == '#' || c == ';':
			g.comment()
		case c == '[':
			start := len(g.rest)
			if !g.head() {
				return "", false
			}
			g.heads = append(g.heads, head{g.section, start, len(g.rest)})
		default:
			n := strings.IndexFunc(g.rest, func(r rune) bool { return !keyRune(r) })
			if n < 0 {
				n = len(g.rest)
			}
			key := g.section + "." + g.rest[:n]
			g.key = len(g.rest)
			if n == 0 || g.section == "" || !g.value(n) {
				return "", false
			}
			return key, true
		}
	}
	return "", false
}

func keyRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-'
}

// comment passes over the rest of the line.
func (g *gitConfig) comment() {
	_, g.rest, _ = strings.Cut(g.rest, "\n")
}

// head reads `[core]`, `[diff "x"]` or `[diff.x]`.
func (g *gitConfig) head() bool {
	n := strings.IndexFunc(g.rest[1:], func(r rune) bool { return !keyRune(r) && r != '.' }) + 1
	if n <= 1 {
		return false
	}
	name, rest := g.rest[1:n], g.rest[n:]
	if rest[0] == ']' {
		g.section, g.rest = name, rest[1:]
		return true
	}
	rest, quoted := strings.CutPrefix(strings.TrimLeft(rest, " \t\v\f\r"), `"`)
	if !quoted {
		return false
	}
	for i := 0; i < len(rest); i++ {
		switch rest[i] {
		case '\n':
			return false
		case '\\':
			i++
		case '"':
			if i+1 == len(rest) || rest[i+1] != ']' {
				return false
			}
			g.section, g.rest = name+"."+rest[:i], rest[i+2:]
			return true
		}
	}
	return false
}

// value reads the value behind a key of n bytes, if it has one. Blanks within it stay as they are, which only the first
// versions of git did not do.
func (g *gitConfig) value(n int) bool {
	rest := strings.TrimLeft(g.rest[n:], " \t")
	g.text, g.bare = "", rest == "" || rest[0] == '\n'
	if g.bare {
		g.rest = rest
		return true
	}
	if rest[0] != '=' {
		return false
	}
	var text strings.Builder
	quoted, ends := false, 0 // ends: bytes of text without the blanks at its end
	defer func() { g.text = text.String()[:ends] }()
	for i := 1; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == '\n' || !quoted && (c == '#' || c == ';'):
			g.rest = rest[i:]
			if c != '\n' {
				g.comment()
			}
			return !quoted
		case c == '"':
			quoted = !quoted
		case c == '\\':
			if i++; i == len(rest) {
				return false
			}
			at := strings.IndexByte("\ntbn\\\"", rest[i])
			if at < 0 {
				return false
			}
			if at > 0 { // a line that goes on adds nothing
				text.WriteByte("\n\t\b\n\\\""[at])
			}
			ends = text.Len()
		case text.Len() > 0 || quoted || c != ' ' && c != '\t':
			if text.WriteByte(c); quoted || c != ' ' && c != '\t' {
				ends = text.Len()
			}
		}
	}
	g.rest = ""
	return !quoted
}
