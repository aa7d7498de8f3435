package notebook

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// A complaint says what is wrong with an answer, in view of what the oracle reads; "" if nothing is.

// constants are what Python writes and JSON does not have.
var constants = strings.NewReplacer("NaN", "0", "Infinity", "0")

// parseComplaint says what is wrong with what Parse makes of content.
func parseComplaint(content []byte) string {
	nb, err := Parse(content)
	cells, _, major, minor, ok := oracle(content)
	if err != nil {
		if invalid, is := errors.AsType[*InvalidError](err); !is || invalid.Line < 1 || invalid.Column < 1 || invalid.Reason == "" {
			return fmt.Sprintf("error %#v has no place", err)
		} else if ok && !strings.Contains(invalid.Reason, "more than") {
			return "refused: " + err.Error()
		} else if lines := bytes.Count(content, []byte("\n")) + 1; invalid.Line > lines {
			return fmt.Sprintf("the error is in line %d of %d", invalid.Line, lines)
		}
		return ""
	}
	if !ok {
		text := constants.Replace(string(bytes.TrimPrefix(content, []byte("\xef\xbb\xbf"))))
		if !bytes.Contains(content, []byte("NaN")) && !bytes.Contains(content, []byte("Infinity")) || !json.Valid([]byte(text)) {
			return "accepted"
		}
		return ""
	}
	if nb.Major != major || nb.Minor != minor || len(nb.Cells) != len(cells) {
		return fmt.Sprintf("got %d.%d, %d cells; want %d.%d, %d", nb.Major, nb.Minor, len(nb.Cells), major, minor, len(cells))
	}
	for i, c := range nb.Cells {
		if text := cellComplaint(c, cells[i], major); text != "" {
			return fmt.Sprintf("cell %d: %s", i, text)
		}
	}
	return ""
}

func cellComplaint(c Cell, want oracleCell, major int) string {
	if c.ID != want.name || c.Type != want.kind || c.Source() != oracleSource(want, major) {
		return fmt.Sprintf("got %q %q %q; want %q %q %q", c.ID, c.Type, c.Source(), want.name, want.kind, oracleSource(want, major))
	}
	outputs, cut := c.Outputs()
	runes := 0
	for _, out := range outputs {
		runes += utf8.RuneCountInString(out.Text)
		if strings.Contains(out.Text, "\x1b") || !utf8.ValidString(out.Text) {
			return fmt.Sprintf("output %q", out.Text)
		}
	}
	if runes > maxText || len(outputs) > maxOutputs+1 {
		return fmt.Sprintf("%d characters in %d outputs", runes, len(outputs))
	}
	if cut || major == 3 || strings.Contains(want.raw, "u001") || strings.Contains(want.raw, "U001") {
		return ""
	}
	texts, images := oracleOutputs(want)
	for _, out := range outputs { // in order, with others between
		if len(texts) > 0 && out.Text == texts[0] {
			texts = texts[1:]
		}
		if image, _ := out.Image(); len(images) > 0 && out.MIME == "image/png" && string(image) == images[0] {
			images = images[1:]
		}
	}
	if len(texts)+len(images) > 0 {
		return fmt.Sprintf("missing outputs: %q, images %q", texts, images)
	}
	return ""
}

// lines is a source as it has to be stored.
func lines(source string) []string {
	parts := strings.SplitAfter(source, "\n")
	if parts[len(parts)-1] == "" {
		parts = parts[:len(parts)-1]
	}
	return parts
}

// applyComplaint says what is wrong with what Apply makes of content.
func applyComplaint(content []byte, e CellEdit) string {
	before := bytes.Clone(content)
	result, r, err := Apply(content, e)
	if !bytes.Equal(before, content) {
		return "the content was changed in place"
	}
	cells, lists, major, minor, ok := oracle(content)
	if invalid, is := errors.AsType[*InvalidError](err); is {
		if ok && !strings.Contains(invalid.Reason, "more than") {
			return "refused: " + err.Error()
		}
		return ""
	}
	if !ok {
		return "" // NaN, which parseComplaint looks at
	}
	at, found := oracleFind(cells, e)
	typed := slices.Contains([]string{"code", "markdown", "raw"}, e.Type) || e.Type == "" && e.Mode != Insert
	if _, missing := errors.AsType[*NotFoundError](err); err != nil {
		if missing && found || errors.Is(err, ErrType) && typed || !missing && !errors.Is(err, ErrType) {
			return "unexpected error: " + err.Error()
		}
		return ""
	}
	if e.Mode == Insert {
		at++
	}
	if e.Mode == Replace && at == len(cells) {
		e.Mode, e.Type = Insert, cmp.Or(e.Type, "code")
	}
	if !found || !typed || at != r.Index || e.Mode != r.Mode {
		return fmt.Sprintf("mode %d of cell %d; want %d of %d", r.Mode, r.Index, e.Mode, at)
	}
	after, _, major2, minor2, ok := oracle(result)
	if !ok || major != major2 || minor != minor2 {
		return "the result is no notebook of that format"
	}
	switch e.Mode {
	case Replace:
		return replaceComplaint(content, result, cells, after, at, e, major)
	case Insert:
		return insertComplaint(content, result, cells, after, lists, at, e, r, major, minor)
	}
	return deleteComplaint(content, result, cells, after, at)
}

func raws(cells []oracleCell) (all []string) {
	for _, c := range cells {
		all = append(all, c.raw)
	}
	return all
}

func replaceComplaint(content, result []byte, cells, after []oracleCell, at int, e CellEdit, major int) string {
	old, now := cells[at], after[min(at, len(after)-1)]
	if want := string(content[:old.from]) + now.raw + string(content[old.to():]); string(result) != want {
		return fmt.Sprintf("bytes outside of cell %d are changed", at)
	}
	if e.Type == "" {
		e.Type = old.kind
	}
	if text := storedComplaint(now, e, major); text != "" {
		return text
	}
	touched := []string{"source", "cell_type"}
	if e.Type == "code" || e.Type != old.kind {
		touched = append(touched, "outputs", "execution_count")
	}
	if major == 3 {
		touched = append(touched, "input", "language", "collapsed", "prompt_number", "level")
	}
	if e.Type != old.kind {
		touched = append(touched, "attachments", "metadata")
	}
	other := func(keys []string) []string {
		return slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return slices.Contains(touched, key) })
	}
	if !slices.Equal(other(old.keys), other(now.keys)) {
		return fmt.Sprintf("keys %q became %q", old.keys, now.keys)
	}
	for _, key := range other(old.keys) {
		if !bytes.Equal(old.values[key], now.values[key]) {
			return fmt.Sprintf("%q was %s and is %s", key, old.values[key], now.values[key])
		}
	}
	if e.Type == old.kind && len(old.keys) > 0 && slices.Contains(old.keys, "source") && major == 4 && !slices.Equal(old.keys, now.keys) {
		return fmt.Sprintf("keys %q became %q", old.keys, now.keys)
	}
	again, _, err := Apply(result, CellEdit{Cell: now.name, Type: e.Type, Source: e.Source})
	if known := slices.Contains([]string{"code", "markdown", "raw"}, e.Type); known && (err != nil || !bytes.Equal(again, result)) {
		return fmt.Sprintf("the same edit again changes something: %v, %q", err, again)
	}
	return ""
}

// storedComplaint looks at the keys that an edit sets.
func storedComplaint(c oracleCell, e CellEdit, major int) string {
	if c.kind != e.Type {
		return fmt.Sprintf("the type is %q", c.kind)
	}
	key := "source"
	if major == 3 && e.Type == "code" {
		key = "input"
	}
	var source []string
	if err := json.Unmarshal(c.values[key], &source); err != nil {
		return fmt.Sprintf("the source is not a list: %s", c.values[key])
	}
	if utf8.ValidString(e.Source) && !slices.Equal(source, lines(e.Source)) {
		return fmt.Sprintf("source %q", source)
	}
	if e.Type != "code" {
		return ""
	}
	count := map[int]string{3: "prompt_number", 4: "execution_count"}[major]
	for _, key := range []string{"outputs", count} {
		// Null and what is empty may be in any spelling.
		if v := string(c.values[key]); strings.Trim(v, " \t\r\n[]{}") != "" && v != "null" {
			return fmt.Sprintf("%s is %s", key, v)
		}
	}
	return ""
}

func insertComplaint(content, result []byte, cells, after []oracleCell, lists []int, at int, e CellEdit, r Report, major, minor int) string {
	if len(after) != len(cells)+1 || !slices.Equal(slices.Delete(raws(after), at, at+1), raws(cells)) {
		return "other cells are changed"
	}
	now := after[at]
	if text := storedComplaint(now, e, major); text != "" {
		return text
	}
	if now.name != r.ID {
		return fmt.Sprintf("the cell is %s and the report says %s", now.name, r.ID)
	}
	if hasID := major == 4 && minor >= 5; hasID != (now.id != "") || hasID && len(now.id) != 8 || slices.ContainsFunc(cells, func(c oracleCell) bool { return hasID && c.id == now.id }) {
		return fmt.Sprintf("the id is %q", now.id)
	}
	want := map[bool][]string{false: {"cell_type", "metadata", "source"}, true: {"cell_type", "execution_count", "metadata", "outputs", "source"}}[e.Type == "code"]
	if major == 3 && e.Type == "code" {
		want = []string{"cell_type", "collapsed", "input", "language", "metadata", "outputs"}
	}
	if got := slices.DeleteFunc(slices.Sorted(maps.Keys(now.values)), func(key string) bool { return key == "id" }); !slices.Equal(got, want) {
		return fmt.Sprintf("keys %q", now.keys)
	}
	// Taking it out again is the opposite, but for white space in a list that was empty.
	back, _, err := Apply(result, CellEdit{Mode: Delete, Cell: now.name})
	if err != nil || string(strip(back)) != string(strip(content)) {
		return fmt.Sprintf("insert and delete: %v, %q", err, back)
	}
	if inList := at < len(cells) && !slices.Contains(lists, at) || at > 0; inList && !bytes.Equal(back, content) {
		return fmt.Sprintf("insert and delete: %q", back)
	}
	return ""
}

func deleteComplaint(content, result []byte, cells, after []oracleCell, at int) string {
	if !slices.Equal(raws(after), slices.Delete(raws(cells), at, at+1)) {
		return "other cells are changed"
	}
	gone := cells[at]
	without := string(strip(content[:gone.from])) + string(strip(content[gone.to():]))
	if got := string(strip(result)); len(got) < len(without)-1 || len(got) > len(without) {
		return fmt.Sprintf("more than a cell and a comma is gone: %q", result)
	}
	return ""
}

// strip takes white space out, also within strings.
func strip(b []byte) []byte {
	return bytes.Map(func(r rune) rune {
		if strings.ContainsRune(" \t\r\n", r) {
			return -1
		}
		return r
	}, b)
}
