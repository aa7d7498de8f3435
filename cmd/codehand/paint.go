package main

import (
	"bytes"
	"io"
	"os"
	"strings"
	"sync"

	"codehand/tools/results"
)

// shows says that w is a terminal, where a person looks on.
func shows(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isTerminal(f)
}

// colours says whether what is written to w has colours.
func colours(w io.Writer) bool {
	return shows(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

const red, green, cyan, bold, plain = "\x1b[31m", "\x1b[32m", "\x1b[36m", "\x1b[1m", "\x1b[0m"

// A painter colours the lines of diffs in a text, one after the other.
type painter struct{ inside bool } // a hunk has begun

// line is a line without its end, coloured if it is part of a hunk.
func (p *painter) line(line string) string {
	colour := ""
	switch {
	case strings.HasPrefix(line, "@@ "):
		p.inside, colour = true, cyan
	case !p.inside:
	case strings.HasPrefix(line, "+"):
		colour = green
	case strings.HasPrefix(line, "-"):
		colour = red
	default:
		p.inside = strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\\")
	}
	if colour == "" {
		return line
	}
	return colour + line + plain
}

// paint colours the diffs in a text for standard output, if a person looks on.
func (t *terminal) paint(text string) string {
	if !colours(t.out) {
		return text
	}
	var p painter
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = p.line(line)
	}
	return strings.Join(lines, "\n")
}

// A live is an output that is shown while the command prints it. nil: nothing is shown before the end.
type live struct {
	out     io.Writer
	colours bool

	mu      sync.Mutex // covers what follows
	painter painter
	part    []byte // of a line
	shown   bool   // something was
}

// watch shows what commands print on standard output as it comes, if a person looks on.
func watch(t *terminal) *live {
	if !shows(t.out) {
		return nil
	}
	l := &live{out: t.out, colours: colours(t.out)}
	t.echo = l
	return l
}

// Write shows whole lines. A CR ends one, too: what overwrites itself is shown as it grows.
func (l *live) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.part = append(l.part, p...)
	for {
		end := bytes.IndexAny(l.part, "\n\r")
		if end < 0 {
			return len(p), nil
		}
		line, ended := string(l.part[:end]), l.part[end]
		l.part = l.part[end+1:]
		if err := l.show(line, ended); err != nil {
			return len(p), err
		}
	}
}

// show writes one line. What a terminal would obey is taken out, as in what models read.
func (l *live) show(line string, ended byte) error {
	line = results.Clean(line)
	if l.colours {
		line = l.painter.line(line)
	}
	l.shown = true
	_, err := io.WriteString(l.out, line+string(ended))
	return err
}

// rest is what of a result was not shown yet: our own lines, if the command has printed anything.
func (l *live) rest(text string) string {
	if l == nil {
		return text
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.part) > 0 {
		_ = l.show(string(l.part), '\n')
		l.part = nil
	}
	if !l.shown {
		return text
	}
	var ours []string
	for line := range strings.SplitSeq(text, "\n") {
		// A line of a program that looks like one of ours has a backslash before it in results.
		if results.Disown(line) != line && line[0] != '\\' && line != "Stdout:" && line != "Stderr:" &&
			!strings.HasPrefix(line, "[... ") && !strings.Contains(line, " progress states overwritten] ") {
			ours = append(ours, line)
		}
	}
	return strings.Join(ours, "\n")
}
