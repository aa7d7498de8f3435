package config

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxCoAuthor is the most that a co-author may have, in bytes: one line of a commit message.
const maxCoAuthor = 200

// coAuthor checks `NAME <ADDRESS>`. It becomes a line of a commit message, so nothing in it may end that line, hide, or
// turn the text around.
func coAuthor(s string, _ input) (string, error) {
	bad := errors.New("must be one line such as: Jo Doe <jo@example.com>")
	name, rest, ok := strings.Cut(s, " <")
	address, closed := strings.CutSuffix(rest, ">")
	user, host, at := strings.Cut(address, "@")
	switch {
	case !ok || !closed || !at || user == "" || host == "" || strings.TrimSpace(name) == "":
	case len(s) > maxCoAuthor || !utf8.ValidString(s) || strings.ContainsAny(name+address, "<>"):
	case strings.ContainsFunc(address, unicode.IsSpace):
	case strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) }):
	default:
		return s, nil
	}
	return "", bad
}
