package tool

import (
	"encoding/json"
	"strconv"
)

// schema returns the shape as JSON Schema. The order of everything is fixed, so the same struct gives the
// same bytes for ever: clients cache prompts by them.
func (s *shape) schema() json.RawMessage {
	return s.appendSchema(nil)
}

func (s *shape) appendSchema(b []byte) []byte {
	b = append(b, `{"type":"`+names[s.kind]+`"`...)
	if s.doc != "" {
		b = append(b, `,"description":`...)
		b = AppendText(b, s.doc)
	}
	if s.enum != nil {
		b = append(b, `,"enum":`...)
		b = appendTexts(b, s.enum)
	}
	published := s.preset
	if s.absent {
		published = nil // it stays required
	}
	switch v := published.(type) {
	case string:
		b = append(b, `,"default":`...)
		b = AppendText(b, v)
	case int64:
		b = strconv.AppendInt(append(b, `,"default":`...), v, 10)
	case bool:
		b = strconv.AppendBool(append(b, `,"default":`...), v)
	}
	for _, limit := range []struct {
		name  string
		value *int64
	}{
		{"minimum", s.min}, {"maximum", s.max}, {"minLength", s.minLen}, {"maxLength", s.maxLen},
		{"maxLength", s.maxRunes},
		{"minItems", s.minItems}, {"maxItems", s.maxItems},
	} {
		if limit.value != nil && (limit.name != "maxLength" || *limit.value < manyCharacters) {
			b = strconv.AppendInt(append(b, `,"`+limit.name+`":`...), *limit.value, 10)
		}
	}
	switch s.kind {
	case list:
		b = append(b, `,"items":`...)
		b = s.item.appendSchema(b)
	case object:
		b = s.appendProperties(b)
	}
	return append(b, '}')
}

// manyCharacters is a length that no model counts: a longer limit is not published, and refuses all the same.
const manyCharacters = 10_000

func (s *shape) appendProperties(b []byte) []byte {
	var required []string
	b = append(b, `,"properties":{`...)
	first := true
	for _, f := range s.fields {
		if f.hidden {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = AppendText(b, f.name)
		b = append(b, ':')
		b = f.appendSchema(b)
		if !f.optional {
			required = append(required, f.name)
		}
	}
	b = append(b, '}')
	if required != nil {
		b = append(b, `,"required":`...)
		b = appendTexts(b, required)
	}
	return append(b, `,"additionalProperties":false`...)
}
