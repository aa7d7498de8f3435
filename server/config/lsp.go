package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// LSP is about the servers of languages.
type LSP struct {
	Enabled   bool
	MaxMemory int64            // bytes that one server with all that it starts may need
	Servers   []LanguageServer // by name
}

// A LanguageServer is what the operator says of one, by its name. It may be one of those that are found without
// configuration; then what is empty is as it is there.
type LanguageServer struct {
	Name       string
	Command    []string // the program is absolute, or a name in PATH
	Extensions []string // with the dot, lower case
	Language   string   // the protocol's name of the language; "": by the extension
	Init       map[string]any
	Off        bool

	origin  string
	managed bool // the administrator's file names it: nothing of another file counts
}

// lspTable is the name of the table with the servers' tables.
const lspTable = "lsp"

// maxLanguageServers is how many servers can be configured.
const maxLanguageServers = 50

var languageServerName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,39}$`)
})

// lspPath says whether path leads into the table of a server.
func lspPath(path []string) bool { return len(path) >= 3 && path[0] == lspTable }

// lspSection says whether path is such a table, or one in it.
func lspSection(path []string) bool {
	return len(path) == 2 && path[0] == lspTable || lspPath(path) && path[2] == "init_options"
}

// lspTableRows are the settings that are about all servers.
func lspTableRows(c *Config) []setting {
	return []setting{
		{"lsp.enabled", "offer what language servers know, and start those that are installed at their first use",
			operatorOnly, toggle{&c.LSP.Enabled}},
		{"lsp.max_memory", "memory that one language server may need, with all that it starts", operatorOnly,
			size{&c.LSP.MaxMemory, 64 * mib, 1024 * gib}},
	}
}

// LanguageServerSettings lists the keys of [lsp.NAME]. The slice is the caller's.
func LanguageServerSettings() []Setting {
	return []Setting{
		{Key: "command", Doc: "program that speaks the language server protocol over its standard input and output, " +
			"with its arguments, as [\"gopls\", \"serve\"]"},
		{Key: "extensions", Doc: "of the files that it knows, as [\".go\"]"},
		{Key: "language", Doc: "the protocol's name of the language; empty: by the extension"},
		{Key: "init_options", Doc: "its initializationOptions, as a table"},
		{Key: "off", Default: "false", Doc: "leave it out, also one that is found without configuration"},
	}
}

// languageServer applies one key of a server.
func (l *loader) languageServer(e entry, in input) {
	name, key := e.path[1], e.path[2]
	if !languageServerName().MatchString(name) {
		l.problems.add(e.origin, fmt.Sprintf("%s: a server's name has up to 40 of a-z, 0-9, _ and -", e.key))
		return
	}
	all := &l.config.LSP.Servers
	i := slices.IndexFunc(*all, func(s LanguageServer) bool { return s.Name == name })
	if i < 0 {
		if len(*all) == maxLanguageServers {
			l.problems.add(e.origin, fmt.Sprintf("%s: there are more than %d servers", e.key, maxLanguageServers))
			return
		}
		i = len(*all)
		*all = append(*all, LanguageServer{Name: name, origin: e.origin})
	}
	if s := &(*all)[i]; l.managed.path != "" && !s.managed {
		*s = LanguageServer{Name: name, origin: e.origin, managed: true}
	}
	known, err := (*all)[i].set(key, e.path[3:], in)
	switch {
	case !known:
		var keys []string
		for _, s := range LanguageServerSettings() {
			keys = append(keys, s.Key)
		}
		l.problems.add(e.origin, fmt.Sprintf("unknown key %q", e.key)+meant(key, keys))
	case err != nil:
		l.refuse(e.key, in.origin, err)
	}
}

// languageServerOff lets a project leave a server out, which is all that it may say of one.
func (l *loader) languageServerOff(e entry) (counts bool) {
	off, isOff := e.raw.(bool)
	if len(e.path) != 3 || e.path[2] != "off" || !isOff || !off || !languageServerName().MatchString(e.path[1]) {
		return false
	}
	all := &l.config.LSP.Servers
	i := slices.IndexFunc(*all, func(s LanguageServer) bool { return s.Name == e.path[1] })
	if i >= 0 {
		(*all)[i].Off = true
	} else if len(*all) < maxLanguageServers {
		*all = append(*all, LanguageServer{Name: e.path[1], Off: true, origin: e.origin})
	}
	return true
}

// set sets one key; known is false if there is no such key. below is what follows the key.
func (s *LanguageServer) set(key string, below []string, in input) (known bool, err error) {
	if len(below) > 0 && key != "init_options" {
		return false, nil
	}
	switch key {
	case "command":
		if text, ok := in.raw.(string); ok && in.file {
			in.raw = []any{text}
		}
		if s.Command, err = entries(in); err == nil && (len(s.Command) == 0 || s.Command[0] == "") {
			err = errors.New("is empty")
		}
		if err == nil && strings.ContainsAny(s.Command[0], `/\`) {
			s.Command[0], err = absolute(s.Command[0], in)
		}
	case "extensions":
		s.Extensions, err = entries(in)
		for i, x := range s.Extensions {
			s.Extensions[i] = strings.ToLower(x)
			if len(x) < 2 || x[0] != '.' || strings.ContainsAny(x[1:], `./\*?[`) {
				return true, fmt.Errorf("%q is no extension; one is written \".go\"", x)
			}
		}
	case "language":
		err = (text{&s.Language}).set(in)
	case "init_options":
		if len(below) == 0 {
			return true, errors.New(`must be a table, as {name = "value"}`)
		}
		err = s.setInit(below, in.raw)
	case "off":
		err = (toggle{&s.Off}).set(in)
	default:
		return false, nil
	}
	return true, err
}

// setInit puts a value into the table of options.
func (s *LanguageServer) setInit(path []string, value any) error {
	if _, err := json.Marshal(value); err != nil || value == nil {
		return errors.New("must be a text, a number, a truth value, a list or a table of them")
	}
	if s.Init == nil {
		s.Init = map[string]any{}
	}
	at := s.Init
	for _, name := range path[:len(path)-1] {
		next, ok := at[name].(map[string]any)
		if !ok {
			next = map[string]any{}
			at[name] = next
		}
		at = next
	}
	at[path[len(path)-1]] = value
	return nil
}

// presetServers are the names of servers that need no command.
var presetServers = []string{
	"gopls", "typescript-language-server", "basedpyright", "pyright", "rust-analyzer", "clangd",
}

// PresetServers lists the names of servers that need no configuration. The slice is the caller's.
func PresetServers() []string { return slices.Clone(presetServers) }

// checkLanguageServers finds what does not go together.
func checkLanguageServers(l *loader) {
	for _, s := range l.config.LSP.Servers {
		if s.Off || slices.Contains(presetServers, s.Name) {
			continue
		}
		if len(s.Command) == 0 || len(s.Extensions) == 0 {
			l.problems.add(s.origin, "lsp."+s.Name+": needs command and extensions; without configuration there are "+
				strings.Join(presetServers, ", "))
		}
	}
	slices.SortFunc(l.config.LSP.Servers, func(a, b LanguageServer) int { return strings.Compare(a.Name, b.Name) })
}

// sameServers says whether two lists have the same servers.
func sameServers(a, b []LanguageServer) bool {
	return slices.EqualFunc(a, b, func(a, b LanguageServer) bool {
		a.origin, b.origin = "", ""
		return fmt.Sprintf("%+v", a) == fmt.Sprintf("%+v", b)
	})
}
