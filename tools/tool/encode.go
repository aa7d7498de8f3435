package tool

import (
	"bytes"
	"reflect"
	"strconv"
	"strings"
)

// encode writes v in the canonical form: parameters in the order of the struct; an optional one without a
// default only if it is not zero, because the tool cannot tell its zero from its absence. So two inputs
// that mean the same to the tool have the same bytes, and the same digest.
func (s *shape) encode(b *bytes.Buffer, v reflect.Value) {
	switch s.kind {
	case text:
		encodeText(b, v.String())
	case integer:
		b.WriteString(strconv.FormatInt(v.Int(), 10))
	case boolean:
		b.WriteString(strconv.FormatBool(v.Bool()))
	case free:
		if v.Len() == 0 {
			b.WriteString("{}")
			return
		}
		b.Write(v.Bytes())
	case list:
		b.WriteByte('[')
		for i := range v.Len() {
			if i > 0 {
				b.WriteByte(',')
			}
			s.item.encode(b, v.Index(i))
		}
		b.WriteByte(']')
	case object:
		s.encodeFields(b, v)
	}
}

func (s *shape) encodeFields(b *bytes.Buffer, v reflect.Value) {
	b.WriteByte('{')
	first := true
	for _, f := range s.fields {
		value := v.Field(f.field)
		if f.optional && f.preset == nil && f.isEmpty(value) {
			continue
		}
		if !first {
			b.WriteByte(',')
		}
		first = false
		encodeText(b, f.name)
		b.WriteByte(':')
		f.encode(b, value)
	}
	b.WriteByte('}')
}

// isEmpty says whether v is as good as absent.
func (s *shape) isEmpty(v reflect.Value) bool {
	switch s.kind {
	case list, free:
		return v.Len() == 0
	}
	return v.IsZero()
}

// encodeText writes a JSON string. It escapes what JSON wants escaped and nothing else: "<" as \u003c would help HTML
// only, and cost a model tokens. Our own loop, because encoding/json first builds the string in a buffer that grows by
// doubling: 20 MB of content then cost 150 MB more (BenchmarkBind).
func encodeText(b *bytes.Buffer, s string) {
	s = strings.ToValidUTF8(s, "\ufffd")
	b.WriteByte('"')
	start := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b.WriteString(s[start:i])
		start = i + 1
		switch c {
		case '"', '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case '\n':
			b.WriteString(`\n`)
		case '\r':
			b.WriteString(`\r`)
		case '\t':
			b.WriteString(`\t`)
		default:
			b.WriteString(`\u00`)
			b.WriteByte("01"[c>>4])
			b.WriteByte("0123456789abcdef"[c&15])
		}
	}
	b.WriteString(s[start:])
	b.WriteByte('"')
}

func encodeTexts(b *bytes.Buffer, list []string) {
	b.WriteByte('[')
	for i, s := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		encodeText(b, s)
	}
	b.WriteByte(']')
}
