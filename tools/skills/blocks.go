package skills

import "strings"

// blocks takes a body apart into text and commands: parts that say the same as the body does when commands are written
// as they were found. Fences and code spans are those of CommonMark, but for the indentation, which may be any: a fence
// in a list is indented.
func blocks(body string) []Part {
	b := blockReader{}
	for at := 0; at < len(body); {
		line, _, _ := strings.Cut(body[at:], "\n")
		next := min(at+len(line)+1, len(body))
		mark, info := fence(line)
		switch {
		case mark == "":
			b.line(body[at:next])
		case info == "!" && mark[0] == '`':
			next = b.shell(body, at, next, mark)
		default:
			end := closing(body, next, mark)
			b.text.WriteString(body[at:end])
			next = end
		}
		at = next
	}
	b.flush()
	return b.parts
}

// fence reads a line that begins a fenced block: its mark, and what follows that.
func fence(line string) (mark, info string) {
	s := strings.TrimLeft(line, " \t")
	if s == "" || s[0] != '`' && s[0] != '~' {
		return "", ""
	}
	mark = s[:len(s)-len(strings.TrimLeft(s, s[:1]))]
	info = strings.TrimSpace(s[len(mark):])
	// An info with backticks is a code span at a line's start.
	if len(mark) < 3 || mark[0] == '`' && strings.Contains(info, "`") {
		return "", ""
	}
	return mark, info
}

// closing returns where the line after a block's end begins; the end of the body if nothing closes it.
func closing(body string, at int, mark string) int {
	_, after := inner(body, at, mark)
	return after
}

// inner returns where the text of a block that begins at ends, and where the line after it begins. Both are the end of
// the body when nothing closes the block.
func inner(body string, at int, mark string) (end, after int) {
	for at < len(body) {
		line, _, _ := strings.Cut(body[at:], "\n")
		next := min(at+len(line)+1, len(body))
		if s := strings.TrimSpace(line); len(s) >= len(mark) && strings.Trim(s, mark[:1]) == "" {
			return at, next
		}
		at = next
	}
	return len(body), len(body)
}

// A blockReader collects parts.
type blockReader struct {
	parts []Part
	text  strings.Builder
}

func (b *blockReader) flush() {
	if b.text.Len() > 0 {
		b.parts = append(b.parts, Part{Text: b.text.String()})
		b.text.Reset()
	}
}

func (b *blockReader) command(text string) {
	b.flush()
	b.parts = append(b.parts, Part{Text: text, Command: true})
}

// shell reads a block of commands: its line begins at start, its text at from. It returns where to go on. A block that
// is not closed or empty is text.
func (b *blockReader) shell(body string, start, from int, mark string) int {
	end, after := inner(body, from, mark)
	command := strings.TrimSpace(dedent(body[from:end], indent(body[start:from])))
	if end == after || command == "" {
		b.text.WriteString(body[start:after])
		return after
	}
	b.command(command)
	if strings.HasSuffix(body[:after], "\n") {
		b.text.WriteByte('\n')
	}
	return after
}

// indent counts the blanks and tabs at a line's start.
func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }

// dedent takes n blanks and tabs from each line, as far as there are any.
func dedent(text string, n int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(line[min(n, indent(line)):])
	}
	return b.String()
}

// line reads a line outside of fences: commands are !`…` at its start or after white space, but not within code spans.
func (b *blockReader) line(line string) {
	from := 0
	last := lastRuns(line)
	for i := 0; i < len(line); {
		switch {
		case line[i] == '`':
			i = span(line, i, last)
		case line[i] == '!' && (i == 0 || line[i-1] == ' ' || line[i-1] == '\t'):
			command, end := inline(line, i)
			if command != "" {
				b.text.WriteString(line[from:i])
				b.command(command)
				from = end
			}
			i = end
		default:
			i++
		}
	}
	b.text.WriteString(line[from:])
}

// lastRuns returns where the last run of backticks of each length begins. With it no line is searched in vain, which on
// a hostile one would take the square of its length.
func lastRuns(line string) map[int]int {
	var last map[int]int
	for i := 0; i < len(line); i++ {
		if n := ticks(line[i:]); n > 0 {
			if last == nil {
				last = map[int]int{}
			}
			last[n] = i
			i += n
		}
	}
	return last
}

// span returns where to go on after the backticks at i: after the code span that they open, if one does.
func span(line string, i int, last map[int]int) int {
	n := ticks(line[i:])
	if last[n] <= i {
		return i + n
	}
	for j := i + n; j < len(line); {
		m := ticks(line[j:])
		if m == n {
			return j + m
		}
		j += max(m, 1)
	}
	return i + n
}

func ticks(s string) int { return len(s) - len(strings.TrimLeft(s, "`")) }

// inline reads the command that the ! at i begins, and says where to go on. "": it begins none.
func inline(line string, i int) (command string, end int) {
	if ticks(line[i+1:]) != 1 {
		return "", i + 1
	}
	from := i + 2
	n := strings.IndexByte(line[from:], '`')
	if n < 0 || ticks(line[from+n:]) != 1 {
		return "", i + 1
	}
	return strings.TrimSpace(line[from : from+n]), from + n + 1
}
