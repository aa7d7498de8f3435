package install

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// builtIn are the tools of Claude Code that ours stand for. Side by side each refuses edits after the other's reads,
// since neither sees what the other has read.
var builtIn = []string{"Read", "Edit", "Write", "NotebookEdit", "Bash", "Glob", "Grep"}

// exclusiveFile is the settings file of a client that can leave its own tools out; "": it cannot.
func (p Places) exclusiveFile(client string, project bool) string {
	switch {
	case client != "claude-code":
		return ""
	case project:
		return p.join(p.Project, ".claude/settings.json")
	case p.isAbs(p.Env("CLAUDE_CONFIG_DIR")):
		return p.join(p.Env("CLAUDE_CONFIG_DIR"), "settings.json")
	}
	return p.join(p.Home, ".claude/settings.json")
}

// planExclusive says what the settings gain.
func (p Places) planExclusive(client string, want Want, notes map[string][]note) (FileChange, error) {
	at := p.exclusiveFile(client, want.Project)
	f := FileChange{File: at, private: !want.Project}
	if at == "" {
		return f, fmt.Errorf("%s %w", client, ErrExclusive)
	}
	r, err := p.read(at)
	if err != nil {
		return f, err
	}
	gains := map[string][]string{"permissions.deny": builtIn}
	for _, tool := range want.Allow {
		gains["permissions.allow"] = append(gains["permissions.allow"], "mcp__"+name+"__"+tool)
	}
	if want.Project {
		gains["enabledMcpjsonServers"] = []string{name}
	}
	f.Old, f.New = r.data, r.data
	body, added := r.body, map[string][]string{}
	if len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{}\n")
	}
	for _, path := range slices.Sorted(maps.Keys(gains)) {
		for _, value := range gains[path] {
			after, err := addText(body, strings.Split(path, "."), value)
			if err != nil {
				return f, &RefusedError{File: at, err: err}
			}
			if !bytes.Equal(after, body) {
				body, added[path] = after, append(added[path], value)
			}
		}
	}
	if len(added) == 0 {
		return f, nil
	}
	if !r.may {
		return f, &RefusedError{File: at, err: errReadOnly}
	}
	tree, err := jsonForm{}.decode(body)
	if err != nil || !same(lessTexts(tree, added), lessTexts(r.tree, added)) {
		return f, &RefusedError{File: at, err: errForm}
	}
	f.New = r.with(body)
	before, drop := r.data, absentIn(r.tree, added)
	if n := lastOf(notes[at]); n.Client != "" {
		for path, values := range n.Added {
			added[path] = append(slices.Clone(values), added[path]...)
		}
		drop = append(drop, n.Drop...)
		if was, ok := n.undo(r.data); ok {
			before = was
		}
	}
	f.note = noteOf(client, before, f.New)
	f.note.Added, f.note.Drop = added, drop
	return f, nil
}

// absentIn are the paths, with dots, of the lists and of the tables around them that are not there, the deepest first.
func absentIn(tree any, lists map[string][]string) []string {
	var all []string
	for _, path := range slices.Sorted(maps.Keys(lists)) {
		keys := strings.Split(path, ".")
		at, _ := tree.(map[string]any)
		for i, key := range keys {
			if _, ok := at[key]; !ok {
				all = append(all, strings.Join(keys[:i+1], "."))
			}
			at, _ = at[key].(map[string]any)
		}
	}
	slices.Reverse(all)
	return slices.Compact(all)
}

// exclusiveNote is what planExclusive would have noted of settings that it left as they are; the zero note: they are
// not such. A person may deny one tool or the other, and does not deny all that ours stand for beside allowing ours.
func exclusiveNote(tree any) note {
	top, _ := tree.(map[string]any)
	rules, _ := top["permissions"].(map[string]any)
	denied := texts(rules["deny"])
	for _, tool := range builtIn {
		if !slices.Contains(denied, tool) {
			return note{}
		}
	}
	var ours []string
	for _, rule := range texts(rules["allow"]) {
		if strings.HasPrefix(rule, "mcp__"+name+"__") {
			ours = append(ours, rule)
		}
	}
	if len(ours) == 0 {
		return note{}
	}
	n := note{Added: map[string][]string{"permissions.deny": builtIn, "permissions.allow": ours},
		Drop: []string{"permissions.deny", "permissions.allow", "permissions"}}
	if slices.Contains(texts(top["enabledMcpjsonServers"]), name) {
		n.Added["enabledMcpjsonServers"] = []string{name}
		n.Drop = append(n.Drop, "enabledMcpjsonServers")
	}
	return n
}

// Exclusive is the settings file in which an install denies a client its own tools, that of the user or of the project;
// "": they are not denied by us. What cannot be read denies nothing.
func Exclusive(p Places, client string, project bool) string {
	at := p.exclusiveFile(client, project)
	if at == "" || project && p.Project == "" {
		return ""
	}
	r, err := p.read(at)
	if err != nil || r.data == nil {
		return ""
	}
	if exclusiveNote(r.tree).Added != nil {
		return at
	}
	notes, err := readNotes(p.State)
	if err != nil {
		return ""
	}
	// Of what we denied something still is, whatever a person has changed.
	top, _ := r.tree.(map[string]any)
	rules, _ := top["permissions"].(map[string]any)
	for _, tool := range lastOf(notes[at]).Added["permissions.deny"] {
		if slices.Contains(texts(rules["deny"]), tool) {
			return at
		}
	}
	return ""
}

// planInclusive takes back what planExclusive added, and nothing else.
func (p Places) planInclusive(at string, known []note) (FileChange, error) {
	f := FileChange{File: at}
	r, err := p.read(at)
	if err != nil || r.data == nil {
		return f, err
	}
	n := lastOf(known)
	if n.Client == "" {
		if n = exclusiveNote(r.tree); n.Added == nil {
			return f, nil
		}
	}
	f.Old, f.New, f.note = r.data, r.data, n
	if !r.may {
		return f, &RefusedError{File: at, err: errReadOnly}
	}
	if was, ok := n.undo(r.data); ok && len(known) > 0 {
		tree, err := jsonForm{}.decode(bytes.TrimPrefix(was, byteOrderMark))
		if err == nil && same(lessTexts(tree, n.Added), lessTexts(r.tree, n.Added)) {
			f.New = p.left(at, was)
			return f, nil
		}
	}
	body := bytes.Clone(r.body)
	for path, values := range n.Added {
		body, err = removeItems(body, strings.Split(path, "."), func(v hujson.Value) bool {
			l, ok := v.Value.(hujson.Literal)
			return ok && slices.Contains(values, l.String())
		})
		if err != nil {
			return f, &RefusedError{File: at, err: err}
		}
	}
	for _, path := range n.Drop {
		if body, err = dropEmpty(body, strings.Split(path, ".")); err != nil {
			return f, &RefusedError{File: at, err: err}
		}
	}
	tree, err := jsonForm{}.decode(body)
	if err != nil || !same(lessTexts(tree, n.Added), lessTexts(r.tree, n.Added)) {
		return f, &RefusedError{File: at, err: errForm}
	}
	f.New = r.with(body)
	return f, nil
}

// addText adds a text to the list at a path, and what is missing of the path.
func addText(data []byte, path []string, value string) ([]byte, error) {
	root, err := parseJSON(data)
	if err != nil {
		return nil, err
	}
	s := styleOf(data)
	in := &root
	for i, key := range path {
		next, err := member(*in, key)
		if err != nil {
			return nil, err
		}
		if next == nil {
			text := quotedJSON(key) + ":" + nested(path[i+1:], value)
			m, err := parseJSON([]byte("{" + text + "}"))
			if err != nil {
				return nil, err
			}
			return s.add(data, in, s.indentOf(data, in), members(m)[0])
		}
		in = next
	}
	list, ok := in.Value.(*hujson.Array)
	if !ok {
		return nil, errForm
	}
	for _, e := range list.Elements {
		if l, ok := e.Value.(hujson.Literal); ok && l.Kind() == '"' && l.String() == value {
			return data, nil
		}
	}
	item, err := parseJSON([]byte(quotedJSON(value)))
	if err != nil {
		return nil, err
	}
	return s.addItem(data, in, item)
}

// nested is a list of one text below the rest of a path.
func nested(path []string, value string) string {
	if len(path) == 0 {
		return "[" + quotedJSON(value) + "]"
	}
	return "{" + quotedJSON(path[0]) + ":" + nested(path[1:], value) + "}"
}

func quotedJSON(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a text always has a form in JSON
	}
	return string(b)
}

// lessTexts is a tree without some texts of lists, and without the lists and tables that are empty then.
func lessTexts(tree any, texts map[string][]string) any {
	for path, values := range texts {
		tree = lessAt(tree, strings.Split(path, "."), values)
	}
	return tree
}

func lessAt(tree any, path []string, values []string) any {
	switch v := tree.(type) {
	case []any:
		if len(path) > 0 {
			return tree
		}
		return slices.DeleteFunc(slices.Clone(v), func(item any) bool {
			s, ok := item.(string)
			return ok && slices.Contains(values, s)
		})
	case map[string]any:
		if len(path) == 0 {
			return tree
		}
		out := maps.Clone(v)
		switch below := lessAt(v[path[0]], path[1:], values).(type) {
		case nil:
		case []any:
			if out[path[0]] = below; len(below) == 0 {
				delete(out, path[0])
			}
		case map[string]any:
			if out[path[0]] = below; len(below) == 0 {
				delete(out, path[0])
			}
		}
		return out
	}
	return tree
}
