package skills

import (
	"strings"
	"unicode"
)

// shellWords splits arguments as a shell does: at white space, with quotes and backslashes. When a quote is open at the
// end it was an apostrophe: then the text is split at white space alone, and every character stays.
func shellWords(s string) []string {
	var out []string
	var word strings.Builder
	inWord, quote := false, rune(0)
	runes := []rune(s)
	for i := 0; i < len(runes); i++ {
		r := runes[i]
		switch {
		case quote == 0 && unicode.IsSpace(r):
			if inWord {
				out = append(out, word.String())
				word.Reset()
			}
			inWord = false
			continue
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		case quote != 0 && r == quote:
			quote = 0
		case r == '\\' && i+1 < len(runes) && escapes(quote, runes[i+1]):
			i++
			word.WriteRune(runes[i])
		default:
			word.WriteRune(r)
		}
		inWord = true
	}
	if quote != 0 {
		return strings.Fields(s)
	}
	if inWord {
		out = append(out, word.String())
	}
	return out
}

// escapes reports whether a backslash before r means r itself.
func escapes(quote, r rune) bool {
	switch quote {
	case '\'':
		return false
	case '"':
		return strings.ContainsRune("\"\\$`", r)
	}
	return true
}

// harmless reports whether a text is data to every shell that may read it, the second and third, too: it has no
// character that one gives a meaning to, but those that only count outside of quotes.
func harmless(s string) bool {
	for _, r := range s {
		if r != ' ' && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) &&
			!strings.ContainsRune(bare+"=", r) {
			return false
		}
	}
	return true
}

// bare are the characters beside letters and digits that mean nothing even outside of quotes.
const bare = "_./:@%+,-"

// isBare reports whether a byte can stand outside of quotes.
func isBare(c byte) bool { return wordAt(string(c)) || strings.IndexByte(bare, c) >= 0 }

// quoteWord makes one word of a harmless text, between the bytes before and after it in a command. It is bare where
// that is the same, since rules about commands are easier to write without quotes.
func quoteWord(s string, before, after byte) string {
	plain := s != "" && joins(before) && joins(after)
	for i := 0; plain && i < len(s); i++ {
		plain = isBare(s[i])
	}
	if plain {
		return s
	}
	return "'" + s + "'"
}

// joins reports whether a bare word means the same beside c: a digit before < would name a file. 0: nothing is beside
// it.
func joins(c byte) bool { return c == 0 || c == ' ' || c == '\t' || c == '\n' || c == '=' || isBare(c) }

// A quoting knows whether a place in a command is within quotes. It need not be right: what is put in is harmless
// either way, and only not the one word that was meant.
type quoting struct {
	quote   byte
	escaped bool
}

// pass goes on over text of the command.
func (q *quoting) pass(s string) {
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case q.escaped:
			q.escaped = false
		case c == '\\' && q.quote != '\'':
			q.escaped = true
		case q.quote == 0 && (c == '\'' || c == '"'):
			q.quote = c
		case q.quote != 0 && c == q.quote:
			q.quote = 0
		}
	}
}
