package skills

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// A kind says what a value is. The zero value is null.
type kind int

const (
	null    kind = iota
	literal      // a number, true or false
	words
	list
	object
)

// A value is what JSON can say, with the keys of objects in their order.
type value struct {
	kind  kind
	text  string // of a literal as JSON writes it, of words
	keys  []string
	items []value // of a list; of an object by its keys
	index map[string]int
}

// set gives an object a key. Of two equal ones the last counts, in the place of the first.
func (v *value) set(key string, item value) {
	if i, ok := v.index[key]; ok {
		v.items[i] = item
		return
	}
	if v.index == nil {
		v.index = map[string]int{}
	}
	v.index[key] = len(v.keys)
	v.keys, v.items = append(v.keys, key), append(v.items, item)
}

// get returns what an object has under a key, null if nothing.
func (v value) get(key string) value {
	if i, ok := v.index[key]; ok {
		return v.items[i]
	}
	return value{}
}

// json writes v.
func (v value) json(b *bytes.Buffer) {
	switch v.kind {
	case null:
		b.WriteString("null")
	case literal:
		b.WriteString(v.text)
	case words:
		writeString(b, v.text)
	case list:
		b.WriteByte('[')
		for i, item := range v.items {
			if i > 0 {
				b.WriteByte(',')
			}
			item.json(b)
		}
		b.WriteByte(']')
	case object:
		b.WriteByte('{')
		for i, key := range v.keys {
			if i > 0 {
				b.WriteByte(',')
			}
			writeString(b, key)
			b.WriteByte(':')
			v.items[i].json(b)
		}
		b.WriteByte('}')
	}
}

// writeString writes a JSON string without the escapes that HTML would need.
func writeString(b *bytes.Buffer, s string) {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string can be encoded, a Buffer written
	b.Truncate(b.Len() - 1)
}

// Numbers as the core schema of YAML 1.2 has them (section 10.3.2). The parser also knows those of 1.1, where 0755 is
// 493 and 1_000 a number; a person who compares Front with the file reads 1.2.
var (
	decimal = lazy(`^[-+]?[0-9]{1,300}$`)
	based   = lazy(`^0(o[0-7]{1,20}|x[0-9a-fA-F]{1,15})$`)
	float   = lazy(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
)

// lazy returns what compiles a pattern when it is first wanted: few processes read a skill, and each would wait for it
// at its start.
func lazy(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// scalar reads plain text as YAML does: a number, a truth, nothing, or words.
func scalar(s string) value {
	switch s {
	case "", "~", "null", "Null", "NULL":
		return value{}
	case "true", "True", "TRUE":
		return value{kind: literal, text: "true"}
	case "false", "False", "FALSE":
		return value{kind: literal, text: "false"}
	}
	if n, ok := number(s); ok {
		return value{kind: literal, text: n}
	}
	return value{kind: words, text: s}
}

// number returns s as JSON writes it.
func number(s string) (string, bool) {
	switch {
	case decimal().MatchString(s):
		digits := strings.TrimLeft(strings.TrimLeft(s, "+-"), "0")
		if digits == "" {
			return "0", true
		}
		if s[0] == '-' {
			digits = "-" + digits
		}
		return digits, true
	case based().MatchString(s):
		n, err := strconv.ParseInt(s, 0, 64)
		return strconv.FormatInt(n, 10), err == nil
	case float().MatchString(s):
		n, err := strconv.ParseFloat(s, 64)
		if err != nil { // too large: no JSON number
			return "", false
		}
		out, err := json.Marshal(n)
		return string(out), err == nil
	}
	return "", false
}
