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
func (r *ran) replace(ctx context.Context, text string) {
	if kept := r.meta().Kept; kept != nil && !strings.Contains(text, kept.Path) {
		r.meta().Kept = nil // nothing in the text leads there
	}
	r.meta().Version = ""
	if r.result != nil {
		r.result.Media = nil // the hook saw only the text, and wants something else to be shown
	}
	if r.refusal != nil {
		r.refusal.Brief = ""
	}
	r.forget(ctx, r.shows())
	r.whole, r.paged = text, false
	r.rebind(ctx, r.form())
}

// rebind bounds the whole text again.
func (r *ran) rebind(ctx context.Context, f results.Form) {
	*r.text() = r.whole
	if r.state.Results == nil {
		return
	}
	r.state.Results.Count(-r.shown)
	r.bindWhole(ctx, f)
	r.shown = utf8.RuneCountInString(*r.text())
}

// add puts under the text what hooks said, and what they did to the files that this call changed. The client's limits
// are for both together, so the text gives way, down to half of what it may have. The text of a page gives way to
// nothing, because what is cut would not count as seen: hooks have what it leaves. A change of theirs that is shown
// whole counts as read, so that a formatter does not make the next edit fail.
func (r *ran) add(ctx context.Context, said hooks.Outcome) {
	var texts []string
	if slices.Contains(said.Opinions, permission.Deny) {
		texts = append(texts, strings.TrimSpace("[a hook objects] "+hookText(said.Reason)))
	}
	texts = append(texts, hookText(r.found.Hooks.Context), hookText(said.Context))
	changes, accept := r.hookChanges(ctx)
	texts = append(texts, changes...)
	a := r.room(texts)
	for _, text := range texts {
		a.say(text)
	}
	r.join(ctx, a)
	if a.cut {
		r.pipe.log().WarnContext(ctx, "hooks said more than there is room for", "tool", r.bound.Spec.Name,
			"call", r.visit.id)
		return
	}
	for _, seen := range accept {
		seen()
	}
}

// room is what hooks have for these texts.
func (r *ran) room(texts []string) addition {
	wanted := 0
	for _, text := range texts {
		if text != "" {
			wanted += utf8.RuneCountInString(text) + 1
		}
	}
	if r.state.Results == nil || wanted == 0 {
		return addition{}
	}
	f := r.form()
	left, ok := f.Room(*r.text() + "\n")
	if half := f.Half(); !r.paged {
		left, ok = results.Form{Runes: max(left.Runes, half.Runes), Bytes: max(left.Bytes, half.Bytes),
			Lines: max(left.Lines, half.Lines), JSON: max(left.JSON, half.JSON)}, true
	}
	granted := r.state.Results.Reserve(wanted)
	r.shown += granted
	left.Runes = min(left.Runes, granted)
	return addition{room: left, none: !ok || granted == 0}
}

// join puts an addition under the text, of which less is shown if need be.
func (r *ran) join(ctx context.Context, a addition) {
	if a.text == "" {
		return
	}
	if f := r.form(); r.state.Results != nil && !r.paged && !f.Fits(*r.text()+"\n"+a.text) {
		if less, ok := f.Room(a.text + "\n"); ok {
			r.rebind(ctx, less)
		}
	}
	addLine(r.text(), a.text)
}

// hookChanges tells what hooks did to the files that this call changed. accept remembers what is told whole, once it
// was.
func (r *ran) hookChanges(ctx context.Context) (texts []string, accept []func()) {
	var paths []string
	for _, f := range r.meta().Files {
		paths = append(paths, f.Path)
	}
	if len(paths) == 0 || r.state.Files == nil {
		return nil, nil
	}
	stale, err := r.state.Files.Changed(ctx, paths...)
	if err != nil {
		r.pipe.log().WarnContext(ctx, "look for changes by hooks", "tool", r.bound.Spec.Name, "error", err)
	}
	for _, s := range stale {
		text := fmt.Sprintf("[a hook changed %s after this edit]", s.Path)
		if s.Old != nil && s.New != nil {
			diff, all := textedit.Diff(s.Old, s.New, maxHookDiff)
			shown, exact := results.ShowDiff(diff)
			if text += "\n" + shown; all && exact {
				accept = append(accept, func() {
					if err := r.state.Files.Accept(ctx, s); err != nil {
						r.pipe.log().WarnContext(ctx, "remember a change by a hook", "path", s.Path, "error", err)
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
