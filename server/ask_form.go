package server

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/tools/results"
	"codehand/tools/tool"
)

const (
	// maxAskMessage bounds what a person reads, in characters.
	maxAskMessage = 4_000
	// maxAskText bounds what a person may write into one field, in characters.
	maxAskText = 1_000
)

// elicited is what a client sends back.
type elicited = mcp.ElicitationResult

// askForm is a question as elicitation/create carries it, in form mode. A field with choices must be filled in, unless
// several may be taken; a text need not be.
func askForm(q tool.Question) mcp.ElicitationParams {
	message, _ := results.Show(q.Title)
	if text, _ := results.Show(q.Text); text != "" {
		message += "\n\n" + text
	}
	return mcp.ElicitationParams{Message: results.CutMiddle(message, maxAskMessage), RequestedSchema: askSchema(q.Fields)}
}

// askSchema is the schema of a flat form. It is written out, because a map would lose the order of the fields, in which
// clients show them.
func askSchema(fields []tool.Field) json.RawMessage {
	b := []byte(`{"type":"object","properties":{`)
	var required []string
	for i, f := range fields {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(tool.AppendText(b, f.Name), ':')
		switch {
		case len(f.Choices) == 0:
			b = append(b, `{"type":"string","title":`...)
			b = tool.AppendText(b, f.Label)
			b = fmt.Appendf(b, `,"maxLength":%d}`, maxAskText)
		case f.Many:
			b = append(b, `{"type":"array","title":`...)
			b = tool.AppendText(b, f.Label)
			b = appendTexts(append(b, `,"items":{"type":"string","enum":`...), f.Choices)
			b = append(b, `}}`...)
		default:
			b = append(b, `{"type":"string","title":`...)
			b = tool.AppendText(b, f.Label)
			b = append(appendTexts(append(b, `,"enum":`...), f.Choices), '}')
			required = append(required, f.Name)
		}
	}
	b = append(b, '}')
	if len(required) > 0 {
		b = appendTexts(append(b, `,"required":`...), required)
	}
	return append(b, '}')
}

func appendTexts(b []byte, texts []string) []byte {
	b = append(b, '[')
	for i, t := range texts {
		if i > 0 {
			b = append(b, ',')
		}
		b = tool.AppendText(b, t)
	}
	return append(b, ']')
}

// fitAnswer holds an answer against the fields of its question. Whatever is not an acceptance, and an acceptance that
// does not fit, is a no.
func fitAnswer(fields []keptField, r *elicited) tool.Answer {
	switch {
	case r == nil:
		return tool.Answer{Outcome: tool.Declined}
	case r.Action == mcp.ElicitationResponseActionCancel:
		return tool.Answer{Outcome: tool.Cancelled}
	case r.Action != mcp.ElicitationResponseActionAccept:
		return tool.Answer{Outcome: tool.Declined}
	}
	content, _ := r.Content.(map[string]any)
	a := tool.Answer{Outcome: tool.Accepted, Values: map[string][]string{}}
	for _, f := range fields {
		values, ok := f.values(content[f.Name])
		if !ok || values == nil && len(f.Choices) > 0 && !f.Many {
			return tool.Answer{Outcome: tool.Declined}
		}
		if values != nil {
			a.Values[f.Name] = values
		}
	}
	return a
}

// values reads the value of one field; nil: it was left out. ok is false if it does not fit.
func (f keptField) values(v any) (values []string, ok bool) {
	switch v := v.(type) {
	case nil:
		return nil, true
	case string:
		if len(f.Choices) > 0 {
			return []string{v}, slices.Contains(f.Choices, v) && !f.Many
		}
		if r := []rune(v); len(r) > maxAskText {
			v = string(r[:maxAskText])
		}
		return []string{results.Clean(v)}, true
	case []any:
		values = []string{}
		for _, item := range v {
			text, _ := item.(string)
			if !f.Many || !slices.Contains(f.Choices, text) || slices.Contains(values, text) {
				return nil, false
			}
			values = append(values, text)
		}
		return values, true
	}
	return nil, false
}
