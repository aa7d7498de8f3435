package forms

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// yamlForm is YAML in blocks. The parser tells in which lines something stands, and lines are what is changed.
type yamlForm struct{}

func parseYAML(data []byte) (*ast.File, error) {
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		at := &SyntaxError{}
		line, _, _ := strings.Cut(err.Error(), "\n")
		at.Text = line
		if n, scan := fmt.Sscanf(line, "[%d:%d]", &at.Line, &at.Column); scan == nil && n == 2 {
			_, at.Text, _ = strings.Cut(line, "] ")
		}
		return nil, at
	}
	return file, nil
}

func (yamlForm) Decode(data []byte) (any, error) {
	file, err := parseYAML(data)
	if err != nil {
		return nil, err
	}
	var docs []any
	for _, doc := range file.Docs {
		if doc.Body != nil && doc.Body.Type() != ast.CommentType {
			docs = append(docs, plainYAML(doc.Body))
		}
	}
	switch len(docs) {
	case 0:
		return map[string]any{}, nil
	case 1:
		return docs[0], nil
	}
	return docs, nil
}

// plainYAML decodes what can be in a client's file. Other nodes are told apart by their kind and text.
func plainYAML(n ast.Node) any {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value
	case *ast.BoolNode:
		return n.Value
	case *ast.NullNode:
		return nil
	case *ast.SequenceNode:
		list := []any{}
		for _, e := range n.Values {
			list = append(list, plainYAML(e))
		}
		return list
	case *ast.MappingValueNode: // a table of one entry
		return map[string]any{n.Key.GetToken().Value: plainYAML(n.Value)}
	case *ast.MappingNode:
		table := map[string]any{}
		for _, e := range n.Values {
			table[e.Key.GetToken().Value] = plainYAML(e.Value)
		}
		return table
	case nil:
		return nil
	}
	return []any{"", n.Type().String(), n.String()}
}

// pairs are the entries of a table in blocks; nil: it is none.
func pairs(n ast.Node) []*ast.MappingValueNode {
	switch n := n.(type) {
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	case *ast.MappingNode:
		if !n.IsFlowStyle {
			return n.Values
		}
	}
	return nil
}

// pair is an entry of a table in blocks; nil: there is none.
func pair(n ast.Node, key string) *ast.MappingValueNode {
	for _, e := range pairs(n) {
		if e.Key.GetToken().Value == key {
			return e
		}
	}
	return nil
}

// A block is lines, counted from 0, the end excluded. What is in it is indented by more than indent.
type block struct{ from, to, indent int }

// blockAt is the block that begins with a line at an indentation: all lines that are indented by more, or are items of
// a list if the first is none. Comments and empty lines at its end are not part of it.
func blockAt(lines []string, from, indent int) block {
	from = min(from, len(lines)-1)
	item := strings.HasPrefix(strings.TrimLeft(lines[from], " "), "-")
	to := from + 1
	for i := from + 1; i < len(lines); i++ {
		text := strings.TrimLeft(lines[i], " ")
		has := len(lines[i]) - len(text)
		switch {
		case strings.TrimSpace(text) == "":
			continue
		case strings.HasPrefix(text, "#"):
			if has <= indent {
				continue
			}
		case has > indent, has == indent && !item && strings.HasPrefix(text, "- "):
		default:
			return block{from, to, indent}
		}
		to = i + 1
	}
	return block{from, to, indent}
}

// blockOf is the block of an entry of a table.
func blockOf(lines []string, e *ast.MappingValueNode) block {
	at := e.Key.GetToken().Position
	return blockAt(lines, at.Line-1, at.Column-1)
}

// splitLines are the lines of a text with their ends.
func splitLines(data []byte) []string { return slices.Collect(strings.Lines(string(data))) }

// topYAML is the one document of a file.
func topYAML(data []byte) (ast.Node, error) {
	file, err := parseYAML(data)
	if err != nil {
		return nil, err
	}
	if len(file.Docs) != 1 || pairs(file.Docs[0].Body) == nil {
		return nil, ErrNotUnderstood
	}
	return file.Docs[0].Body, nil
}

func (y yamlForm) Merge(data, snippet []byte) ([]byte, error) {
	tree, err := y.Decode(data)
	if err != nil {
		return nil, err
	}
	if bytes.Count(data, []byte("\r")) != bytes.Count(data, []byte("\r\n")) {
		return nil, ErrNotUnderstood // the parser takes a single carriage return for the end of a line, and we do not
	}
	end := lineEnds(data)
	if Same(tree, map[string]any{}) {
		if len(data) > 0 && data[len(data)-1] != '\n' {
			data = append(bytes.Clone(data), end...)
		}
		return append(bytes.Clone(data), withEnds(string(snippet), end)...), nil
	}
	wanted, err := y.Decode(snippet)
	if err != nil {
		return nil, err
	}
	container := Container(wanted)
	into, err := topYAML(data)
	if err != nil {
		return nil, err
	}
	from, err := topYAML(snippet)
	if err != nil {
		return nil, err
	}
	theirs := splitLines([]byte(withEnds(string(snippet), end)))
	part := blockOf(theirs, pair(from, container))
	ours := theirs[part.from:part.to] // the line of the container, then our entry
	lines := splitLines(data)
	if n := len(lines); n > 0 && !strings.HasSuffix(lines[n-1], "\n") {
		lines[n-1] += end
	}
	old := pair(into, container)
	if old == nil {
		last := pairs(into)
		b := blockOf(lines, last[len(last)-1])
		return joinLines(slices.Insert(lines, b.to, ours...)), nil
	}
	return mergeYAML(lines, ours, old)
}

// emptyYAML is the line of a container that has nothing in it.
var emptyYAML = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^( *[^ #]+ *:)[ \t]*(?:\{ *\}|\[ *\]|null|~)?([ \t]+#.*)?(\r?\n)$`)
})

// mergeYAML puts our entry below a container that is there.
func mergeYAML(lines, ours []string, old *ast.MappingValueNode) ([]byte, error) {
	at := min(old.Key.GetToken().Position.Line, len(lines)) - 1
	indent, entry, ok := childOf(lines, old)
	if !ok {
		m := emptyYAML().FindStringSubmatch(lines[at])
		if m == nil {
			return nil, ErrNotUnderstood
		}
		lines[at] = m[1] + m[2] + m[3]
		return joinLines(slices.Insert(lines, at+1, ours[1:]...)), nil
	}
	mine := indented(ours[1:], indent-2)
	if entry == nil {
		return joinLines(slices.Insert(lines, blockOf(lines, old).to, mine...)), nil
	}
	was := blockAt(lines, entry.line, indent)
	mine = keepYAML(lines, mine, entry.node, indent)
	return joinLines(slices.Replace(lines, was.from, was.to, mine...)), nil
}

// A place is our entry in a container.
type place struct {
	line int // from 0
	node ast.Node
}

// childOf is how deep the entries of a container are indented, and ours; nil: it is not there. Not ok: the container is
// empty, or not written in blocks.
func childOf(lines []string, container *ast.MappingValueNode) (indent int, ours *place, ok bool) {
	if list, is := container.Value.(*ast.SequenceNode); is {
		if list.IsFlowStyle || len(list.Values) == 0 {
			return 0, nil, false
		}
		indent = list.Start.Position.Column - 1
		for _, item := range list.Values {
			e := pair(item, "name")
			if e == nil || plainYAML(e.Value) != Name {
				continue
			}
			line := min(pairs(item)[0].Key.GetToken().Position.Line, len(lines)) - 1
			for line > 0 && !strings.HasPrefix(lines[line], strings.Repeat(" ", indent)+"-") {
				line--
			}
			return indent, &place{line, item}, true
		}
		return indent, nil, true
	}
	all := pairs(container.Value)
	if len(all) == 0 {
		return 0, nil, false
	}
	indent = all[0].Key.GetToken().Position.Column - 1
	if e := pair(container.Value, Name); e != nil {
		ours = &place{e.Key.GetToken().Position.Line - 1, e.Value}
	}
	return indent, ours, true
}

// keepYAML is our entry with the lines that a person added to the old one.
func keepYAML(lines, mine []string, old ast.Node, indent int) []string {
	for _, e := range pairs(old) {
		key := e.Key.GetToken().Value
		b := blockOf(lines, e)
		raw := slices.Clone(lines[b.from:b.to])
		raw[0] = strings.Repeat(" ", b.indent) + strings.TrimLeft(raw[0], " -")
		raw = indented(raw, indent+2-b.indent)
		at := slices.IndexFunc(mine, func(line string) bool {
			return strings.HasPrefix(strings.TrimLeft(line, " -"), key+":")
		})
		switch {
		case at >= 0 && slices.Contains(tuned, key):
			mine = slices.Replace(mine, at, at+1, raw...)
		case at < 0 && !slices.Contains(written, key):
			mine = append(mine, raw...)
		}
	}
	return mine
}

// indented moves lines to the right by n, or to the left.
func indented(lines []string, n int) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		if n >= 0 {
			out[i] = strings.Repeat(" ", n) + line
		} else {
			cut := min(-n, len(line)-len(strings.TrimLeft(line, " ")))
			out[i] = line[cut:]
		}
	}
	return out
}

func joinLines(lines []string) []byte { return []byte(strings.Join(lines, "")) }

// Mask changes nothing: which texts belong to others is not looked for in this form.
func (yamlForm) Mask(data []byte, _ []string) []byte { return data }

func (yamlForm) Remove(data []byte, container string, drop []string) ([]byte, error) {
	top, err := topYAML(data)
	if err != nil {
		return nil, err
	}
	old := pair(top, container)
	if old == nil {
		return data, nil
	}
	lines := splitLines(data)
	indent, entry, ok := childOf(lines, old)
	if !ok || entry == nil {
		return data, nil
	}
	b := blockAt(lines, entry.line, indent)
	only, empty := len(pairs(old.Value)) == 1, "{}"
	if list, is := old.Value.(*ast.SequenceNode); is {
		only, empty = len(list.Values) == 1, "[]"
	}
	lines = slices.Delete(lines, b.from, b.to)
	at := min(old.Key.GetToken().Position.Line, len(lines)) - 1
	switch {
	case only && slices.Contains(drop, container):
		lines = slices.Delete(lines, at, at+1)
	case only: // a key without a value is null, which is no table
		rest := lines[at][len(strings.TrimRight(lines[at], "\r\n")):]
		lines[at] = strings.TrimRight(lines[at], "\r\n") + " " + empty + rest
	}
	return joinLines(lines), nil
}
