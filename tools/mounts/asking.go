package mounts

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"codehand/tools/mounts/upstream"
	"codehand/tools/results"
	"codehand/tools/session"
	"codehand/tools/tool"
)

const (
	// mostFields is how many fields a question of a server has at most.
	mostFields = 20
	// mostFlags is how many fields it is shown with at most, a flag for each option of a choice of several.
	mostFlags = 60
	// mostAsked is how many characters of a server's question a person reads.
	mostAsked = 2_000
	// mostWritten is how many characters a person may write into one field.
	mostWritten = 4_000
)

// A caller is a request of ours to a server, which may ask the person behind it.
type caller struct {
	key session.Key
	put func(ctx context.Context, message string, schema json.RawMessage) (tool.Elicited, error) // nil: nobody
	// pause stops the time of the call while a person thinks, until resume
	pause func() (resume func())
}

// ask puts a question of the server to the person on whose behalf it works. A server does not say for which of our
// requests it asks: that is clear where all that are under way are of one principal, whose newest one is taken. Else,
// and where nobody can be asked, the server learns that there is no answer.
func (l *link) ask(ctx context.Context, f upstream.Form) upstream.Reply {
	none := upstream.Reply{Action: upstream.Cancel}
	l.mu.Lock()
	var to *caller
	clear := true
	for _, c := range l.callers {
		clear = clear && c.key.Principal == l.callers[0].key.Principal
		if c.put != nil {
			to = c
		}
	}
	l.mu.Unlock()
	if to == nil || !clear {
		l.of.log.Info("a mounted server asks and there is nobody to answer")
		return none
	}
	form, ok := newForm(f.Schema)
	if !ok {
		l.of.log.Warn("a mounted server asks for what cannot be shown to a person")
		return none // the person has declined nothing
	}
	defer to.pause()()
	said, err := to.put(ctx, l.of.asks(f.Message), form.schema)
	if err != nil {
		l.of.log.Info("a question of a mounted server was not answered", "cause", err)
		return none
	}
	switch said.Action {
	case upstream.Accept:
		content, ok := form.fit(said.Content)
		if !ok {
			return none
		}
		return upstream.Reply{Action: upstream.Accept, Content: content}
	case upstream.Decline:
		return upstream.Reply{Action: upstream.Decline}
	}
	return none
}

// asks is a server's question as a person reads it. Its lines are indented, so that none looks like one of ours.
func (x *mount) asks(message string) string {
	shown, _ := results.Show(message)
	shown = results.CutMiddle(strings.TrimSpace(shown), mostAsked)
	return "The server " + x.Name + " asks:\n    " + strings.ReplaceAll(shown, "\n", "\n    ") +
		"\nYour answer goes to that server. Give it no password or key that it should not have."
}

// A form is a question's fields, as they are shown. A choice of several is shown as a flag for each, which clients of
// all revisions know.
type form struct {
	schema  json.RawMessage
	fields  map[string]formField
	several map[string]several // by the name of the field
}

// A several is a choice of several texts.
type several struct{ flags, values []string }

// A formField is one field. What a client may not know of a schema is left out.
type formField struct {
	Type        string          `json:"type"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Enum        []string        `json:"enum,omitempty"`
	EnumNames   []string        `json:"enumNames,omitempty"`
	Default     json.RawMessage `json:"default,omitempty"`
}

// An option is one of those of a choice.
type option struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

// newForm reads the schema of a question. ok is false if it is no flat form of texts, numbers, flags and choices.
func newForm(schema json.RawMessage) (f form, ok bool) {
	var asked struct {
		Properties map[string]struct {
			formField
			OneOf []option `json:"oneOf"`
			Items struct {
				Enum  []string `json:"enum"`
				AnyOf []option `json:"anyOf"`
			} `json:"items"`
		} `json:"properties"`
		Required []string `json:"required"`
	}
	if json.Unmarshal(schema, &asked) != nil || len(asked.Properties) > mostFields {
		return f, false
	}
	f.fields, f.several = map[string]formField{}, map[string]several{}
	for name, p := range asked.Properties {
		field := p.formField
		if field.Type == "array" {
			options := p.Items.AnyOf
			for _, text := range p.Items.Enum {
				options = append(options, option{text, text})
			}
			if plain(name, maxTitle) != name || !f.choose(name, field, options) {
				return f, false
			}
			continue
		}
		for _, c := range p.OneOf {
			field.Enum, field.EnumNames = append(field.Enum, c.Const), append(field.EnumNames, c.Title)
		}
		if len(field.EnumNames) != len(field.Enum) {
			field.EnumNames = nil
		}
		field.Title, field.Description = plain(field.Title, maxTitle), plain(field.Description, maxHint*4)
		for i := range field.EnumNames {
			field.EnumNames[i] = plain(field.EnumNames[i], maxTitle)
		}
		if _, taken := f.fields[name]; taken { // by a flag
			return f, false
		}
		if !slices.Contains([]string{"string", "number", "integer", "boolean"}, field.Type) || !field.good() ||
			plain(name, maxTitle) != name || len(field.Enum) > 100 {
			return f, false
		}
		f.fields[name] = field
	}
	shown := map[string]any{"type": "object", "properties": f.fields}
	required := slices.DeleteFunc(asked.Required, func(name string) bool { _, is := f.fields[name]; return !is })
	if len(required) > 0 {
		shown["required"] = required
	}
	var err error
	f.schema, err = json.Marshal(shown)
	return f, err == nil
}

// choose adds a choice of several, as a flag for each option. It says whether that can be shown.
func (f *form) choose(name string, field formField, options []option) bool {
	var chosen []string
	if field.Default != nil && json.Unmarshal(field.Default, &chosen) != nil {
		chosen = nil
	}
	if len(options) == 0 || len(f.fields)+len(options) > mostFlags {
		return false
	}
	var all several
	for i, o := range options {
		flag := fmt.Sprintf("%s_%02d", name, i+1) // clients may sort them
		if _, taken := f.fields[flag]; taken || plain(o.Const, mostAsked) != o.Const {
			return false
		}
		shown := formField{Type: "boolean",
			Title: plain(cmp.Or(field.Title, name)+": "+cmp.Or(o.Title, o.Const), maxTitle)}
		if i == 0 {
			shown.Description = plain(field.Description, maxHint*4)
		}
		if slices.Contains(chosen, o.Const) {
			shown.Default = json.RawMessage("true")
		}
		f.fields[flag] = shown
		all.flags, all.values = append(all.flags, flag), append(all.values, o.Const)
	}
	f.several[name] = all
	return true
}

// good says whether a field can be shown: choices are clean texts, and a default fits.
func (p *formField) good() bool {
	if len(p.Enum) > 0 && (p.Type != "string" || slices.ContainsFunc(p.Enum, func(c string) bool {
		return plain(c, mostAsked) != c
	})) {
		return false
	}
	if p.Default != nil && (!p.fits(p.Default) || p.Type == "string" && !cleanText(p.Default)) {
		p.Default = nil
	}
	return true
}

func cleanText(raw json.RawMessage) bool {
	var text string
	return json.Unmarshal(raw, &text) == nil && plain(text, mostAsked) == text
}

// fits says whether a value is one that the field takes.
func (p *formField) fits(raw json.RawMessage) bool {
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return false
	}
	switch v := v.(type) {
	case string:
		return p.Type == "string" && utf8.RuneCountInString(v) <= mostWritten &&
			(len(p.Enum) == 0 || slices.Contains(p.Enum, v))
	case json.Number:
		_, err := v.Int64()
		return p.Type == "number" || p.Type == "integer" && err == nil
	case bool:
		return p.Type == "boolean"
	}
	return false
}

// fit is what of an answer belongs to the form; ok is false if a value does not fit.
func (f form) fit(content json.RawMessage) (json.RawMessage, bool) {
	var said map[string]json.RawMessage
	if len(content) > 0 && json.Unmarshal(content, &said) != nil {
		return nil, false
	}
	kept := map[string]json.RawMessage{}
	for name, value := range said {
		p, known := f.fields[name]
		if !known || string(value) == "null" {
			continue
		}
		if !p.fits(value) {
			return nil, false
		}
		kept[name] = value
	}
	for name, all := range f.several {
		values := []string{}
		for i, flag := range all.flags {
			if string(kept[flag]) == "true" {
				values = append(values, all.values[i])
			}
			delete(kept, flag)
		}
		kept[name], _ = json.Marshal(values) // texts
	}
	raw, err := json.Marshal(kept)
	return raw, err == nil
}

// newCaller is that of a request of a call.
func newCaller(env tool.Env, limit *pausable) *caller {
	return &caller{key: env.Key, put: env.Elicit, pause: limit.pause}
}

// limited is ctx with the time of a call. Nil is why it is cancelled where nobody needs to know.
func (x *mount) limited(ctx context.Context) (context.Context, *pausable, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	p := &pausable{timer: time.AfterFunc(x.Timeout, func() { cancel(errTimeout) }), most: x.Timeout}
	return ctx, p, func(why error) { p.timer.Stop(); cancel(why) }
}

// A pausable is a time limit that does not run while a person thinks. Its methods are safe for concurrent use.
type pausable struct {
	timer *time.Timer
	most  time.Duration
}

// pause stops it; then it begins anew.
func (p *pausable) pause() (resume func()) {
	if p == nil || !p.timer.Stop() {
		return func() {}
	}
	return func() { p.timer.Reset(p.most) }
}
