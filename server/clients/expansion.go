package clients

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// Surroundings are what a client sees when it replaces variables in its file.
type Surroundings struct {
	Project string // the open project, absolute
	Home    string // of the user, absolute
	Lookup  func(name string) (value string, ok bool)
}

// An Expansion replaces variables in a text of an entry as one client does. A variable whose value only the client
// knows stays, and the first such is returned; "": there is none.
type Expansion func(s Surroundings, written string) (text, unknown string)

// Expand replaces variables as the client does. Of a client without an Expansion the value of no variable is known.
func (c Client) Expand(s Surroundings, written string) (text, unknown string) {
	if c.Expansion == nil {
		return knowsNone(s, written)
	}
	return c.Expansion(s, written)
}

// knowsNone is for clients of which we do not know what they replace: it stops at what looks like a variable.
var knowsNone = replacing(pattern(`\$\{\{[^}]*\}\}|\$\{[^}]*\}`),
	func(Surroundings, string) (string, bool) { return "", false })

// verbatim is for clients that replace nothing.
func verbatim(_ Surroundings, written string) (text, unknown string) { return written, "" }

// replacing returns what replaces each variable of a form by its value. The value is asked for with the variable as it
// is written; known is false where only the client knows it.
func replacing(
	form func() *regexp.Regexp, value func(s Surroundings, written string) (value string, known bool),
) Expansion {
	return func(s Surroundings, written string) (text, unknown string) {
		text = form().ReplaceAllStringFunc(written, func(variable string) string {
			value, known := value(s, variable)
			if known {
				return value
			}
			if unknown == "" {
				unknown = variable
			}
			return variable
		})
		return text, unknown
	}
}

// pattern is compiled when it is first used: most starts of codehand need none.
func pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// The forms that several clients, or one, write variables in.
var (
	braced    = pattern(`\$\{[^}]*\}`)
	bracedEnv = pattern(`\$\{env:[^}]*\}`)
	shellLike = pattern(`\$\{[^}]*\}|\$[A-Za-z_][A-Za-z0-9_]*`)
)

// editorValue knows the variables that VS Code, Cursor and Windsurf share. The value of ${input:X} is asked for by the
// client, and ${config:X} or ${command:X} is its own.
func editorValue(s Surroundings, written string) (string, bool) {
	name := written[2 : len(written)-1]
	switch name {
	case "workspaceFolder":
		return s.Project, true
	case "workspaceFolderBasename":
		return filepath.Base(s.Project), true
	case "userHome":
		return s.Home, true
	case "pathSeparator", "/":
		return string(os.PathSeparator), true
	}
	variable, ok := strings.CutPrefix(name, "env:")
	value, _ := s.Lookup(variable)
	return value, ok
}
