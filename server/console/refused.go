package console

import (
	"regexp"
	"strings"
	"sync"
)

// A refusal is why an undo did nothing, for the person who pressed the button: the tools say it to models, which have
// other tools to go on with.
type refusal struct {
	Code     string
	Happened string   // in the words of the tool
	Can      []string // what the person can do, the easiest first
	Since    []diffLine
}

// The parts of the refusal of an undo: a code, what is in the way, that nothing was written, what a model can do, and
// perhaps a diff.
var refused = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?s)^([A-Z][A-Z_]{2,40}): (.*)$`) })

const (
	notWritten = " Nothing was written."
	sinceThen  = " Since then:\n"
)

// canDo is what a person can do about a refusal, by its code.
var canDo = map[string][]string{
	"UNDO_CONFLICT": {
		"To keep what is there now, you need not do anything.",
		"If tools changed the file again later, undo those changes first: All changes lists them, the newest first.",
		"If the change has several parts, open it and undo those that nobody changed since.",
		"Otherwise edit the file yourself.",
	},
	"UNDO_UNAVAILABLE": {"Restore the file from version control or a backup, or edit it yourself."},
	"CHANGE_UNKNOWN": {"Changes are kept for a limited time. Restore the file from version control or a backup, or " +
		"edit it yourself."},
	"PERMISSION_DENIED": {"Change the rule in your settings if you want to allow it, or edit the file yourself."},
}

// refusalOf reads what a tool said; nil: it is no refusal with a code.
func refusalOf(said string) *refusal {
	m := refused().FindStringSubmatch(said)
	if m == nil {
		return nil
	}
	r := &refusal{Code: m[1], Happened: m[2], Can: canDo[m[1]]}
	if r.Can == nil {
		r.Can = []string{"Try again. If that does not help, edit the file yourself."}
	}
	if text, diff, ok := strings.Cut(r.Happened, sinceThen); ok {
		r.Happened, r.Since = text, lines(diff)
	}
	if happened, _, ok := strings.Cut(r.Happened, notWritten); ok {
		r.Happened = happened
	} else if first, _, ok := strings.Cut(r.Happened, ". "); ok {
		r.Happened = first + "." // what follows is for a model
	}
	return r
}
