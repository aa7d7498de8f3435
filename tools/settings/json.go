package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// A dialect of JSON.
type dialect int

const (
	plain     dialect = iota
	commented         // with comments, and commas behind the last of a list
)

// A contentError says where content is no JSON.
type contentError struct {
	Line, Column int // in characters; both from 1
	Reason       string
}

// Error names the place before the reason: `3:7: invalid character …`.
func (e *contentError) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Reason) }

// checkJSON says why content is not JSON of that shape. Nothing but white space is what programs read as no settings.
func checkJSON(content []byte, d dialect, s shape) error {
	text := bytes.TrimPrefix(content, []byte("\ufeff"))
	if d == commented {
		var err error
		if text, err = blanked(text); err != nil {
			return err
		}
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		bad, ok := errors.AsType[*json.SyntaxError](err)
		if !ok {
			return err
		}
		at := int(bad.Offset)
		if at == len(text) && bad.Error() == "unexpected end of JSON input" {
			return syntaxError(text, at, bad.Error())
		}
		return syntaxError(text, at-1, bad.Error()) // Offset counts the byte that is wrong
	}
	return s.check("", value)
}

func syntaxError(text []byte, at int, reason string) *contentError {
	before := text[:max(0, min(at, len(text)))]
	line := before[bytes.LastIndexByte(before, '\n')+1:]
	return &contentError{Line: bytes.Count(before, []byte("\n")) + 1, Column: utf8.RuneCount(line) + 1, Reason: reason}
}

// blanked returns a copy of JSON with comments in which these, and a comma behind the last value of a list or an
// object, are blanks. All offsets are as before. The error is a comment that does not end.
func blanked(text []byte) ([]byte, error) {
	out := bytes.Clone(text)
	comma := -1 // of a comma with nothing behind it so far
	for i := 0; i < len(out); {
		from := i
		switch b := out[i]; {
		case b == '"':
			i = endOfString(out, i)
		case bytes.HasPrefix(out[i:], []byte("//")):
			if i = bytes.IndexByte(out[i:], '\n'); i < 0 {
				i = len(out) - from
			}
			i += from
			blank(out[from:i])
			continue
		case bytes.HasPrefix(out[i:], []byte("/*")):
			n := bytes.Index(out[i+2:], []byte("*/"))
			if n < 0 {
				return nil, syntaxError(text, i, "a comment begins here and does not end")
			}
			i += n + 4
			blank(out[from:i])
			continue
		case b == ' ', b == '\t', b == '\r', b == '\n':
			i++
			continue
		case (b == ']' || b == '}') && comma >= 0:
			out[comma] = ' '
			i++
		default:
			i++
		}
		comma = -1
		if out[from] == ',' && follows(out[:from]) {
			comma = from
		}
	}
	return out, nil
}

// follows says whether a comma behind these bytes stands behind a value: `[,]` and `{,}` stay wrong.
func follows(before []byte) bool {
	before = bytes.TrimRight(before, " \t\r\n")
	return len(before) > 0 && !bytes.ContainsRune([]byte("[{,:"), rune(before[len(before)-1]))
}

// endOfString is the offset behind the string that begins at from, or the end if it does not end.
func endOfString(text []byte, from int) int {
	for i := from + 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// blank makes blanks of a comment, but leaves its line ends.
func blank(text []byte) {
	for i, b := range text {
		if b != '\n' && b != '\r' {
			text[i] = ' '
		}
	}
}
