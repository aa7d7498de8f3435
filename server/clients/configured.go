package clients

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/pelletier/go-toml/v2"
)

// Places is where the files of clients are looked for.
type Places struct {
	Home     string              // of the user, absolute; "": not known
	Getenv   func(string) string // as os.Getenv
	Projects []string            // directories whose files are read, too
}

// A Configured is an entry that starts codehand, in a file of a client.
type Configured struct {
	Client  string // id: claude-code
	File    string
	Command string // the program, as it is written
	Err     error  // why the file, which names codehand, cannot be read; then Command is empty
}

// maxFile is how much of a client's file is read, in bytes: some keep their history beside their settings.
const maxFile = 32 << 20

// FindConfigured returns the entries of all clients that we know, in a fixed order, each once. Files that are not there
// or do not name codehand are left out. Nothing is changed.
func FindConfigured(at Places) []Configured {
	var out []Configured
	for _, r := range remotes {
		for _, file := range at.files(r) {
			for _, e := range entriesOf(file) {
				e.Client, e.File = r.id, file
				twice := func(o Configured) bool { return o.File == e.File && o.Command == e.Command }
				if !slices.ContainsFunc(out, twice) {
					out = append(out, e)
				}
			}
		}
	}
	return out
}

// moved are the variables with which clients move their directory.
var moved = map[string]string{"claude-code": "CLAUDE_CONFIG_DIR", "codex": "CODEX_HOME"}

// files are the paths of a client's file, whether or not it is there.
func (p Places) files(r remote) []string {
	var all []string
	usual := r.files.On(runtime.GOOS)
	if dir := p.Getenv(moved[r.id]); moved[r.id] != "" && filepath.IsAbs(dir) {
		all = append(all, filepath.Join(dir, filepath.Base(filepath.FromSlash(usual))))
	}
	for name, value := range map[string]string{"~": p.Home, "%USERPROFILE%": p.Home, "%APPDATA%": p.Getenv("APPDATA")} {
		if rest, ok := strings.CutPrefix(usual, name); ok && filepath.IsAbs(value) {
			all = append(all, filepath.Join(value, filepath.FromSlash(strings.ReplaceAll(rest, `\`, "/"))))
		}
	}
	if r.files.Project != "" {
		for _, dir := range p.Projects {
			all = append(all, filepath.Join(dir, filepath.FromSlash(r.files.Project)))
		}
	}
	return all
}

// entriesOf reads one file.
func entriesOf(file string) []Configured {
	f, err := os.Open(file)
	if err != nil {
		return nil // the client is not here
	}
	defer func() { _ = f.Close() }() // only read
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil || !bytes.Contains(data, []byte("codehand")) {
		return nil
	}
	var v any
	switch filepath.Ext(file) {
	case ".toml":
		err = toml.Unmarshal(data, &v)
	case ".yaml":
		v, err = readYAML(data)
	default:
		err = json.Unmarshal(plainJSON(data), &v)
	}
	if err != nil {
		line, _, _ := strings.Cut(err.Error(), "\n")
		return []Configured{{Err: fmt.Errorf("%s", line)}}
	}
	return commandsIn(v, "")
}

// readYAML reads texts, lists and tables. The decoder of the module would make the program 1 MB larger.
func readYAML(data []byte) (any, error) {
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, err
	}
	var all []any
	for _, doc := range file.Docs {
		all = append(all, plainYAML(doc.Body))
	}
	return all, nil
}

func plainYAML(n ast.Node) any {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value
	case *ast.SequenceNode:
		var list []any
		for _, e := range n.Values {
			list = append(list, plainYAML(e))
		}
		return list
	case *ast.MappingValueNode: // a table of one entry
		return map[string]any{keyYAML(n.Key): plainYAML(n.Value)}
	case *ast.MappingNode:
		table := map[string]any{}
		for _, e := range n.Values {
			table[keyYAML(e.Key)] = plainYAML(e.Value)
		}
		return table
	}
	return nil // what names no program
}

func keyYAML(n ast.MapKeyNode) string {
	if s, ok := n.(*ast.StringNode); ok {
		return s.Value
	}
	return ""
}

// commandsIn finds every table that starts a program called codehand, or that is called so itself, at any depth: some
// clients keep entries for each project.
func commandsIn(v any, key string) []Configured {
	var out []Configured
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			out = append(out, commandsIn(e, key)...)
		}
	case map[string]any:
		name, _ := v["name"].(string)
		for _, word := range []string{"command", "cmd"} {
			command, _ := v[word].(string)
			if list, ok := v[word].([]any); ok && len(list) > 0 {
				command, _ = list[0].(string)
			}
			base := strings.TrimSuffix(filepath.Base(strings.ReplaceAll(command, `\`, "/")), ".exe")
			if command != "" && (base == "codehand" || key == "codehand" || name == "codehand") {
				out = append(out, Configured{Command: command})
			}
		}
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			out = append(out, commandsIn(v[k], k)...)
		}
	}
	return out
}

// plainJSON blanks what clients allow in their JSON besides JSON: a byte order mark, comments, and commas behind the
// last entry. Positions stay.
func plainJSON(data []byte) []byte {
	out := bytes.Clone(data)
	blank := func(from, to int) {
		for i := from; i < to; i++ {
			if out[i] != '\n' {
				out[i] = ' '
			}
		}
	}
	if bytes.HasPrefix(out, []byte("\xef\xbb\xbf")) {
		blank(0, 3)
	}
	comma := -1 // of which nothing but blanks came since
	for i := 0; i < len(out); i++ {
		rest := out[i:]
		switch c := out[i]; {
		case c == '"':
			for i++; i < len(out) && out[i] != '"'; i++ {
				if out[i] == '\\' {
					i++
				}
			}
			comma = -1
		case bytes.HasPrefix(rest, []byte("//")):
			end := bytes.IndexByte(rest, '\n')
			if end < 0 {
				end = len(rest)
			}
			blank(i, i+end)
		case bytes.HasPrefix(rest, []byte("/*")):
			end := bytes.Index(rest, []byte("*/"))
			if end < 0 {
				end = len(rest) - 2
			}
			blank(i, i+end+2)
		case c == ',':
			comma = i
		case c == '}' || c == ']':
			if comma >= 0 {
				out[comma] = ' '
			}
			comma = -1
		case c != ' ' && c != '\t' && c != '\r' && c != '\n':
			comma = -1
		}
	}
	return out
}
