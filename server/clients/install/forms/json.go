package forms

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// JSON is the form of a file without another extension, and of texts that are in no file.
var JSON Form = jsonForm{}

// jsonForm is JSON with comments and commas behind the last entry.
type jsonForm struct{}

// A splice replaces the bytes from one offset to another.
type splice struct {
	from, to int
	text     string
}

// spliced is data with splices made, which do not overlap.
func spliced(data []byte, splices ...splice) []byte {
	slices.SortStableFunc(splices, func(a, b splice) int { return a.from - b.from })
	out := make([]byte, 0, len(data)) // never nil, which is no file
	at := 0
	for _, s := range splices {
		out = append(append(out, data[at:s.from]...), s.text...)
		at = s.to
	}
	return append(out, data[at:]...)
}

func parseJSON(data []byte) (hujson.Value, error) {
	v, err := hujson.Parse(data)
	if err == nil {
		return v, nil
	}
	at := &SyntaxError{Text: err.Error()}
	if n, scan := fmt.Sscanf(err.Error(), "hujson: line %d, column %d: ", &at.Line, &at.Column); scan == nil && n == 2 {
		_, rest, _ := strings.Cut(err.Error(), ", column ")
		_, at.Text, _ = strings.Cut(rest, ": ")
		at.Text = strings.TrimPrefix(at.Text, "hujson: ")
	}
	return v, at
}

func (jsonForm) Decode(data []byte) (any, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return map[string]any{}, nil
	}
	v, err := parseJSON(data)
	if err != nil {
		return nil, err
	}
	return plainJSON(v)
}

// plainJSON decodes a value. Numbers stay as they are written.
func plainJSON(v hujson.Value) (any, error) {
	v = v.Clone()
	v.Standardize()
	var out any
	d := json.NewDecoder(bytes.NewReader(v.Pack()))
	d.UseNumber()
	if err := d.Decode(&out); err != nil {
		return nil, &SyntaxError{Text: err.Error()}
	}
	return out, nil
}

// Mask puts stars in place of the texts of other servers and settings. What cannot be read is nothing but stars.
func (jsonForm) Mask(data []byte, keep []string) []byte {
	rest, marked := bytes.CutPrefix(data, ByteOrderMark)
	if len(bytes.TrimSpace(rest)) == 0 {
		return data
	}
	root, err := parseJSON(rest)
	if err != nil {
		return []byte(stars)
	}
	var masks []splice
	for _, m := range members(root) {
		for _, server := range members(m.Value) {
			if keyOf(server) != Name { // else it is our entry
				masks = maskTexts(masks, server.Value, keep)
			}
		}
		if _, ok := m.Value.Value.(*hujson.Object); !ok {
			masks = maskTexts(masks, m.Value, keep)
		}
	}
	out := spliced(rest, masks...)
	if marked {
		out = append(bytes.Clone(ByteOrderMark), out...)
	}
	return out
}

// stars stand for a text.
const stars = `"***"`

// maskTexts adds the masks of the texts in a value, apart from ours and those of keep.
func maskTexts(masks []splice, v hujson.Value, keep []string) []splice {
	switch in := v.Value.(type) {
	case *hujson.Object:
		for _, m := range in.Members {
			masks = maskTexts(masks, m.Value, keep)
		}
	case *hujson.Array:
		for _, e := range in.Elements {
			if !isOurInput(e) {
				masks = maskTexts(masks, e, keep)
			}
		}
	case hujson.Literal:
		own := in.String() == Name || strings.HasPrefix(in.String(), "mcp__"+Name+"__") ||
			slices.Contains(keep, in.String())
		if in.Kind() == '"' && !own {
			masks = append(masks, splice{v.StartOffset, v.EndOffset, stars})
		}
	}
	return masks
}

func (jsonForm) Merge(data, snippet []byte) ([]byte, error) {
	want, err := parseJSON(snippet)
	if err != nil {
		return nil, err
	}
	style := styleOf(data)
	if len(bytes.TrimSpace(data)) == 0 {
		return []byte(style.pretty(want, "") + style.end), nil
	}
	for _, m := range members(want) {
		if data, err = style.mergeTop(data, m); err != nil {
			return nil, err
		}
	}
	return data, nil
}

// mergeTop merges one member of a snippet: a table of servers, or a list of items that have an id.
func (s style) mergeTop(data []byte, m hujson.ObjectMember) ([]byte, error) {
	root, err := parseJSON(data)
	if err != nil {
		return nil, err
	}
	key := keyOf(m)
	old, err := member(root, key)
	if err != nil {
		return nil, err
	}
	if old == nil {
		return s.add(data, &root, "", m)
	}
	if list, ok := m.Value.Value.(*hujson.Array); ok {
		return s.addItems(data, old, list)
	}
	if _, ok := old.Value.(*hujson.Object); !ok {
		return nil, ErrNotUnderstood
	}
	servers := members(m.Value)
	if len(servers) != 1 {
		return nil, ErrNotUnderstood
	}
	server := servers[0]
	was, err := member(*old, keyOf(server))
	if err != nil {
		return nil, err
	}
	if was == nil {
		return s.add(data, old, s.indentOf(data, old), server)
	}
	server.Value = keepJSON(server.Value, *was)
	text := s.compact(server.Value)
	if s.long(data, was) {
		text = s.pretty(server.Value, lineIndent(data, was.StartOffset))
	}
	return spliced(data, splice{was.StartOffset, was.EndOffset, text}), nil
}

// keepJSON gives a new entry what a person has set in the old one.
func keepJSON(entry, old hujson.Value) hujson.Value {
	entry = entry.Clone()
	object, ok := entry.Value.(*hujson.Object)
	if !ok {
		return entry
	}
	for _, m := range members(old) {
		key := keyOf(m)
		at := slices.IndexFunc(object.Members, func(n hujson.ObjectMember) bool { return keyOf(n) == key })
		switch {
		case at >= 0 && slices.Contains(tuned, key):
			object.Members[at].Value = m.Value.Clone()
		case at < 0 && !slices.Contains(written, key):
			object.Members = append(object.Members, hujson.ObjectMember{Name: m.Name.Clone(), Value: m.Value.Clone()})
		}
	}
	return entry
}

func (jsonForm) Remove(data []byte, container string, drop []string) ([]byte, error) {
	root, err := parseJSON(data)
	if err != nil {
		return nil, err
	}
	servers, err := member(root, container)
	if err != nil || servers == nil {
		return data, err
	}
	if data, err = removeMember(data, servers, Name); err != nil {
		return nil, err
	}
	if container == "servers" { // VS Code: the question for our token goes, too
		if data, err = removeItems(data, []string{"inputs"}, isOurInput); err != nil {
			return nil, err
		}
	}
	for _, key := range drop {
		if data, err = DropEmpty(data, []string{key}); err != nil {
			return nil, err
		}
	}
	return data, nil
}

func isOurInput(item hujson.Value) bool {
	id, err := member(item, "id")
	if err != nil || id == nil {
		return false
	}
	l, _ := id.Value.(hujson.Literal)
	return l.String() == Name
}

// removeMember takes a member out, with the comma behind it, or else the one before it, and with the comment on its
// own line.
func removeMember(data []byte, in *hujson.Value, key string) ([]byte, error) {
	all := members(*in)
	at := slices.IndexFunc(all, func(m hujson.ObjectMember) bool { return keyOf(m) == key })
	if at < 0 {
		return data, nil
	}
	before := -1
	if at > 0 {
		before = all[at-1].Value.EndOffset + len(all[at-1].Value.AfterExtra)
	}
	return cutOut(data, all[at].Name.StartOffset, all[at].Value, at == len(all)-1, before), nil
}

// cutOut takes out what begins at from and ends with v, with the white space before it. before is the offset of the
// comma before it; -1: it is the first.
func cutOut(data []byte, from int, v hujson.Value, last bool, before int) []byte {
	to := v.EndOffset
	comma := !last || v.AfterExtra != nil
	if comma {
		to += len(v.AfterExtra) + 1
	}
	for from > 0 && strings.IndexByte(" \t\r\n", data[from-1]) >= 0 {
		from--
	}
	out := []splice{{from, to, ""}}
	if !comma && before >= 0 {
		out = append(out, splice{before, before + 1, ""})
		if before+1 >= from { // nothing stands between that comma and what goes
			out = []splice{{before, to, ""}}
		}
	}
	return spliced(data, out...)
}

// member is a member of an object; nil: there is none. That a name stands twice is errForm.
func member(v hujson.Value, key string) (*hujson.Value, error) {
	object, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil, ErrNotUnderstood
	}
	var found *hujson.Value
	for i, m := range object.Members {
		if keyOf(m) != key {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("%w: it has %q twice", ErrNotUnderstood, key)
		}
		found = &object.Members[i].Value
	}
	return found, nil
}

func members(v hujson.Value) []hujson.ObjectMember {
	if object, ok := v.Value.(*hujson.Object); ok {
		return object.Members
	}
	return nil
}

func keyOf(m hujson.ObjectMember) string {
	l, _ := m.Name.Value.(hujson.Literal)
	return l.String()
}

// A style is how a file of JSON is laid out.
type style struct {
	unit string // of indentation
	end  string // of a line
	flat bool   // all is in one line
}

func styleOf(data []byte) style {
	s := style{unit: "  ", end: "\n"}
	if bytes.Contains(data, []byte("\r\n")) {
		s.end = "\r\n"
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return s
	}
	root, err := parseJSON(data)
	if err != nil {
		return s
	}
	all := members(root)
	s.flat = len(all) > 0 && !bytes.Contains(data[root.StartOffset:root.EndOffset], []byte("\n"))
	if len(all) > 0 {
		if unit := lineIndent(data, all[0].Name.StartOffset); unit != "" && ownLine(data, all[0].Name.StartOffset) {
			s.unit = unit
		}
	}
	return s
}

// lineIndent is the white space that the line of an offset begins with.
func lineIndent(data []byte, at int) string {
	begin := bytes.LastIndexByte(data[:at], '\n') + 1
	end := begin
	for end < at && (data[end] == ' ' || data[end] == '\t') {
		end++
	}
	return string(data[begin:end])
}

// ownLine says whether nothing but white space stands before an offset in its line.
func ownLine(data []byte, at int) bool {
	begin := bytes.LastIndexByte(data[:at], '\n') + 1
	return len(bytes.TrimLeft(data[begin:at], " \t")) == 0
}

// indentOf is the indentation of the line in which a value's closing brace stands.
func (s style) indentOf(data []byte, v *hujson.Value) string {
	if bytes.Contains(data[v.StartOffset:v.EndOffset], []byte("\n")) {
		return lineIndent(data, v.EndOffset-1)
	}
	return lineIndent(data, v.StartOffset)
}

// long says whether a value goes over several lines, or may, since the file does.
func (s style) long(data []byte, v *hujson.Value) bool {
	return !s.flat && (bytes.Contains(data[v.StartOffset:v.EndOffset], []byte("\n")) || ownLine(data, v.StartOffset))
}

// add puts a member at the end of an object, whose closing brace is indented by indent: behind all comments.
func (s style) add(data []byte, in *hujson.Value, indent string, m hujson.ObjectMember) ([]byte, error) {
	object, ok := in.Value.(*hujson.Object)
	if !ok {
		return nil, ErrNotUnderstood
	}
	brace := in.EndOffset - 1
	at := brace
	for strings.IndexByte(" \t\r\n", data[at-1]) >= 0 {
		at--
	}
	tail := string(data[at:brace])
	inside := data[in.StartOffset:in.EndOffset]
	deeper := indent + s.unit
	var out []splice
	trailing := false
	if n := len(object.Members); n > 0 {
		last := object.Members[n-1]
		if ownLine(data, last.Name.StartOffset) {
			deeper = lineIndent(data, last.Name.StartOffset)
		}
		if trailing = last.Value.AfterExtra != nil; !trailing {
			out = append(out, splice{last.Value.EndOffset, last.Value.EndOffset, ","})
		}
	}
	text := ""
	flat := s.flat || len(object.Members) > 0 && !bytes.Contains(inside, []byte("\n"))
	if flat {
		if len(object.Members) > 0 {
			text = " "
			if len(object.Members[0].Value.BeforeExtra) == 0 { // nor has that of others
				text = ""
			}
		}
		text += s.key(m) + s.compact(m.Value)
	} else {
		text = s.end + deeper + s.key(m) + s.pretty(m.Value, deeper)
	}
	if trailing {
		text += ","
	}
	if !flat && !strings.Contains(tail, "\n") {
		out = append(out, splice{at, brace, text + s.end + indent})
	} else {
		out = append(out, splice{at, at, text})
	}
	return spliced(data, out...), nil
}

// addItems puts the items of a snippet's list at the end of a list, but those whose id is there.
func (s style) addItems(data []byte, in *hujson.Value, items *hujson.Array) ([]byte, error) {
	if _, ok := in.Value.(*hujson.Array); !ok {
		return nil, ErrNotUnderstood
	}
	old, err := plainJSON(*in)
	if err != nil {
		return nil, err
	}
	for _, item := range items.Elements {
		plain, err := plainJSON(item)
		if err != nil {
			return nil, err
		}
		id, _ := plain.(map[string]any)["id"].(string)
		if indexOf(old.([]any), "id", id) >= 0 {
			continue
		}
		return s.addItem(data, in, item) // no snippet has two
	}
	return data, nil
}

// addItem puts an item at the end of a list, behind all comments, as the last one there is laid out.
func (s style) addItem(data []byte, in *hujson.Value, item hujson.Value) ([]byte, error) {
	list, ok := in.Value.(*hujson.Array)
	if !ok {
		return nil, ErrNotUnderstood
	}
	bracket := in.EndOffset - 1
	at := bracket
	for strings.IndexByte(" \t\r\n", data[at-1]) >= 0 {
		at--
	}
	tail, indent := string(data[at:bracket]), lineIndent(data, bracket)
	n := len(list.Elements)
	deeper := indent + s.unit
	own := !s.flat
	if n > 0 {
		if own = ownLine(data, list.Elements[n-1].StartOffset); own {
			deeper = lineIndent(data, list.Elements[n-1].StartOffset)
		}
	}
	text := s.compact(item)
	switch {
	case own:
		text = s.end + deeper + s.pretty(item, deeper)
	case n > 1 && len(list.Elements[n-1].BeforeExtra) > 0, n == 1 && !s.flat:
		text = " " + text
	}
	var out []splice
	if n > 0 {
		if last := list.Elements[n-1]; last.AfterExtra == nil {
			out = append(out, splice{last.EndOffset, last.EndOffset, ","})
		} else {
			text += ","
		}
	}
	if own && !strings.Contains(tail, "\n") {
		text += s.end + indent
	}
	return spliced(data, append(out, splice{at, at, text})...), nil
}

func (s style) key(m hujson.ObjectMember) string {
	l, _ := m.Name.Value.(hujson.Literal)
	if s.flat {
		return string(l) + ":"
	}
	return string(l) + ": "
}

// compact is a value in one line, without comments.
func (s style) compact(v hujson.Value) string {
	v = v.Clone()
	v.Minimize()
	return string(v.Pack())
}

// pretty is a value over several lines, whose last is indented by indent.
func (s style) pretty(v hujson.Value, indent string) string {
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(s.compact(v)), indent, s.unit); err != nil {
		return s.compact(v)
	}
	return strings.ReplaceAll(b.String(), "\n", s.end)
}
