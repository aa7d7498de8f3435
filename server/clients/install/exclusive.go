package install

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"codehand/server/clients/install/forms"
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
		gains["permissions.allow"] = append(gains["permissions.allow"], "mcp__"+forms.Name+"__"+tool)
	}
	if want.Project {
		gains["enabledMcpjsonServers"] = []string{forms.Name}
	}
	f.Old, f.New = r.data, r.data
	body, added := r.body, map[string][]string{}
	if len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{}\n")
	}
	for _, path := range slices.Sorted(maps.Keys(gains)) {
		for _, value := range gains[path] {
			after, err := forms.AddText(body, strings.Split(path, "."), value)
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
	tree, err := forms.JSON.Decode(body)
	if err != nil || !forms.Same(forms.WithoutTexts(tree, added), forms.WithoutTexts(r.tree, added)) {
		return f, &RefusedError{File: at, err: forms.ErrNotUnderstood}
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
		if strings.HasPrefix(rule, "mcp__"+forms.Name+"__") {
			ours = append(ours, rule)
		}
	}
	if len(ours) == 0 {
		return note{}
	}
	n := note{Added: map[string][]string{"permissions.deny": builtIn, "permissions.allow": ours},
		Drop: []string{"permissions.deny", "permissions.allow", "permissions"}}
	if slices.Contains(texts(top["enabledMcpjsonServers"]), forms.Name) {
		n.Added["enabledMcpjsonServers"] = []string{forms.Name}
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
		tree, err := forms.JSON.Decode(bytes.TrimPrefix(was, forms.ByteOrderMark))
		if err == nil && forms.Same(forms.WithoutTexts(tree, n.Added), forms.WithoutTexts(r.tree, n.Added)) {
			f.New = p.left(at, was)
			return f, nil
		}
	}
	body := bytes.Clone(r.body)
	for path, values := range n.Added {
		if body, err = forms.RemoveTexts(body, strings.Split(path, "."), values); err != nil {
			return f, &RefusedError{File: at, err: err}
		}
	}
	for _, path := range n.Drop {
		if body, err = forms.DropEmpty(body, strings.Split(path, ".")); err != nil {
			return f, &RefusedError{File: at, err: err}
		}
	}
	tree, err := forms.JSON.Decode(body)
	if err != nil || !forms.Same(forms.WithoutTexts(tree, n.Added), forms.WithoutTexts(r.tree, n.Added)) {
		return f, &RefusedError{File: at, err: forms.ErrNotUnderstood}
	}
	f.New = r.with(body)
	return f, nil
}
