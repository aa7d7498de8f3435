package notebook

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
)

// This is the slow and obvious reading of a notebook, by encoding/json. It knows no limits.

// An oracleCell is what encoding/json finds.
type oracleCell struct {
	raw    string
	from   int // offset in the file
	keys   []string
	values map[string]json.RawMessage
	id     string // native and usable
	name   string
	kind   string
}

func (c oracleCell) to() int { return c.from + len(c.raw) }

var plainWord = regexp.MustCompile(`^[^\s\p{C}\p{Z}"'<>&\x{fffd}]{1,64}$`)

func oracleWord(raw json.RawMessage) string {
	var s *string
	if json.Unmarshal(raw, &s) != nil || s == nil || !plainWord.MatchString(*s) {
		return ""
	}
	return *s
}

// entries reads an object or list as keys and raw values in order, each with the offset of its value in raw.
func entries(raw []byte) (keys []string, values []json.RawMessage, at []int) {
	d := json.NewDecoder(bytes.NewReader(raw))
	open, _ := d.Token()
	for d.More() {
		if open == json.Delim('{') {
			key, _ := d.Token()
			keys = append(keys, key.(string))
		}
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			panic(err) // it was valid as a whole
		}
		values = append(values, v)
		at = append(at, int(d.InputOffset())-len(v))
	}
	return keys, values, at
}

// lookup returns the last value of a key, and its offset.
func lookup(raw []byte, name string) (v json.RawMessage, at int) {
	if len(raw) == 0 || raw[0] != '{' {
		return nil, 0
	}
	keys, values, offsets := entries(raw)
	for i, key := range keys {
		if key == name {
			v, at = values[i], offsets[i]
		}
	}
	return v, at
}

func number(raw json.RawMessage) (int, bool) {
	var f *float64
	if len(raw) > 20 || json.Unmarshal(raw, &f) != nil || f == nil || *f != math.Trunc(*f) || math.Abs(*f) > 1<<60 {
		return 0, false
	}
	return int(*f), true
}

// oracle reads the cells; ok: the content is a notebook.
func oracle(content []byte) (cells []oracleCell, lists []int, major, minor int, ok bool) {
	begin := 0
	if bytes.HasPrefix(content, []byte("\xef\xbb\xbf")) {
		begin = 3
	}
	if !json.Valid(content[begin:]) {
		return nil, nil, 0, 0, false
	}
	for strings.ContainsRune(" \t\r\n", rune(content[begin])) {
		begin++
	}
	root := content[begin:]
	if v, _ := lookup(root, "nbformat"); v != nil {
		major, ok = number(v)
	}
	if !ok || major != 3 && major != 4 {
		return nil, nil, 0, 0, false
	}
	if v, _ := lookup(root, "nbformat_minor"); v != nil {
		if minor, ok = number(v); !ok || minor < 0 {
			return nil, nil, 0, 0, false
		}
	}
	holders, offsets := []json.RawMessage{root}, []int{begin}
	if major == 3 {
		v, at := lookup(root, "worksheets")
		if v == nil || v[0] != '[' {
			return nil, nil, 0, 0, false
		}
		_, holders, offsets = entries(v)
		for i := range offsets {
			offsets[i] += begin + at
		}
	}
	for i, holder := range holders {
		v, at := lookup(holder, "cells")
		if v == nil || v[0] != '[' {
			return nil, nil, 0, 0, false
		}
		lists = append(lists, len(cells))
		_, raws, ats := entries(v)
		for j, raw := range raws {
			if raw[0] != '{' {
				return nil, nil, 0, 0, false
			}
			c := oracleCell{raw: string(raw), from: offsets[i] + at + ats[j], values: map[string]json.RawMessage{}}
			var values []json.RawMessage
			c.keys, values, _ = entries(raw)
			for k, key := range c.keys {
				c.values[key] = values[k]
			}
			c.id, c.kind = oracleWord(c.values["id"]), oracleWord(c.values["cell_type"])
			cells = append(cells, c)
		}
	}
	natives := map[string]bool{}
	for _, c := range cells {
		natives[c.id] = true
	}
	seen := map[string]bool{}
	for i := range cells {
		c := &cells[i]
		if c.id != "" && !seen[c.id] {
			c.name = c.id
			seen[c.id] = true
			continue
		}
		for zeros := ""; c.name == "" || natives[c.name]; zeros += "0" {
			c.name = fmt.Sprintf("cell-%s%d", zeros, i)
		}
	}
	return cells, lists, major, minor, len(holders) > 0
}

// said joins a string or the strings of a list.
func said(raw json.RawMessage, sep string) string {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return one
	}
	var list []any
	_ = json.Unmarshal(raw, &list) // not a list: there is nothing
	var parts []string
	for _, v := range list {
		if s, ok := v.(string); ok {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, sep)
}

// oracleSource is what the source of a cell says, in the key that its format has for it.
func oracleSource(c oracleCell, major int) string {
	if major == 3 && c.kind == "code" {
		return said(c.values["input"], "")
	}
	return said(c.values["source"], "")
}

// oracleOutputs are the streams and images of nbformat 4, as one string: the cases whose reading needs no judgement.
func oracleOutputs(c oracleCell) (texts, images []string) {
	var outputs []json.RawMessage
	if json.Unmarshal(c.values["outputs"], &outputs) != nil {
		return nil, nil
	}
	for _, out := range outputs {
		kind, _ := lookup(out, "output_type")
		switch oracleWord(kind) {
		case "stream":
			text, _ := lookup(out, "text")
			texts = append(texts, said(text, ""))
		case "display_data", "execute_result":
			data, _ := lookup(out, "data")
			png, _ := lookup(data, "image/png")
			if image, err := base64.StdEncoding.DecodeString(said(png, "")); err == nil && len(image) > 0 {
				images = append(images, string(image))
			}
		}
	}
	return slices.DeleteFunc(texts, func(s string) bool { return s == "" }), images
}

// oracleFind returns the number of the cell that an edit names; Insert as the first is -1.
func oracleFind(cells []oracleCell, e CellEdit) (int, bool) {
	if e.Mode == Insert && e.Cell == "" {
		return -1, true
	}
	for i, c := range cells {
		if c.id != "" && c.id == e.Cell {
			return i, true
		}
	}
	if digits := regexp.MustCompile(`^cell-0*([0-9]+)$`).FindStringSubmatch(e.Cell); digits != nil {
		for i := range cells {
			if fmt.Sprint(i) == digits[1] {
				return i, true
			}
		}
		return len(cells), e.Mode == Replace && fmt.Sprint(len(cells)) == digits[1]
	}
	return 0, false
}
