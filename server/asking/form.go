package asking

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/mark3labs/mcp-go/mcp"

	"codehand/tools/results"
	"codehand/tools/session"
	"codehand/tools/tool"
)

const (
	// maxMessage bounds what a person reads, in characters.
	maxMessage = 4_000
	// maxText bounds what a person may write into one field, in characters.
	maxText = 1_000
)

// Elicited is what a client sends back.
type Elicited = mcp.ElicitationResult

// form is a question as elicitation/create carries it, in form mode, to a client of a revision of the protocol. A
// field with choices must be filled in, unless it says otherwise or several may be taken; a text need not be. The text
// follows the title without a blank line: some clients show two lines.
func form(q tool.Question, revision string) mcp.ElicitationParams {
	message := shown(q.Title)
	if text := shown(q.Text); text != "" {
		message += "\n" + text
	}
	return mcp.ElicitationParams{Message: results.CutMiddle(message, maxMessage),
		RequestedSchema: schema(q.Fields, revision)}
}

// fieldsFor are the fields that a client can show. One that cannot send a form with an empty text gets the choices.
func fieldsFor(c session.Client, fields []tool.Field) []tool.Field {
	isText := func(f tool.Field) bool { return len(f.Choices) == 0 }
	if !c.Forms.NoTexts || !slices.ContainsFunc(fields, func(f tool.Field) bool { return !isText(f) }) {
		return fields
	}
	return slices.DeleteFunc(slices.Clone(fields), isText)
}

// shown is a text without anything that a person could not see.
func shown(text string) string {
	text, _ = results.Show(text)
	return text
}

// namedChoices is the first revision with lists of choices, and with choices that are named as JSON Schema does it.
// Before it there were `enumNames` for one choice and nothing for several (SEP-1330). Later ones read both forms of one
// choice, so a revision that is not known gets the older.
const namedChoices = "2025-11-25"

// schema is the schema of a flat form. It is written out, because a map would lose the order of the fields, in which
// clients show them.
func schema(fields []tool.Field, revision string) json.RawMessage {
	b := []byte(`{"type":"object","properties":{`)
	var required []string
	for i, f := range fields {
		if i > 0 {
			b = append(b, ',')
		}
		if f.Many && revision < namedChoices {
			b = appendFlags(b, f)
			continue
		}
		b = append(tool.AppendText(b, f.Name), ':')
		b = appendField(b, f, revision)
		if len(f.Choices) > 0 && !f.Many && !f.Optional {
			required = append(required, f.Name)
		}
	}
	b = append(b, '}')
	if len(required) > 0 {
		b = appendTexts(append(b, `,"required":`...), required)
	}
	return append(b, '}')
}

// appendField writes the schema of one field.
func appendField(b []byte, f tool.Field, revision string) []byte {
	kind := "string"
	if f.Many {
		kind = "array"
	}
	b = append(appendHead(b, kind, f.Label, f.About), ',')
	switch {
	case len(f.Choices) == 0:
		b = fmt.Appendf(b, `"maxLength":%d`, maxText)
	case f.Many && f.Titles == nil:
		b = append(appendTexts(append(b, `"items":{"type":"string","enum":`...), f.Choices), '}')
	case f.Many:
		b = append(appendNamed(append(b, `"items":{"anyOf":`...), f), '}')
	case f.Titles == nil:
		b = appendTexts(append(b, `"enum":`...), f.Choices)
	case revision < namedChoices:
		b = appendTexts(append(b, `"enum":`...), f.Choices)
		b = appendTexts(append(b, `,"enumNames":`...), titles(f))
	default:
		b = appendNamed(append(b, `"oneOf":`...), f)
	}
	return append(b, '}')
}

// appendFlags writes a field of several choices as one flag for each.
func appendFlags(b []byte, f tool.Field) []byte {
	for i, name := range titles(f) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(tool.AppendText(b, flagName(f.Name, i)), ':')
		about := f.About
		if i > 0 {
			about = "" // once is enough
		}
		b = append(appendHead(b, "boolean", f.Label+": "+name, about), '}')
	}
	return b
}

// flagName is the name of the flag that stands for a choice, counted from 0.
func flagName(field string, i int) string { return field + "_" + strconv.Itoa(i+1) }

// appendHead begins the schema of a value.
func appendHead(b []byte, kind, title, about string) []byte {
	b = tool.AppendText(append(b, `{"type":"`+kind+`","title":`...), shown(title))
	if about != "" {
		b = tool.AppendText(append(b, `,"description":`...), shown(about))
	}
	return b
}

// titles are what is shown for the choices of a field.
func titles(f tool.Field) []string {
	names := make([]string, len(f.Choices))
	for i, c := range f.Choices {
		if i < len(f.Titles) {
			c = f.Titles[i]
		}
		names[i] = shown(c)
	}
	return names
}

func appendNamed(b []byte, f tool.Field) []byte {
	b = append(b, '[')
	for i, name := range titles(f) {
		if i > 0 {
			b = append(b, ',')
		}
		b = tool.AppendText(append(b, `{"const":`...), f.Choices[i])
		b = append(tool.AppendText(append(b, `,"title":`...), name), '}')
	}
	return append(b, ']')
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

// fit holds an answer against the fields of its question. Whatever is not an acceptance, and an acceptance that
// does not fit, is a no.
func fit(fields []keptField, r *Elicited) tool.Answer {
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
		values, ok := f.values(content)
		if !ok || values == nil && len(f.Choices) > 0 && !f.Many && !f.Optional {
			return tool.Answer{Outcome: tool.Declined}
		}
		if values != nil {
			a.Values[f.Name] = values
		}
	}
	return a
}

// values reads the value of one field; nil: it was left out. ok is false if it does not fit.
func (f keptField) values(content map[string]any) (values []string, ok bool) {
	if f.Flags {
		return f.flags(content)
	}
	switch v := content[f.Name].(type) {
	case nil:
		return nil, true
	case string:
		switch {
		case len(f.Choices) == 0:
			if r := []rune(v); len(r) > maxText {
				v = string(r[:maxText-1]) + "…" // or half an answer would be read as the whole
			}
			return []string{results.Clean(v)}, true
		case v == "" && f.Optional: // what some forms send for a list in which nothing is selected
			return nil, true
		}
		return []string{v}, slices.Contains(f.Choices, v) && !f.Many
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

// flags reads a field whose choices are flags.
func (f keptField) flags(content map[string]any) (values []string, ok bool) {
	for i, c := range f.Choices {
		switch v := content[flagName(f.Name, i)].(type) {
		case nil:
		case bool:
			if values == nil {
				values = []string{} // it was filled in
			}
			if v {
				values = append(values, c)
			}
		default:
			return nil, false
		}
	}
	return values, true
}
