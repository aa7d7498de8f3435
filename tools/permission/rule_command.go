package permission

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// readCommand reads the pattern of a command.
func (r *rule) readCommand(spec string, v Verdict) error {
	switch {
	case spec != strings.TrimSpace(spec):
		return errors.New("it can never match: a command has no blanks at its ends")
	case spec == ":*":
		return errors.New("it can never match: there is no command before the :*")
	}
	if strings.ContainsFunc(spec, hiddenInCommand) {
		return errors.New("it has invisible characters")
	}
	r.text = newGlob(spec)
	if v != Allow || r.text.exact() {
		return nil
	}
	first, _, _ := strings.Cut(r.text.pieces[0], " ")
	switch {
	case stripped(first):
		return fmt.Errorf("it can never match: %s is left out before rules that allow are compared; write the rule "+
			"for the command behind it", first)
	case runsItsWords(first):
		return fmt.Errorf("it can never match: %s runs its words as a command, so only a rule without a star allows it",
			first)
	}
	return nil
}

// hiddenInCommand is invisible, but a command may have lines and tabs.
func hiddenInCommand(c rune) bool { return c != '\n' && c != '\t' && invisible(c) }

// forbidsCommand returns the part of a command that a rule which denies or asks is about: any spelling of any
// sub-command, or the whole.
func (r *rule) forbidsCommand(text string, a *Analysis) (string, bool) {
	if r.text.match(strings.TrimSpace(text)) {
		return text, true
	}
	for i := range a.Parts {
		part := &a.Parts[i]
		if r.text.match(part.Text) {
			return part.Text, true
		}
		for _, form := range part.Forms {
			if r.text.match(form) {
				return form, true
			}
		}
	}
	return "", false
}

// maxParts is how many sub-commands a command has at most that is ReadOnly (R1), or that anything but a person can
// allow, and maxCommand how many bytes (R0).
const (
	maxParts   = 50
	maxCommand = 10_000
)

// overlong says why nobody but a person can judge a command; "": nothing.
func overlong(text string, a *Analysis) string {
	switch {
	case len(a.Parts) > maxParts:
		return fmt.Sprintf("the command has %d sub-commands, more than %d", len(a.Parts), maxParts)
	case len(text) > maxCommand:
		return fmt.Sprintf("the command has %d bytes, more than %d", len(text), maxCommand)
	}
	return ""
}

// plainWord says whether a word means itself to every shell.
func plainWord(word string) bool {
	return word != "" && !strings.ContainsFunc(word, func(c rune) bool {
		return c > unicode.MaxASCII ||
			!unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("_./:@+-=,%", c)
	})
}
