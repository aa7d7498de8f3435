package tool

import (
	"bytes"
	"encoding/json"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"sync"
)

// A filler decodes one input into its struct: it renames, coerces and checks on the way, and collects
// every problem instead of stopping at the first.
type filler struct{ problems }

// given is a value together with the name that the caller used for it.
type given struct {
	key string
	raw []byte // nil: there is none
}

// value checks raw, which is valid JSON, and puts it into v.
func (f *filler) value(s *shape, at *place, raw []byte, v reflect.Value) {
	switch s.kind {
	case text:
		f.text(s, at, raw, v)
	case integer:
		f.integer(s, at, raw, v)
	case boolean:
		f.boolean(s, at, raw, v)
	case free:
		if raw = f.nested(s, at, raw, '{'); raw != nil {
			var b bytes.Buffer
			_ = json.Compact(&b, raw) // it is valid
			v.SetBytes(b.Bytes())
		}
	case list:
		if raw = f.nested(s, at, raw, '['); raw != nil {
			f.list(s, at, raw, v)
		}
	case object:
		if raw = f.nested(s, at, raw, '{'); raw != nil {
			f.object(s, at, raw, v)
		}
	}
}

// text takes a string, and the JSON text of a number or boolean: a model that searches for 42 writes 42.
func (f *filler) text(s *shape, at *place, raw []byte, v reflect.Value) {
	var got string
	switch raw[0] {
	case '"':
		got = unquote(raw)
	case '{', '[', 'n':
		f.wrong(s, at, raw)
		return
	default:
		got = string(raw)
	}
	if means, ok := s.also[got]; ok {
		got = means
	}
	if wrong := s.checkText(got); wrong != "" {
		f.add("%q %s", at, wrong)
		return
	}
	if s.typ == givenText {
		v.Set(reflect.ValueOf(&got))
		return
	}
	v.SetString(got)
}

// number is a JSON number that can be an int64. Length and exponent are bounded, because 1e999999999 is a number, too.
var number = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9][0-9]?)?$`)
})

const maxNumber = 44 // bytes

// integer takes a number without a fraction (5, 5.0, 5e0), also in a string.
func (f *filler) integer(s *shape, at *place, raw []byte, v reflect.Value) {
	literal := string(raw)
	if raw[0] == '"' {
		literal = unquote(raw)
	}
	n, ok := whole(literal)
	if !ok || v.OverflowInt(n) {
		f.wrong(s, at, raw)
		return
	}
	if wrong := s.checkInteger(n); wrong != "" {
		f.add("%q %s", at, wrong)
		return
	}
	v.SetInt(n)
}

// whole reads a number exactly: a float64 would round 2^53+1, and take 1e-400 for 0.
func whole(literal string) (int64, bool) {
	if n, err := strconv.ParseInt(literal, 10, 64); err == nil && literal[0] != '+' {
		return n, true
	}
	if len(literal) > maxNumber || !number().MatchString(literal) {
		return 0, false
	}
	r, ok := new(big.Rat).SetString(literal)
	if !ok || !r.IsInt() || !r.Num().IsInt64() {
		return 0, false
	}
	return r.Num().Int64(), true
}

func (f *filler) boolean(s *shape, at *place, raw []byte, v reflect.Value) {
	switch string(raw) {
	case `true`, `"true"`:
		v.SetBool(true)
	case `false`, `"false"`:
		v.SetBool(false)
	default:
		f.wrong(s, at, raw)
	}
}

// nested returns raw if it opens as an array or object should, or what a string holds of that kind; nil
// after noting a problem.
func (f *filler) nested(s *shape, at *place, raw []byte, open byte) []byte {
	if raw[0] == open {
		return raw
	}
	if raw[0] == '"' {
		inner := trim([]byte(unquote(raw)))
		if len(inner) > 0 && inner[0] == open && json.Valid(inner) {
			return inner
		}
	}
	f.wrong(s, at, raw)
	return nil
}

func (f *filler) list(s *shape, at *place, raw []byte, v reflect.Value) {
	n := 0
	for range elements(raw) {
		n++
	}
	if wrong := s.checkItems(n); wrong != "" {
		f.add("%q %s", at, wrong)
		return
	}
	if n == 0 {
		return // nil, as if absent: the canonical form knows one empty list
	}
	v.Set(reflect.MakeSlice(v.Type(), n, n))
	i := 0
	for item := range elements(raw) {
		f.value(s.item, &place{up: at, index: i}, item, v.Index(i))
		i++
	}
}

// object fills the fields of a struct. Missing ones and wrong ones are noted in the order of the struct,
// unknown ones after them.
func (f *filler) object(s *shape, at *place, raw []byte, v reflect.Value) {
	var few [8]given                                             // so many need no allocation
	found := append(few[:0], make([]given, s.typ.NumField())...) // by field
	var strange problems
	for key, value := range members(raw) {
		if name := unquote(key); s.byName[name] != nil || s.accept[name] != "" {
			f.take(s, at, found, given{name, value})
		} else if len(strange) < maxProblems {
			strange.add("%s", s.unknown(&place{up: at, name: cut(name)}, name))
		} else {
			strange.add("")
		}
	}
	for _, p := range s.fields {
		got := found[p.field]
		switch {
		case got.raw != nil && !(p.optional && string(got.raw) == "null"):
			f.value(p, &place{up: at, name: p.name}, got.raw, v.Field(p.field))
		case !p.optional && !p.absent:
			f.add("%q is required", &place{up: at, name: p.name})
		default:
			p.setPreset(v.Field(p.field))
		}
	}
	for _, line := range strange {
		f.add("%s", line)
	}
}

// setPreset puts the default into v, if there is one.
func (s *shape) setPreset(v reflect.Value) {
	switch preset := s.preset.(type) {
	case string:
		v.SetString(preset)
	case int64:
		v.SetInt(preset)
	case bool:
		v.SetBool(preset)
	}
}

// take puts a value under its real name. Two names for one parameter must agree: to choose one would be
// to guess which file the caller means, and so would it be to choose one of two values under one name: the scan of a
// message finds those, but not in a string that holds an object.
func (f *filler) take(s *shape, at *place, found []given, g given) {
	p := s.byName[g.key]
	if p == nil {
		p = s.byName[s.accept[g.key]]
	}
	old := found[p.field]
	switch {
	case old.key == g.key && old.raw != nil:
		f.add("%q is given twice", &place{up: at, name: g.key})
	case old.raw == nil || string(old.raw) == "null":
		found[p.field] = g
	case string(g.raw) == "null" || same(old.raw, g.raw):
	default:
		keys := []string{old.key, g.key}
		slices.Sort(keys)
		f.add("%q and %q are the same parameter and differ", keys[0], keys[1])
	}
}

// directories are names by which other shells take the directory of a command.
var directories = []string{"cwd", "workdir", "working_dir", "working_directory", "workingDirectory", "directory", "dir"}

func (s *shape) unknown(at *place, name string) string {
	line := "unknown parameter " + strconv.Quote(at.String())
	if s.byName["command"] != nil && slices.Contains(directories, name) {
		return line + ` (write "cd DIR && ..." into "command")`
	}
	if near := s.nearest(name); near != "" {
		line += " (did you mean " + strconv.Quote(near) + "?)"
	}
	return line
}

// wrong notes that raw is not what the shape wants.
func (f *filler) wrong(s *shape, at *place, raw []byte) {
	f.add("%q must be %s, not %s", at, named[s.kind], describe(raw))
}

// same says whether two values are the same JSON. Numbers are compared as they are written.
func same(a, b []byte) bool {
	if a[0] == '"' && b[0] == '"' {
		return unquote(a) == unquote(b)
	}
	var x, y bytes.Buffer
	_, _ = json.Compact(&x, a), json.Compact(&y, b) // both are valid
	return bytes.Equal(x.Bytes(), y.Bytes())
}
