package tool

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// schema returns the shape as JSON Schema. The order of everything is fixed, so the same struct gives the
// same bytes for ever: clients cache prompts by them.
func (s *shape) schema() json.RawMessage {
	var b bytes.Buffer
	s.appendSchema(&b)
	return b.Bytes()
}

func (s *shape) appendSchema(b *bytes.Buffer) {
	b.WriteString(`{"type":"` + names[s.kind] + `"`)
	if s.doc != "" {
		b.WriteString(`,"description":`)
		encodeText(b, s.doc)
	}
	if s.enum != nil {
		b.WriteString(`,"enum":`)
		encodeTexts(b, s.enum)
	}
	switch v := s.preset.(type) {
	case string:
		b.WriteString(`,"default":`)
		encodeText(b, v)
	case int64:
		b.WriteString(`,"default":` + strconv.FormatInt(v, 10))
	case bool:
		b.WriteString(`,"default":` + strconv.FormatBool(v))
	}
	for _, limit := range []struct {
		name  string
		value *int64
	}{
		{"minimum", s.min}, {"maximum", s.max}, {"minLength", s.minLen}, {"maxLength", s.maxLen},
		{"minItems", s.minItems}, {"maxItems", s.maxItems},
	} {
		if limit.value != nil {
			b.WriteString(`,"` + limit.name + `":` + strconv.FormatInt(*limit.value, 10))
		}
	}
	switch s.kind {
	case list:
		b.WriteString(`,"items":`)
		s.item.appendSchema(b)
	case object:
		s.appendProperties(b)
	}
	b.WriteByte('}')
}

func (s *shape) appendProperties(b *bytes.Buffer) {
	var required []string
	b.WriteString(`,"properties":{`)
	first := true
	for _, f := range s.fields {
		if f.hidden {
			continue
		}
		if !first {
			b.WriteByte(',')
		}
		first = false
		encodeText(b, f.name)
		b.WriteByte(':')
		f.appendSchema(b)
		if !f.optional {
			required = append(required, f.name)
		}
	}
	b.WriteByte('}')
	if required != nil {
		b.WriteString(`,"required":`)
		encodeTexts(b, required)
	}
	b.WriteString(`,"additionalProperties":false`)
}
