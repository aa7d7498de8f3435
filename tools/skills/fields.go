package skills

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxItems bounds a list of the front matter: rules, patterns, names.
const maxItems = 256

// maxFirst is the length of a description that was taken from the body, in characters.
const maxFirst = 250

// describe fills in what front matter says about a skill. Unknown keys are in Front alone.
func (s *Skill) describe(front value, body string) {
	s.Description = text(front.get("description"))
	if s.Description == "" {
		s.Description = firstLine(body)
	}
	s.WhenToUse = text(front.get("when_to_use"))
	s.Hint = hint(front.get("argument-hint"))
	s.Arguments = items(front.get("arguments"))
	// A value that is neither true nor false counts as the careful one: a skill that its author wanted to limit stays
	// limited.
	s.ModelOff = truth(front.get("disable-model-invocation"), false, true)
	s.UserOff = !truth(front.get("user-invocable"), true, false)
	s.Allowed = rules(front.get("allowed-tools"))
	s.Fork = strings.EqualFold(text(front.get("context")), "fork")
	s.Agent = text(front.get("agent"))
	s.Shell = text(front.get("shell"))
	s.Paths = items(front.get("paths"))
	var b bytes.Buffer
	front.json(&b)
	s.Front = json.RawMessage(b.Bytes())
}

// text is a value as a person reads it: no control characters but line ends, nothing of an object.
func text(v value) string {
	switch v.kind {
	case literal, words:
		return strings.TrimSpace(strings.Map(func(r rune) rune {
			if unicode.IsControl(r) && r != '\n' {
				return ' '
			}
			return r
		}, v.text))
	case list:
		var parts []string
		for _, item := range v.items {
			parts = append(parts, text(item))
		}
		return strings.TrimSpace(strings.Join(parts, " "))
	}
	return ""
}

// hint is a hint as it was written: [file] in YAML is a list.
func hint(v value) string {
	if v.kind != list {
		return text(v)
	}
	var parts []string
	for _, item := range v.items {
		parts = append(parts, text(item))
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// truth reads a boolean. absent and unclear are what it is without a value, and with one that means nothing.
func truth(v value, absent, unclear bool) bool {
	switch strings.ToLower(text(v)) {
	case "true", "yes", "on", "1", "y":
		return true
	case "false", "no", "off", "0", "n":
		return false
	case "":
		return absent
	}
	return unclear
}

// items reads a list, or text with commas or blanks between.
func items(v value) []string {
	if v.kind != list {
		return separate(text(v), "{", "}")
	}
	var out []string
	for _, item := range v.items {
		if t := text(item); t != "" && len(out) < maxItems {
			out = append(out, t)
		}
	}
	return out
}

// rules reads a list of tools, each of which may have blanks and commas in parentheses.
func rules(v value) []string {
	if v.kind != list {
		return separate(text(v), "(", ")")
	}
	var out []string
	for _, item := range v.items {
		out = append(out, separate(text(item), "(", ")")...)
	}
	return out[:min(len(out), maxItems)]
}

// separate splits at commas and white space that are not between open and end. What is not closed goes to the end.
func separate(s, open, end string) []string {
	var out []string
	depth, from := 0, -1
	for i := 0; i <= len(s); {
		r, n := rune(','), 1
		if i < len(s) {
			r, n = utf8.DecodeRuneInString(s[i:])
		} else {
			depth = 0
		}
		switch {
		case depth == 0 && (r == ',' || unicode.IsSpace(r)):
			if from >= 0 && len(out) < maxItems {
				out = append(out, s[from:i])
			}
			from = -1
		case from < 0:
			from = i
			fallthrough
		default:
			if string(r) == open {
				depth++
			} else if string(r) == end {
				depth = max(0, depth-1)
			}
		}
		i += n
	}
	return out
}

// firstLine is the first line of a text that says something, else that of its first heading.
func firstLine(body string) string {
	heading := ""
	for line := range strings.Lines(body) {
		line = text(value{kind: words, text: line})
		switch {
		case strings.Trim(line, "-*_= ") == "", strings.HasPrefix(line, "<!--"), strings.HasPrefix(line, "```"):
		case strings.HasPrefix(line, "#"):
			if heading == "" {
				heading = strings.TrimSpace(strings.TrimLeft(line, "#"))
			}
		default:
			return cut(line, maxFirst)
		}
	}
	return cut(heading, maxFirst)
}

// cut shortens s to max characters, of which the last then says that there was more.
func cut(s string, max int) string {
	if utf8.RuneCountInString(s) <= max {
		return s
	}
	if max < 1 {
		return ""
	}
	return strings.TrimRight(string([]rune(s)[:max-1]), " ") + "…"
}
