package tool

import (
	"reflect"
	"strconv"
	"strings"
)

// appendValue appends v in the canonical form: parameters in the order of the struct; an optional one without a
// default only if it is not zero, because the tool cannot tell its zero from its absence, but for *string. So two
// inputs that mean the same to the tool have the same bytes, and the same digest.
func (s *shape) appendValue(b []byte, v reflect.Value) []byte {
	switch s.kind {
	case text:
		return AppendText(b, reflect.Indirect(v).String())
	case integer:
		return strconv.AppendInt(b, v.Int(), 10)
	case boolean:
		return strconv.AppendBool(b, v.Bool())
	case free:
		if v.Len() == 0 {
			return append(b, "{}"...)
		}
		return append(b, v.Bytes()...)
	case list:
		b = append(b, '[')
		for i := range v.Len() {
			if i > 0 {
				b = append(b, ',')
			}
			b = s.item.appendValue(b, v.Index(i))
		}
		return append(b, ']')
	}
	return s.appendFields(b, v)
}

func (s *shape) appendFields(b []byte, v reflect.Value) []byte {
	b = append(b, '{')
	first := true
	for _, f := range s.fields {
		value := v.Field(f.field)
		if f.optional && f.preset == nil && f.isEmpty(value) {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = AppendText(b, f.name)
		b = append(b, ':')
		b = f.appendValue(b, value)
	}
	return append(b, '}')
}

// isEmpty says whether v is as good as absent.
func (s *shape) isEmpty(v reflect.Value) bool {
	switch s.kind {
	case list, free:
		return v.Len() == 0
	}
	return v.IsZero()
}

// AppendText appends s as a JSON string; bytes that are no UTF-8 become U+FFFD. It escapes what JSON wants escaped and
// nothing else: "<" as \u003c would help HTML only, and cost a model tokens. Our own loop, because encoding/json first
// builds the string in a buffer that grows by doubling: 20 MB of content then cost 150 MB more (BenchmarkBind).
func AppendText(b []byte, s string) []byte {
	s = strings.ToValidUTF8(s, "\ufffd")
	b = append(b, '"')
	start := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, `\n`...)
		case '\r':
			b = append(b, `\r`...)
		case '\t':
			b = append(b, `\t`...)
		default:
			b = append(b, `\u00`...)
			b = append(b, "01"[c>>4], "0123456789abcdef"[c&15])
		}
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}

func appendTexts(b []byte, list []string) []byte {
	b = append(b, '[')
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendText(b, s)
	}
	return append(b, ']')
}
