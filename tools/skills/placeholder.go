package skills

import "strings"

// maxVariable is more than the length of ${CODEHAND_PROJECT_DIR}.
const maxVariable = 32

// maxNamed is how many names of arguments count: each is looked for at every $.
const maxNamed = 64

// A placeholder is one found in a text. What it stands for is in got.
type placeholder struct {
	text    string // as it stands there, without a backslash before it; "": the text ended
	got     filling
	literal bool // a backslash said so
	length  int  // of text
}

// A filling is what comes in the place of a placeholder.
type filling struct {
	text     string
	words    []string // of $ARGUMENTS: each one word in a command; else nil, and text is one word
	missing  bool     // there is none, and the placeholder stays
	argument bool     // it came from the arguments
}

// fillings are all that can be put into a text.
type fillings struct {
	all       string
	words     []string
	names     []string // arguments of the skill, by position
	variables map[string]string
}

// prepare collects what can be put into the text of a skill.
func prepare(s Skill, a Arguments) fillings {
	f := fillings{all: a.Text, words: shellWords(a.Text), names: s.Arguments[:min(len(s.Arguments), maxNamed)],
		variables: map[string]string{}}
	for _, prefix := range []string{"CLAUDE_", "CODEHAND_"} {
		f.variables[prefix+"SKILL_DIR"] = s.Dir
		f.variables[prefix+"PROJECT_DIR"] = a.Project
		f.variables[prefix+"SESSION_ID"] = a.Session
	}
	return f
}

// next finds the first placeholder in s, with what is before and after it.
func (f fillings) next(s string) (before string, p placeholder, after string) {
	for from := 0; ; {
		i := strings.IndexByte(s[from:], '$')
		if i < 0 {
			return s, placeholder{literal: true}, ""
		}
		i += from
		if p, ok := f.at(s[i:]); ok {
			p.text, before, after = s[i:i+p.length], s[:i], s[i+p.length:]
			if before, p.literal = strings.CutSuffix(before, `\`); p.literal {
				p.got = filling{}
			}
			return before, p, after
		}
		from = i + 1
	}
}

// at reads the placeholder that the $ at the start of s begins.
func (f fillings) at(s string) (placeholder, bool) {
	rest := s[1:]
	if strings.HasPrefix(rest, "{") {
		// No variable is longer, and a text of "${" alone must not be searched to its end each time.
		end := strings.IndexByte(rest[:min(len(rest), maxVariable)], '}')
		if end < 0 {
			return placeholder{}, false
		}
		value, ok := f.variables[rest[1:end]]
		return placeholder{length: end + 2, got: filling{text: value}}, ok
	}
	if after, ok := strings.CutPrefix(rest, "ARGUMENTS"); ok {
		if n := index(after); n > 0 {
			return placeholder{length: len("$ARGUMENTS") + n, got: f.word(after[1 : n-1])}, true
		}
		if !wordAt(after) {
			return placeholder{length: len("$ARGUMENTS"), got: filling{text: f.all, words: f.words, argument: true}},
				true
		}
	}
	if n := digits(rest); n > 0 {
		return placeholder{length: 1 + n, got: f.word(rest[:n])}, !wordAt(rest[n:])
	}
	return f.named(rest)
}

// named reads the longest name of an argument at the start of s. A name that the arguments do not reach is empty.
func (f fillings) named(s string) (p placeholder, ok bool) {
	if !wordAt(s) { // so is every name
		return placeholder{}, false
	}
	for i, name := range f.names {
		if name == "" || len(name) < p.length || !strings.HasPrefix(s, name) || wordAt(s[len(name):]) {
			continue
		}
		p.length, p.got = 1+len(name), filling{}
		if i < len(f.words) {
			p.got = filling{text: f.words[i], argument: true}
		}
		ok = true
	}
	return p, ok
}

// word returns the argument of a number.
func (f fillings) word(number string) filling {
	n := 0
	for _, d := range number {
		if n = n*10 + int(d-'0'); n >= len(f.words) {
			return filling{missing: true}
		}
	}
	return filling{text: f.words[n], argument: true}
}

// index returns the length of [N] at the start of s, 0 if there is none.
func index(s string) int {
	if !strings.HasPrefix(s, "[") {
		return 0
	}
	if n := digits(s[1:]); n > 0 && strings.HasPrefix(s[1+n:], "]") {
		return n + 2
	}
	return 0
}

// digits counts the digits at the start of s.
func digits(s string) int { return len(s) - len(strings.TrimLeft(s, "0123456789")) }

// wordAt reports whether a word goes on at the start of s. Only ASCII counts: languages without blanks write $0 and go
// on.
func wordAt(s string) bool {
	if s == "" {
		return false
	}
	c := s[0]
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
