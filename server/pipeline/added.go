package pipeline

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"codehand/tools/hooks"
	"codehand/tools/permission"
	"codehand/tools/results"
	"codehand/tools/textedit"
)

// maxHookDiff is how many bytes of a hook's change to a file are shown.
const maxHookDiff = 8_192

// An addition is what hooks say about a result, within the room that they have.
type addition struct {
	room results.Form
	none bool // there is no room
	text string
	cut  bool // something is missing
}

// say adds a text on a line of its own.
func (a *addition) say(text string) {
	if a.none || a.cut || text == "" {
		a.cut = a.cut || text != ""
		return
	}
	addLine(&a.text, text)
	var whole bool
	a.text, whole = a.room.Cut(a.text)
	a.cut = !whole
}

// replace puts what a hook wrote in the place of the text. It is bounded like any other, and what was shown before was
// not seen.
func (c *call) replace(ctx context.Context, o *outcome, text string) {
	if kept := o.meta().Kept; kept != nil && !strings.Contains(text, kept.Path) {
		o.meta().Kept = nil // nothing in the text leads there
	}
	o.meta().Version = ""
	if o.result != nil {
		o.result.Media = nil // the hook saw only the text, and wants something else to be shown
	}
	if o.refusal != nil {
		o.refusal.Brief = ""
	}
	c.forget(ctx, o.shows())
	c.whole, c.paged = text, false
	c.rebind(ctx, o, c.form(o))
}

// rebind bounds the whole text again.
func (c *call) rebind(ctx context.Context, o *outcome, f results.Form) {
	*o.text() = c.whole
	if c.state.Results == nil {
		return
	}
	c.state.Results.Count(-c.shown)
	c.bindWhole(ctx, o, f)
	c.shown = utf8.RuneCountInString(*o.text())
}

// add puts under the text what hooks said, and what they did to the files that this call changed. The client's limits
// are for both together, so the text gives way, down to half of what it may have. A page does not, because it would not
// count as seen: hooks have what it leaves. A change of theirs that is shown whole counts as read, so that a formatter
// does not make the next edit fail.
func (c *call) add(ctx context.Context, o *outcome, said hooks.Outcome) {
	var texts []string
	if slices.Contains(said.Opinions, permission.Deny) {
		texts = append(texts, strings.TrimSpace("[a hook objects] "+hookText(said.Reason)))
	}
	texts = append(texts, hookText(c.found.Hooks.Context), hookText(said.Context))
	changes, accept := c.hookChanges(ctx, o)
	texts = append(texts, changes...)
	a := c.room(o, texts)
	for _, text := range texts {
		a.say(text)
	}
	c.join(ctx, o, a)
	if a.cut {
		c.log().WarnContext(ctx, "hooks said more than there is room for", "tool", c.bound.Spec.Name,
			"call", c.visit.id)
		return
	}
	for _, seen := range accept {
		seen()
	}
}

// room is what hooks have for these texts.
func (c *call) room(o *outcome, texts []string) addition {
	wanted := 0
	for _, text := range texts {
		if text != "" {
			wanted += utf8.RuneCountInString(text) + 1
		}
	}
	if c.state.Results == nil || wanted == 0 {
		return addition{}
	}
	f := c.form(o)
	left, ok := f.Room(*o.text() + "\n")
	if half := f.Half(); !c.paged {
		left, ok = results.Form{Runes: max(left.Runes, half.Runes), Bytes: max(left.Bytes, half.Bytes),
			Lines: max(left.Lines, half.Lines), JSON: max(left.JSON, half.JSON)}, true
	}
	granted := c.state.Results.Reserve(wanted)
	c.shown += granted
	left.Runes = min(left.Runes, granted)
	return addition{room: left, none: !ok || granted == 0}
}

// join puts an addition under the text, of which less is shown if need be.
func (c *call) join(ctx context.Context, o *outcome, a addition) {
	if a.text == "" {
		return
	}
	if f := c.form(o); c.state.Results != nil && !c.paged && !f.Fits(*o.text()+"\n"+a.text) {
		if less, ok := f.Room(a.text + "\n"); ok {
			c.rebind(ctx, o, less)
		}
	}
	addLine(o.text(), a.text)
}

// hookChanges tells what hooks did to the files that this call changed. accept remembers what is told whole, once it
// was.
func (c *call) hookChanges(ctx context.Context, o *outcome) (texts []string, accept []func()) {
	var paths []string
	for _, f := range o.meta().Files {
		paths = append(paths, f.Path)
	}
	if len(paths) == 0 || c.state.Files == nil {
		return nil, nil
	}
	stale, err := c.state.Files.Changed(ctx, paths...)
	if err != nil {
		c.log().WarnContext(ctx, "look for changes by hooks", "tool", c.bound.Spec.Name, "error", err)
	}
	for _, s := range stale {
		text := fmt.Sprintf("[a hook changed %s after this edit]", s.Path)
		if s.Old != nil && s.New != nil {
			diff, all := textedit.Diff(s.Old, s.New, maxHookDiff)
			shown, exact := results.ShowDiff(diff)
			if text += "\n" + shown; all && exact {
				accept = append(accept, func() {
					if err := c.state.Files.Accept(ctx, s); err != nil {
						c.log().WarnContext(ctx, "remember a change by a hook", "path", s.Path, "error", err)
					}
				})
			}
		}
		text, _ = results.Show(text) // a file may hold anything
		texts = append(texts, text)
	}
	return texts, accept
}

// addLine puts a line at the end of text.
func addLine(text *string, line string) {
	if *text != "" && !strings.HasSuffix(*text, "\n") {
		*text += "\n"
	}
	*text += line
}
