package forms

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// tomlForm is TOML. Our entry is the tables [C.codehand] and [C.codehand.…]; other spellings are not understood.
type tomlForm struct{}

func (tomlForm) Decode(data []byte) (any, error) {
	tree := map[string]any{}
	if err := toml.Unmarshal(data, &tree); err != nil {
		at := &SyntaxError{Text: strings.TrimPrefix(err.Error(), "toml: ")}
		if d, ok := errors.AsType[*toml.DecodeError](err); ok {
			at.Line, at.Column = d.Position()
		}
		return nil, at
	}
	return tree, nil
}

// A tomlTable is one of our tables as it is written.
type tomlTable struct {
	path     []string
	from, to int // from the line of its header to the end of the line of its last value
	keys     []tomlKey
}

type tomlKey struct {
	Name     string
	from, to int // whole lines
}

// tablesOf finds the tables at path and below it.
func tablesOf(data []byte, at ...string) []tomlTable {
	var p unstable.Parser
	p.Reset(data)
	var found []tomlTable
	ours := false
	// end closes what is open where the next expression begins: the comments before that are its own.
	end := func(next int) {
		if !ours {
			return
		}
		t := &found[len(found)-1]
		t.to = backOverComments(data, next)
		if n := len(t.keys); n > 0 {
			t.keys[n-1].to = t.to
		}
	}
	for p.NextExpression() {
		n := p.Expression()
		var keys []string
		first := -1
		for it := n.Key(); it.Next(); {
			if first < 0 {
				first = int(it.Node().Raw.Offset)
			}
			keys = append(keys, string(it.Node().Data))
		}
		if first < 0 {
			continue
		}
		first = lineBegin(data, first)
		end(first)
		switch n.Kind {
		case unstable.Table, unstable.ArrayTable:
			if ours = len(keys) >= len(at) && slices.Equal(keys[:len(at)], at); ours {
				found = append(found, tomlTable{path: keys, from: first})
			}
		case unstable.KeyValue:
			if ours {
				t := &found[len(found)-1]
				t.keys = append(t.keys, tomlKey{Name: keys[0], from: first})
			}
		}
	}
	end(len(data))
	return found
}

// backOverComments goes back over lines that are empty or comments. An offset that begins a line stays one.
func backOverComments(data []byte, at int) int {
	for at > 0 {
		begin := lineBegin(data, at-1)
		line := bytes.TrimSpace(data[begin:at])
		if len(line) > 0 && line[0] != '#' {
			return at
		}
		at = begin
	}
	return at
}

func lineBegin(data []byte, at int) int { return bytes.LastIndexByte(data[:at], '\n') + 1 }

func (tomlForm) Merge(data, snippet []byte) ([]byte, error) {
	end := lineEnds(data)
	ours := tablesOf(snippet)
	if len(ours) == 0 || len(ours[0].path) != 2 {
		return nil, ErrNotUnderstood
	}
	old := tablesOf(data, ours[0].path...)
	if len(old) == 0 {
		text := withEnds(string(snippet), end)
		if len(bytes.TrimSpace(data)) == 0 {
			return append(data, text...), nil
		}
		if data[len(data)-1] != '\n' {
			text = end + text
		}
		return append(bytes.Clone(data), end+text...), nil
	}
	text := keepTOML(data, snippet, old, ours)
	out := []splice{{old[0].from, old[0].to, withEnds(text, end)}}
	for _, t := range old[1:] {
		out = append(out, splice{backOverBlank(data, t.from), t.to, ""})
	}
	return spliced(data, out...), nil
}

// keepTOML is the snippet with the lines and tables that a person added to our old tables.
func keepTOML(data, snippet []byte, old, ours []tomlTable) string {
	var main, rest strings.Builder
	header := ours[0].from
	if len(ours[0].keys) > 0 {
		main.Write(snippet[header:ours[0].keys[0].from])
	}
	was := map[string]string{}
	var order []string
	for _, t := range old {
		if len(t.path) > len(ours[0].path) {
			if !slices.Contains(written, t.path[len(ours[0].path)]) {
				rest.WriteString("\n" + string(data[t.from:t.to]))
			}
			continue
		}
		for _, k := range t.keys {
			was[k.Name] = whole(data[k.from:k.to])
			order = append(order, k.Name)
		}
	}
	has := map[string]bool{}
	for _, k := range ours[0].keys {
		has[k.Name] = true
		line := string(snippet[k.from:k.to])
		if slices.Contains(tuned, k.Name) && was[k.Name] != "" {
			line = was[k.Name]
		}
		main.WriteString(line)
	}
	for _, k := range order {
		if !has[k] && !slices.Contains(written, k) {
			main.WriteString(was[k])
		}
	}
	main.Write(snippet[ours[0].to:])
	return main.String() + rest.String()
}

// whole is lines that end in a line feed.
func whole(lines []byte) string {
	if text := string(lines); strings.HasSuffix(text, "\n") {
		return text
	}
	return string(lines) + "\n"
}

// Mask changes nothing: which texts belong to others is not looked for in this form.
func (tomlForm) Mask(data []byte, _ []string) []byte { return data }

func (tomlForm) Remove(data []byte, container string, _ []string) ([]byte, error) {
	return RemoveTable(data, container, Name), nil
}

// RemoveTable returns TOML without a table and those in it. One that stands in braces or in dotted keys stays.
func RemoveTable(data []byte, path ...string) []byte {
	var out []splice
	for _, t := range tablesOf(data, path...) {
		out = append(out, splice{backOverBlank(data, t.from), t.to, ""})
	}
	return spliced(data, out...)
}

// backOverBlank goes back over the empty line before an offset, which begins a line.
func backOverBlank(data []byte, at int) int {
	if at > 1 && data[at-1] == '\n' {
		if begin := lineBegin(data, at-1); len(bytes.TrimSpace(data[begin:at])) == 0 {
			return begin
		}
	}
	return at
}

// lineEnds is how the lines of a file end.
func lineEnds(data []byte) string {
	if bytes.Contains(data, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

func withEnds(text, end string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", end)
}
