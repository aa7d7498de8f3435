package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"codehand/tools/permission"
)

// details lists what a call brings beside what it touches. Where the tool itself can say what the call would do, that
// stands for the texts of its input; else these are listed, but for what says nothing, as false or "". room is how many
// characters there is room for.
func (c *decided) details(ctx context.Context, room int) string {
	const head, indent = "What it does:\n", "    "
	for left := room - len(head) - 1; c.bound.Details != nil; {
		own := c.bound.Details(ctx, c.state, left)
		if own == "" {
			break
		}
		shown, _ := reveal(own, true)
		text := head + indent + strings.ReplaceAll(shown, "\n", "\n"+indent) + "\n"
		n := utf8.RuneCountInString(text)
		if n <= room || left < leastOther || shown == own {
			return text
		}
		// What was revealed took the room, and a second cut would hide how much the first left out.
		left = left * room / n
	}
	var b strings.Builder
	c.detail(&b, "", c.bound.Input)
	return b.String()
}

// detail writes one value of an input under its name.
func (c *decided) detail(b *strings.Builder, name string, value json.RawMessage) {
	switch value = bytes.TrimSpace(value); {
	case len(value) == 0:
	case value[0] == '{':
		for _, f := range fieldsOf(value) {
			c.detail(b, f.name, f.value)
		}
	case value[0] == '[':
		var items []json.RawMessage
		if json.Unmarshal(value, &items) != nil {
			return
		}
		for _, item := range items {
			c.detail(b, name, item)
		}
	default:
		text := string(value)
		if value[0] == '"' && json.Unmarshal(value, &text) != nil {
			return
		}
		says := !slices.Contains([]string{"", "false", "null", "0"}, text)
		if says && !slices.ContainsFunc(c.bound.Targets, func(t permission.Target) bool { return t.Value == text }) {
			shown, _ := reveal(text, true)
			shownName, _ := reveal(name, false)
			b.WriteString(shownName + ":\n    " + strings.ReplaceAll(shown, "\n", "\n    ") + "\n")
		}
	}
}

// A field is a named value of an input.
type field struct {
	name  string
	value json.RawMessage
}

// fieldsOf are the fields of an object, in its order: an edit shows what it replaces before what it puts there.
func fieldsOf(object json.RawMessage) []field {
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil {
		return nil
	}
	var all []field
	for d.More() {
		name, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			break
		}
		text, _ := name.(string)
		all = append(all, field{text, value})
	}
	return all
}
