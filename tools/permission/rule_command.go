package permission

import (
	"errors"
	"strings"
	"unicode"

	"codehand/tools/bash"
	"codehand/tools/guarded"
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
	if why := bash.NeverMatched(first); why != "" {
		return errors.New("it can never match: " + why)
	}
	return nil
}

// hiddenInCommand is invisible, but a command may have lines and tabs.
func hiddenInCommand(c rune) bool { return c != '\n' && c != '\t' && guarded.Invisible(c) }

// forbidsCommand returns the part of a command that a rule which denies or asks is about: any spelling of any
// sub-command, or the whole.
func (r *rule) forbidsCommand(text string, a *bash.Analysis) (string, bool) {
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

// plainWord says whether a word means itself to every shell.
func plainWord(word string) bool {
	return word != "" && !strings.ContainsFunc(word, func(c rune) bool {
		return c > unicode.MaxASCII ||
			!unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("_./:@+-=,%", c)
	})
}
