package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"codehand/tools/bash"
	"codehand/tools/permission"
	"codehand/tools/results"
	"codehand/tools/tool"
)

// A permissionAsk is the question about one call.
type permissionAsk struct {
	tool.Question
	choices []string
	rule    string // would allow the call; "": none would
	session string // would allow it in this session alone, as one that may discard content; "": none would
}

// digest names what a person sees, and the input that it is about.
func (q permissionAsk) digest(input string) string {
	b, err := json.Marshal(q.Question)
	if err != nil { // it is made of texts
		return ""
	}
	return digest(append(b, input...))
}

// How many characters a question has, its title included: what clients show, and what a page does.
const (
	maxQuestion = 4_000
	maxOnPage   = 400_000
)

// permissionQuestion asks about the call in words of ours. Some clients show two lines of a question: the first says
// what the call is about, the second why a person decides and which rule would allow it. Then comes what it would do.
// Lines of the call are indented, so that none of them looks like one of ours.
func (c *decided) permissionQuestion(ctx context.Context, hookSays string) permissionAsk {
	q := permissionAsk{choices: []string{allowOnce}}
	head, own, files, hidden := c.touched()
	q.Title = "Allow " + c.bound.Spec.Name + "?"
	if head != "" {
		q.Title = "Allow " + c.bound.Spec.Name + ": " + head
	}

	q.rule = c.state.Rules.Suggest(c.about)
	why := "Asked because: " + clipLine(oneLine(because(c.decision))) + "."
	if harm := oneLine(c.danger()); harm != "" && !c.decision.Dangerous {
		why += " Warning: " + clipLine(harm) + "."
	}
	if q.rule != "" {
		why += " Rule that would allow it: " + clipLine(oneLine(q.rule))
	}
	var end strings.Builder
	if hookSays != "" {
		fmt.Fprintf(&end, "A hook says: %s\n", clipLine(oneLine(hookSays)))
	}
	if hidden {
		end.WriteString("The text above contains invisible characters; they are shown as escapes.\n")
	}
	if q.rule != "" && !hidden {
		if !c.state.Shared {
			q.choices = append(q.choices, allowSession)
		}
		if always := c.pipe.Always; always != nil {
			q.choices = append(q.choices, allowAlways)
			fmt.Fprintf(&end, "%q adds that rule to permissions.allow in %s\n", allowAlways, oneLine(always.File))
		}
	}
	if q.rule == "" && !hidden && !c.state.Shared {
		if q.session = c.state.Rules.SuggestForSession(c.about); q.session != "" {
			q.choices = append(q.choices, allowSession)
			fmt.Fprintf(&end, "%q allows %s, whatever it discards\n", allowSession, oneLine(q.session))
		}
	}
	q.choices = append(q.choices, denyIt)
	most := maxQuestion
	if onPage(c.call) {
		most = maxOnPage
	}
	room := most - utf8.RuneCountInString(q.Title+why+end.String()) - 10
	details := c.details(ctx, max(leastOther, room-utf8.RuneCountInString(own+files)))
	q.Text = strings.TrimSuffix(why+"\n"+share(own, details+files, room)+end.String(), "\n")
	q.Decides = decisionField
	q.Fields = []tool.Field{
		{Name: decisionField, Label: "Decision", Choices: q.choices},
		{Name: reasonField, Label: "Reason (optional)"},
	}
	return q
}

// leastOther is how many characters the call itself leaves to what else there is to be seen.
const leastOther = 500

// share cuts two texts to n characters together. Most is for the first: a long list of files must not push the end of
// the command out of sight.
func share(first, other string, n int) string {
	most := n
	if other != "" {
		most -= min(leastOther, utf8.RuneCountInString(other))
	}
	first = results.CutMiddle(first, most)
	return first + results.CutMiddle(other, n-utf8.RuneCountInString(first))
}

// maxHead is how many characters the first line of a question says of what the call is about.
const maxHead = 200

// touched says in a line what the call is about, lists it where a line does not hold it, and lists the files that its
// commands are known to touch. hidden says that something in it could not have been seen.
func (c *decided) touched() (head, own, files string, hidden bool) {
	var b, f strings.Builder
	several := 0
	show := func(s string, lines bool) string {
		shown, n := reveal(s, lines)
		hidden = hidden || n
		return shown
	}
	for _, t := range c.about.Targets {
		if t.Use == permission.CommandPerhaps {
			continue // the reason names the one that matters
		}
		at := &b
		if t.Use != permission.ByCall {
			at = &f
		}
		shown := show(t.Value, t.Kind == permission.Command)
		if t.Use == permission.ByCall {
			several++
		}
		if t.Use == permission.ByCall && head == "" {
			first, rest, _ := strings.Cut(shown, "\n")
			if head = clip(first, maxHead); head == shown && rest == "" {
				shown = "" // it is said
			}
		}
		if shown != "" {
			at.WriteString(targetName(t) + ":\n    " + strings.ReplaceAll(shown, "\n", "\n    ") + "\n")
		}
		if t.Real != "" && t.Real != t.Value {
			at.WriteString("    which is " + show(t.Real, false) + "\n")
		}
	}
	switch {
	case head == "":
		head = clip(show(c.bound.Activity, false), maxHead)
	case several > 1:
		head = fmt.Sprintf("%s and %d more", head, several-1)
	}
	return head, b.String(), f.String(), hidden
}

// danger says why a command of the call is dangerous; "": none is.
func (c *decided) danger() string {
	for _, t := range c.about.Targets {
		if t.Kind != permission.Command {
			continue
		}
		a := t.Analysis
		if a == nil {
			read := bash.Analyze(t.Value,
				func(path string) bool { return c.state.Space != nil && c.state.Space.Inside(path) })
			a = &read
		}
		if a.Class == bash.Dangerous {
			return a.Reason()
		}
	}
	return ""
}

func targetName(t permission.Target) string {
	switch t.Kind {
	case permission.Path:
		switch t.Use {
		case permission.CommandReads:
			return "The command reads"
		case permission.CommandWrites:
			return "The command changes"
		}
		return "Path"
	case permission.Command:
		return "Command"
	case permission.Domain:
		return "Host"
	}
	return "Name"
}

// longRun is from how many blanks in a row on they are counted instead of shown: they would push what follows out of
// sight.
const longRun = 40

// reveal shows what a person could not see: controls, invisible characters, blanks that are not ASCII, and without
// lines also line ends. hidden says that there was something of the kind.
func reveal(text string, lines bool) (shown string, hidden bool) {
	shown, n := results.Show(text)
	hidden = n > 0
	var b strings.Builder
	blanks := 0
	flush := func() {
		if blanks >= longRun {
			fmt.Fprintf(&b, "[%d blanks]", blanks)
		} else {
			b.WriteString(strings.Repeat(" ", blanks))
		}
		blanks = 0
	}
	for _, r := range shown {
		if r == ' ' || r == '\t' {
			blanks++
			continue
		}
		flush()
		switch {
		case r == '\n' && !lines:
			hidden = true
			b.WriteString(`\n`)
		case r > unicode.MaxASCII && (unicode.IsSpace(r) || unicode.In(r, unicode.Cf, unicode.Co, unicode.Zs)):
			hidden = true
			if r > 0xffff {
				fmt.Fprintf(&b, `\u{%x}`, r)
			} else {
				fmt.Fprintf(&b, `\u%04x`, r)
			}
		default:
			b.WriteRune(r)
		}
	}
	flush()
	return b.String(), hidden
}

// oneLine makes a foreign text fit for a line of ours.
func oneLine(text string) string {
	shown, _ := results.Show(text)
	return strings.TrimSuffix(strings.Join(strings.Fields(shown), " "), ".")
}

// maxLine is how many characters a line of ours has that names something foreign.
const maxLine = 500

func clipLine(text string) string { return clip(text, maxLine) }

// clip cuts a text to n characters.
func clip(text string, n int) string {
	if r := []rune(text); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return text
}
