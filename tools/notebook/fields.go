package notebook

import (
	"cmp"
	"slices"
	"strings"
)

// maxKeys is how many keys a cell that is changed may have. Those of Jupyter have seven.
const maxKeys = 1000

// fields are the members of a cell that is written.
type fields struct {
	list []field
	pattern
}

// A field is one member. Lead, key and value are as they are in the file; lead is the comma before it and what is
// around that, and "" for that of the pattern.
type field struct{ name, lead, key, value string }

// wants are the keys that a cell of a type has, besides an id, in the order of Jupyter.
func (o *outline) wants(kind string) []string {
	switch {
	case kind == "code" && o.major == 3:
		return []string{"cell_type", "collapsed", "input", "language", "metadata", "outputs"}
	case kind == "code":
		return []string{"cell_type", "execution_count", "metadata", "outputs", "source"}
	}
	return []string{"cell_type", "metadata", "source"}
}

// foreign says that a cell of a type cannot have a key that cells of another type have.
func (o *outline) foreign(name, kind string) bool {
	switch name {
	case "outputs", o.countKey():
		return kind != "code"
	case "attachments":
		return kind == "code"
	}
	if o.major == 4 {
		return false
	}
	switch name {
	case "input", "language", "collapsed":
		return kind != "code"
	case "source":
		return kind == "code"
	}
	return name == "level"
}

// sourceKey is the name of the key that has the text of a cell.
func (o *outline) sourceKey(kind string) string {
	if o.major == 3 && kind == "code" {
		return "input"
	}
	return "source"
}

// countKey is the name of the key that has the number of the last execution.
func (o *outline) countKey() string {
	if o.major == 3 {
		return "prompt_number"
	}
	return "execution_count"
}

// fresh writes a new cell.
func (o *outline) fresh(p pattern, id string, edit CellEdit) (string, error) {
	f := &fields{pattern: p}
	names := o.wants(edit.Type)
	if id != "" {
		names = append(names, "id")
	}
	f.keys = arrange(names, p.keys)
	for _, name := range f.keys {
		f.add(name, o.first(name, edit.Type, p.language))
	}
	if id != "" {
		f.set("id", quoted(id))
	}
	source, err := o.source(edit.Source, p.lines)
	f.set(o.sourceKey(edit.Type), source)
	return f.String(), err
}

// first is the value that a key has in a new cell.
func (o *outline) first(name, kind, language string) string {
	switch name {
	case "cell_type":
		return quoted(kind)
	case "language":
		return quoted(cmp.Or(language, "python"))
	case "metadata":
		return "{}"
	case "collapsed":
		return "false"
	case "execution_count":
		return "null"
	}
	return "[]"
}

// replace writes cell i anew: members that the edit does not concern keep their bytes.
func (o *outline) replace(i int, edit CellEdit) ([]byte, Report, error) {
	c := o.cells[i]
	kind := cmp.Or(edit.Type, c.kind)
	r := Report{Mode: Replace, Index: i, ID: o.name(i), Type: kind}
	f, err := o.fields(i, kind)
	if err != nil {
		return nil, Report{}, err
	}
	if kind != c.kind {
		r.Dropped = f.drop(func(name string) bool { return o.foreign(name, kind) })
		f.set("cell_type", quoted(kind))
		for _, name := range o.wants(kind) {
			if f.index(name) < 0 {
				f.add(name, o.first(name, kind, f.language))
			}
		}
	}
	source, err := o.source(edit.Source, f.lines)
	if err != nil {
		return nil, Report{}, err
	}
	f.set(o.sourceKey(kind), source)
	if kind == "code" {
		r.Cleared = f.clear("outputs", "[]")
		f.clear(o.countKey(), "null")
	}
	out, err := o.splice(c.span, f.String())
	r.Source, r.New = o.doc.source(c.span, o.sourceKey(c.kind)), o.wrote(c.span, out)
	return out, r, err
}

// fields reads cell i, which will be of a type. Its own layout comes before that of the cells around it.
func (o *outline) fields(i int, kind string) (*fields, error) {
	c := o.cells[i]
	f := &fields{pattern: o.pattern(i, c.list, kind)}
	f.keys = arrange(append(o.wants(kind), "id"), f.keys)
	if colon, ok := o.colon(c.span); ok {
		f.colon = colon
	}
	if own, ok := o.gaps(c.span); ok {
		if own.open != f.object.open {
			f.lines = o.within(own.open)
		}
		f.object = own
	}
	end := 0
	for m := range o.doc.members(c.span) {
		if len(f.list) == maxKeys {
			return nil, o.invalid(m.key, "a cell has more than 1,000 keys")
		}
		name := string(o.doc.name(m.key))
		if lines, ok := o.gaps(m.value); ok && name == o.sourceKey(c.kind) && o.doc.is(m.value, '[') {
			f.lines = lines
		}
		lead := ""
		if end > 0 {
			lead = string(o.doc[end:m.key.from])
		}
		end = m.value.to
		f.list = append(f.list, field{name, lead, string(o.doc[m.key.from:m.value.from]), string(o.doc.bytes(m.value))})
	}
	if end > 0 {
		// Whole, and not cut as gaps are: it is written once, and belongs to nothing that changes.
		f.object.open = string(o.doc[c.span.from+1 : o.doc.blank(c.span.from+1)])
		f.object.end = string(o.doc[end : c.span.to-1])
	}
	return f, nil
}

// index is where the last field of a name is, which is the one that counts; -1: there is none.
func (f *fields) index(name string) int {
	for i, x := range slices.Backward(f.list) {
		if x.name == name {
			return i
		}
	}
	return -1
}

// set gives a field a value, and makes it if it is not there.
func (f *fields) set(name, value string) {
	if i := f.index(name); i >= 0 {
		f.list[i].value = value
		return
	}
	f.add(name, value)
}

// add puts a new field where the order of keys has it: before the first that comes after it.
func (f *fields) add(name, value string) {
	rank := slices.Index(f.keys, name)
	i := slices.IndexFunc(f.list, func(x field) bool { return slices.Index(f.keys, x.name) > rank })
	if i < 0 {
		i = len(f.list)
	}
	f.list = slices.Insert(f.list, i, field{name: name, key: quoted(name) + f.colon, value: value})
}

// drop takes fields out and returns the names of those that hold something.
func (f *fields) drop(foreign func(name string) bool) (dropped []string) {
	f.list = slices.DeleteFunc(f.list, func(x field) bool {
		if !foreign(x.name) {
			return false
		}
		if x.name != "source" && x.name != "input" && !nothing(x.value) {
			dropped = append(dropped, x.name)
		}
		return true
	})
	return dropped
}

// clear takes away what the last execution has left in a key, and says whether it did. What is empty already keeps its
// spelling.
func (f *fields) clear(name, empty string) (cleared bool) {
	for i, x := range f.list {
		if x.name == name && !nothing(x.value) {
			f.list[i].value, cleared = empty, true
		}
	}
	return cleared
}

// nothing says that a value is null, or an empty list or object.
func nothing(value string) bool {
	if value[0] == '[' || value[0] == '{' {
		return strings.Trim(value[1:len(value)-1], " \t\r\n") == ""
	}
	return value == "null"
}

func (f *fields) String() string {
	var b strings.Builder
	b.WriteString("{" + f.object.open)
	for i, x := range f.list {
		if i > 0 {
			b.WriteString(cmp.Or(x.lead, f.object.next))
		}
		b.WriteString(x.key)
		b.WriteString(x.value)
	}
	b.WriteString(f.object.end + "}")
	return b.String()
}

// arrange brings names into an order; those that are not in it go before the first that is greater.
func arrange(names, order []string) []string {
	var out []string
	for _, name := range order {
		if slices.Contains(names, name) && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	for _, name := range names {
		if slices.Contains(out, name) {
			continue
		}
		i := slices.IndexFunc(out, func(other string) bool { return other > name })
		if i < 0 {
			i = len(out)
		}
		out = slices.Insert(out, i, name)
	}
	return out
}

func quoted(s string) string { return string(appendQuoted(nil, s, true)) }

// source is a text as a list of lines, each with its line end.
func (o *outline) source(text string, g gaps) (string, error) {
	if text == "" {
		return "[]", nil
	}
	ascii := strings.ContainsFunc(text, func(r rune) bool { return r > '~' }) && o.doc.escapesAll()
	out := append([]byte{'['}, g.open...)
	first := true
	for line := range strings.Lines(text) {
		if !first {
			out = append(out, g.next...)
		}
		first = false
		if out = appendQuoted(out, line, ascii); len(out) > MaxBytes {
			return "", ErrTooLarge
		}
	}
	return string(append(append(out, g.end...), ']')), nil
}
