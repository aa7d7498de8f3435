package config

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// An entry is one key of a file with its value, not yet checked.
type entry struct {
	path   []string
	key    string // path with dots; a table that holds no settings stands for itself
	raw    any    // string, int64, bool, []any, or what no setting takes; of an array of tables one table
	origin string // file:line:column
	lines  []string
	keys   map[string]string // origins of the keys of such a table
	empty  bool              // it is a table without a key
}

// bareWord finds what a line of TOML gives a key without quotes, which is the commonest error and has the least helpful
// message; word "": the line is none of the kind.
func bareWord(data []byte, row int) (key, word string) {
	lines := bytes.Split(data, []byte("\n"))
	if row < 1 || row > len(lines) {
		return "", ""
	}
	line := regexp.MustCompile(`^\s*([\w.-]+)\s*=\s*([A-Za-z/~][\w./+-]*)\s*(?:#.*)?$`).FindSubmatch(lines[row-1])
	if line == nil {
		return "", ""
	}
	return string(line[1]), string(line[2])
}

// parse reads a file of settings. The values come from the decoder, which knows all of TOML's rules; the positions
// come from the same module's parser, because the decoder tells them only for what it could not use.
func parse(name string, data []byte) ([]entry, error) {
	var values map[string]any
	if err := toml.Unmarshal(data, &values); err != nil {
		if bad, ok := errors.AsType[*toml.DecodeError](err); ok {
			row, column := bad.Position()
			text := strings.TrimPrefix(bad.Error(), "toml: ")
			if key, word := bareWord(data, row); word != "" {
				text += fmt.Sprintf("; a text needs quotes: %s = %q", key, word)
			}
			return nil, Problem{Origin: fmt.Sprintf("%s:%d:%d", name, row, column), Text: text}
		}
		return nil, Problem{Origin: name, Text: strings.TrimPrefix(err.Error(), "toml: ")}
	}
	r := reader{name: name, values: values, sections: sectionNames()}
	r.parser.Reset(data)
	for r.parser.NextExpression() {
		r.expression(r.parser.Expression())
	}
	if err := r.parser.Error(); err != nil { // cannot be: the decoder has just read it
		return nil, Problem{Origin: name, Text: err.Error()}
	}
	return append(r.entries, emptyMounts(&r)...), nil
}

// emptyMounts are the tables of mounted servers that have no key: nobody means them so.
func emptyMounts(r *reader) []entry {
	servers, _ := lookup(r.values, mountsTable).(map[string]any)
	var empty []entry
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		path := append(slices.Clone(mountsTable), name)
		if _, isTable := servers[name].(map[string]any); !isTable || slices.ContainsFunc(r.entries, func(e entry) bool {
			return len(e.path) > len(path) && slices.Equal(e.path[:len(path)], path)
		}) {
			continue // what is no table is an entry itself
		}
		at := r.mounts[name]
		if at == "" {
			at = r.name
		}
		empty = append(empty, entry{path: path, key: dotted(path), origin: at, empty: true})
	}
	return empty
}

// A reader collects the entries of one file. The table that an expression belongs to is the last header.
type reader struct {
	name     string
	values   map[string]any
	sections map[string]bool
	parser   unstable.Parser
	table    []string
	entries  []entry
	inside   *int              // entry of the array's table that expressions belong to; nil: none
	mounts   map[string]string // where the table of a mounted server begins
	tables   map[string]int    // how many tables there were in each array
}

func (r *reader) expression(n *unstable.Node) {
	switch n.Kind {
	case unstable.Table, unstable.ArrayTable:
		path, at := r.key(n)
		r.table, r.inside = path, nil
		if mountPath(path) && len(path) > len(mountsTable) {
			if r.mounts == nil {
				r.mounts = map[string]string{}
			}
			if name := path[len(mountsTable)]; r.mounts[name] == "" {
				r.mounts[name] = at
			}
		}
		if n.Kind == unstable.ArrayTable && tables(path) {
			r.arrayTable(path, at)
			return
		}
		if n.Kind == unstable.ArrayTable || !r.section(path) {
			r.entries = append(r.entries, entry{path: path, key: dotted(path), origin: at})
		}
	case unstable.KeyValue:
		r.keyValue(r.table, n)
	}
}

// keyValue notes a key, or the keys of an inline table.
func (r *reader) keyValue(table []string, n *unstable.Node) {
	if r.inside != nil {
		r.tableKey(r.entries[*r.inside], n)
		return
	}
	names, at := r.key(n)
	path := append(append([]string(nil), table...), names...)
	value := n.Value()
	if value.Kind == unstable.InlineTable && r.section(path) {
		for it := value.Children(); it.Next(); {
			r.keyValue(path, it.Node())
		}
		return
	}
	if value.Kind == unstable.Array && tables(path) && r.inlineTables(path, at, value) {
		return
	}
	e := entry{path: path, key: dotted(path), raw: lookup(r.values, path), origin: at}
	if value.Kind == unstable.Array {
		for it := value.Children(); it.Next(); {
			e.lines = append(e.lines, r.at(it.Node().Raw, at))
		}
	}
	r.entries = append(r.entries, e)
}

// tables says whether path is that of an array of tables: hooks for one event, or issuers.
func tables(path []string) bool { return hookArray(path) || issuerArray(path) }

// arrayTable begins a table of an array.
func (r *reader) arrayTable(path []string, at string) {
	r.entries = append(r.entries, r.tableEntry(path, at))
	i := len(r.entries) - 1
	r.inside = &i
}

// tableEntry makes the entry for the next table of an array.
func (r *reader) tableEntry(path []string, at string) entry {
	if r.tables == nil {
		r.tables = map[string]int{}
	}
	e := entry{path: path, key: dotted(path), origin: at, keys: map[string]string{}}
	if list, ok := lookup(r.values, path).([]any); ok && r.tables[e.key] < len(list) {
		e.raw = list[r.tables[e.key]]
	}
	r.tables[e.key]++
	return e
}

// tableKey notes where a key of such a table begins. In TOML each key has at least one name.
func (r *reader) tableKey(e entry, n *unstable.Node) {
	names, at := r.key(n)
	e.keys[names[0]] = at
}

// inlineTables notes the tables of an array that is written as a value; ok is false if there are none.
func (r *reader) inlineTables(path []string, at string, array *unstable.Node) (ok bool) {
	for it := array.Children(); it.Next(); {
		e := r.tableEntry(path, at)
		if table := it.Node(); table.Kind == unstable.InlineTable {
			for keys := table.Children(); keys.Next(); {
				r.tableKey(e, keys.Node())
			}
		}
		r.entries = append(r.entries, e)
		ok = true
	}
	return ok
}

// section says whether path is a table that holds settings, or tables of them.
func (r *reader) section(path []string) bool {
	if named(path) {
		return len(path) <= 1+depth(path) && !ofLater(path)
	}
	if mountPath(path) {
		return mountSection(path)
	}
	return lspSection(path) || r.sections[dotted(path)]
}

// key returns the names of an expression's key, and where it begins.
func (r *reader) key(n *unstable.Node) (path []string, at string) {
	for it := n.Key(); it.Next(); {
		if at == "" {
			at = r.at(it.Node().Raw, r.name)
		}
		path = append(path, string(it.Node().Data))
	}
	return path, at
}

// at is a position in the file; instead, if the parser does not know it.
func (r *reader) at(raw unstable.Range, instead string) string {
	if raw.Length == 0 {
		return instead
	}
	start := r.parser.Shape(raw).Start
	return fmt.Sprintf("%s:%d:%d", r.name, start.Line, start.Column)
}

func lookup(values map[string]any, path []string) any {
	var at any = values
	for _, name := range path {
		table, ok := at.(map[string]any)
		if !ok {
			return nil
		}
		at = table[name]
	}
	return at
}

// sectionNames are the tables that hold settings, or other tables of them.
func sectionNames() map[string]bool {
	c := defaults()
	known := map[string]bool{}
	for _, s := range table(&c) {
		for i := range s.key {
			if s.key[i] == '.' {
				known[s.key[:i]] = true
			}
		}
	}
	return known
}

// dotted joins names to a key. A name that TOML takes in quotes only is quoted, so that `"log.level"`, which is another
// key in TOML, does not pass for the setting.
func dotted(path []string) string {
	names := make([]string, len(path))
	for i, name := range path {
		if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r != '-' && !nameRune(r) }) {
			name = strconv.Quote(name)
		}
		names[i] = name
	}
	return strings.Join(names, ".")
}
