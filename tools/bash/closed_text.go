package bash

import (
	"fmt"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// textFault is rule R0: what in the raw text the parser and bash may read differently, or what a person would not see;
// "": nothing. The parser (v3.14.1) drops NUL without a word, takes CR LF for a newline, and joins a comment that ends
// in a backslash with the next line, which bash runs.
func textFault(text string) string {
	if len(text) > maxCommand {
		return strconv.Itoa(len(text)) + " bytes, at most " + strconv.Itoa(maxCommand)
	}
	for i := 0; i < len(text); {
		if c := text[i]; c < utf8.RuneSelf {
			switch {
			case c < ' ' && c != '\t' && c != '\n', c == 0x7f:
				return fmt.Sprintf("control character U+%04X at byte %d", c, i)
			case c == '\n' && i > 0 && text[i-1] == '\\':
				return fmt.Sprintf("backslash before a newline at byte %d", i-1)
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			return fmt.Sprintf("invalid UTF-8 at byte %d", i)
		case unicode.IsSpace(r), unicode.In(r, unicode.Z):
			return fmt.Sprintf("white space U+%04X at byte %d", r, i)
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs):
			return fmt.Sprintf("invisible character U+%04X at byte %d", r, i)
		}
		i += n
	}
	return ""
}
