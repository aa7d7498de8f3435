package doctor

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// An expanding replaces the variables of an entry as its client does.
type expanding struct {
	m       Machine
	client  string
	project string
	unknown string // the first variable whose value only the client knows; "": none
}

// An expansion is how one client replaces variables. Its value is what stands for a variable as it is written; known is
// false where only the client knows it.
type expansion struct {
	pattern func() *regexp.Regexp
	value   func(x *expanding, written string) (value string, known bool)
}

var (
	braced    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\{[^}]*\}`) })
	bracedEnv = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\{env:[^}]*\}`) })
	shellLike = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\$\{[^}]*\}|\$[A-Za-z_][A-Za-z0-9_]*`)
	})
	opencodes  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{(env|file):[^}]*\}`) })
	anyWritten = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\{\{[^}]*\}\}|\$\{[^}]*\}`) })
)

// expansions are those of clients whose documents or source say what they do. A row without a pattern replaces nothing;
// what clients without a row do is unknown.
var expansions = map[string]expansion{
	"claude-desktop":  {},
	"codex":           {},
	"zed":             {},
	"claude-code":     {braced, claudeValue},
	"vscode":          {braced, editorValue},
	"vscode-insiders": {braced, editorValue},
	"cursor":          {braced, editorValue},
	"windsurf":        {bracedEnv, editorValue},
	"gemini":          {shellLike, geminiValue},
	"opencode":        {opencodes, opencodeValue},
}

// text replaces what the client replaces. What only the client knows stays, and is noted.
func (x *expanding) text(written string) string {
	e, ok := expansions[x.client]
	if !ok {
		e = expansion{anyWritten, func(*expanding, string) (string, bool) { return "", false }}
	}
	if e.pattern == nil {
		return written
	}
	return e.pattern().ReplaceAllStringFunc(written, func(variable string) string {
		value, known := e.value(x, variable)
		if known {
			return value
		}
		if x.unknown == "" {
			x.unknown = variable
		}
		return variable
	})
}

// set is the value of a variable of this process; ok: it is set, maybe to nothing.
func (x *expanding) set(name string) (value string, ok bool) {
	value = x.m.getenv(name)
	for _, entry := range x.m.Env {
		ok = ok || strings.HasPrefix(entry, name+"=")
	}
	return value, ok || value != ""
}

// claudeValue knows ${NAME} and ${NAME:-default}. Claude Code starts nothing for a variable that is not set.
func claudeValue(x *expanding, written string) (string, bool) {
	name, otherwise, has := strings.Cut(written[2:len(written)-1], ":-")
	if value, ok := x.set(name); ok {
		return value, true
	}
	return otherwise, has
}

// editorValue knows the variables that VS Code, Cursor and Windsurf share. The value of ${input:X} is asked for by the
// client, and ${config:X} or ${command:X} is its own.
func editorValue(x *expanding, written string) (string, bool) {
	name := written[2 : len(written)-1]
	switch name {
	case "workspaceFolder":
		return x.project, true
	case "workspaceFolderBasename":
		return filepath.Base(x.project), true
	case "userHome":
		return x.m.Config.Home, true
	case "pathSeparator", "/":
		return string(os.PathSeparator), true
	}
	variable, ok := strings.CutPrefix(name, "env:")
	return x.m.getenv(variable), ok
}

// geminiValue knows $NAME and ${NAME}; one that is not set stays as it is written.
func geminiValue(x *expanding, written string) (string, bool) {
	if value, ok := x.set(strings.Trim(written, "${}")); ok {
		return value, true
	}
	return written, !strings.Contains(written, ":-") // newer versions may have defaults
}

// opencodeValue knows {env:NAME}; a file is read by the client.
func opencodeValue(x *expanding, written string) (string, bool) {
	variable, ok := strings.CutPrefix(written, "{env:")
	return x.m.getenv(strings.TrimSuffix(variable, "}")), ok
}
