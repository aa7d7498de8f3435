package skills

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// split takes a file apart: the lines between the first one, which is ---, and the next such one; and what follows. A
// byte order mark and CRLF are taken away. A file whose first line is another is all body. The error is ErrNotText, or
// says in half a sentence what is wrong.
func split(file []byte) (front, body string, err error) {
	if !utf8.Valid(file) || bytes.IndexByte(file, 0) >= 0 {
		return "", "", ErrNotText
	}
	text := strings.TrimPrefix(string(file), "\ufeff")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	first, rest, _ := strings.Cut(text, "\n")
	if strings.TrimRight(first, " \t") != "---" {
		return "", text, nil
	}
	for at := 0; at < len(rest); {
		line, _, _ := strings.Cut(rest[at:], "\n")
		if strings.TrimRight(line, " \t") == "---" {
			front, body = rest[:at], rest[min(at+len(line)+1, len(rest)):]
			if len(front) > maxFront {
				return "", "", fmt.Errorf("its front matter has %d bytes, the limit is %d", len(front), maxFront)
			}
			return front, body, nil
		}
		at += len(line) + 1
	}
	return "", "", errors.New("its front matter begins with --- and has no line --- at its end")
}

// readFront reads front matter, which is an object. What is no YAML is read again key by key, as people write it: with
// ": " in the middle of a description, or brackets that are prose. loose says that this was needed. An error says in
// half a sentence why there is no skill.
func readFront(text string) (v value, loose bool, err error) {
	v, err = parseYAML(text, false)
	switch {
	case err == nil && v.kind == object:
		return v, false, nil
	case err == nil && v.kind == null:
		return value{kind: object}, false, nil
	case errors.Is(err, errBomb):
		return value{}, false, err
	}
	reason := err
	if reason == nil {
		reason = errors.New("no keys")
	}
	v, err = readKeys(text)
	if err != nil {
		return value{}, false, err
	}
	if len(v.keys) == 0 {
		return value{}, false, fmt.Errorf("its front matter cannot be read: %w", reason)
	}
	return v, true, nil
}

// plainKey is the beginning of a line that begins a key of the whole front matter.
var plainKey = lazy(`^([A-Za-z_][A-Za-z0-9_.-]*)[ \t]*:(?:[ \t]+|$)`)

// readKeys reads front matter key by key: each with the lines that follow it until the next one. A value that is YAML
// by itself is read so, any other is the text as it is, its lines joined. Of two equal keys the last counts. The only
// error is errBomb.
func readKeys(text string) (value, error) {
	v := value{kind: object}
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); {
		m := plainKey().FindStringSubmatch(lines[i])
		if m == nil { // before the first key
			i++
			continue
		}
		end := i + 1
		for end < len(lines) && !plainKey().MatchString(lines[end]) {
			end++
		}
		item, err := readKey(m[1], lines[i][len(m[0]):], lines[i:end])
		if err != nil {
			return value{}, err
		}
		v.set(m[1], item)
		i = end
	}
	return v, nil
}

// readKey reads the value of one key. first is what follows the key on its line, lines are all of it.
func readKey(key, first string, lines []string) (value, error) {
	own, err := parseYAML(strings.Join(lines, "\n"), true)
	if errors.Is(err, errBomb) {
		return value{}, err
	}
	if err == nil && own.kind == object && len(own.keys) == 1 && own.keys[0] == key {
		return own.items[0], nil
	}
	parts := []string{strings.TrimSpace(first)}
	for _, line := range lines[1:] {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			parts = append(parts, line)
		}
	}
	switch parts[0] { // the sign of a block, which is no text
	case "|", ">", "|-", ">-", "|+", ">+":
		parts = parts[1:]
	}
	return scalar(unquote(strings.TrimSpace(strings.Join(parts, " ")))), nil
}

// unquote takes away the quotes around a text that has no others of their kind.
func unquote(s string) string {
	for _, q := range []string{`"`, `'`} {
		if len(s) > 1 && strings.HasPrefix(s, q) && strings.HasSuffix(s, q) && strings.Count(s, q) == 2 {
			return s[1 : len(s)-1]
		}
	}
	return s
}
