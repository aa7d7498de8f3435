// Package patch reads patches in the form that models of some makers are trained to write (V4A): files that are added,
// deleted, moved or updated, the latter by hunks of whole lines that name their place by context instead of numbers.
//
//	*** Begin Patch
//	*** Update File: PATH
//	*** Move to: NEW
//	@@ func f() {
//	 	x := 1
//	-	y := 2
//	+	y := 3
//	*** Add File: PATH
//	+hello
//	*** Delete File: PATH
//	*** End Patch
//
// It is pure: it knows no disk, and does not say whether a patch fits. A patch without its end is refused: a model that
// ran out of room would otherwise have half of its work done.
package patch

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// An Action is what a patch does with a file. The zero value is none.
type Action int

// The actions.
const (
	Update Action = iota + 1
	Add
	Delete
)

// A Section is one file of a patch.
type Section struct {
	Path    string // as it stands there; never empty
	Action  Action
	To      string // of an Update: its new path; "": it stays
	Content string // of an Add: all of it; each line has its end
	Hunks   []Hunk // of an Update: one at least, unless the file moves
}

// A Hunk replaces whole lines, or inserts some. Lines are without their ends.
type Hunk struct {
	Line  int      // of the patch, from 1, where it begins
	Under []string // lines that stand before it (@@), in order; none is empty
	Old   []string // to replace, with the lines around them; empty: New is only inserted
	New   []string // in their place, with the same lines around them
	AtEnd bool     // Old are the last lines of the file
}

// The lines that give a patch its parts.
const (
	begin     = "*** Begin Patch"
	end       = "*** End Patch"
	update    = "*** Update File: "
	add       = "*** Add File: "
	remove    = "*** Delete File: "
	moveTo    = "*** Move to: "
	endOfFile = "*** End of File"
	under     = "@@"
)

// A FormError says at which line of a patch, from 1, its form is wrong. Its text is for the model.
type FormError struct {
	Line int
	Text string
}

// Error has the line, unless it is that of the whole patch.
func (e *FormError) Error() string {
	if e.Line == 0 {
		return e.Text
	}
	return fmt.Sprintf("line %d of the patch: %s", e.Line, e.Text)
}

// Parse reads a patch with one file at least. Line ends may be \r\n, which count as \n. The error is a *FormError.
func Parse(text string) ([]Section, error) {
	p := &parser{lines: body(strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n"))}
	p.skipEmpty()
	if strings.TrimSpace(p.peek()) != begin {
		return nil, &FormError{0, "the patch must begin with a line \"" + begin + "\""}
	}
	p.at++
	var files []Section
	for {
		p.skipEmpty()
		if p.done() {
			return nil, &FormError{0, "the patch has no line \"" + end + "\": it may have been cut off; send all of it"}
		}
		if strings.TrimSpace(p.peek()) == end {
			p.at++
			break
		}
		f, err := p.file()
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	if p.skipEmpty(); !p.done() {
		return nil, p.wrong("nothing may follow \"" + end + "\"")
	}
	if len(files) == 0 {
		return nil, &FormError{0, "the patch names no file"}
	}
	return files, nil
}

// heredoc is the first line of a patch that was meant for a shell.
var heredoc = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\s*(?:apply_?patch\s*)?<<-?\s*(['"]?)(\w+)['"]?\s*$`)
})

// body is a patch without what some models put around it: a here-document of the shell, or a fence of Markdown.
func body(lines []string) []string {
	for len(lines) > 0 && strings.TrimSpace(lines[0]) == "" {
		lines = lines[1:]
	}
	for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
		lines = lines[:len(lines)-1]
	}
	if len(lines) < 2 {
		return lines
	}
	last := strings.TrimSpace(lines[len(lines)-1])
	if m := heredoc().FindStringSubmatch(lines[0]); m != nil && last == m[2] {
		return lines[1 : len(lines)-1]
	}
	if strings.HasPrefix(lines[0], "```") && last == "```" {
		return lines[1 : len(lines)-1]
	}
	return lines
}

type parser struct {
	lines []string
	at    int
}

func (p *parser) done() bool { return p.at >= len(p.lines) }

// peek is the line that comes next; "": there is none.
func (p *parser) peek() string {
	if p.done() {
		return ""
	}
	return p.lines[p.at]
}

func (p *parser) skipEmpty() {
	for !p.done() && strings.TrimSpace(p.peek()) == "" {
		p.at++
	}
}

func (p *parser) wrong(text string) error { return &FormError{p.at + 1, text} }

// header says whether the next line begins a section, or ends the patch.
func (p *parser) header() bool {
	line := p.peek()
	for _, h := range []string{update, add, remove} {
		if strings.HasPrefix(line, strings.TrimSuffix(h, " ")) {
			return true
		}
	}
	return strings.TrimRight(line, " \t") == end
}

// path cuts what follows a header.
func (p *parser) path(line, header string) (string, bool) {
	rest, ok := strings.CutPrefix(line, strings.TrimSuffix(header, " "))
	return strings.TrimSpace(rest), ok
}

func (p *parser) file() (Section, error) {
	line := p.peek()
	for header, action := range map[string]Action{update: Update, add: Add, remove: Delete} {
		path, ok := p.path(line, header)
		if !ok {
			continue
		}
		if path == "" {
			return Section{}, p.wrong("the path is missing")
		}
		p.at++
		f := Section{Path: path, Action: action}
		switch action {
		case Add:
			return f, p.content(&f)
		case Update:
			return f, p.updated(&f)
		}
		return f, nil
	}
	return Section{}, p.wrong(fmt.Sprintf("%.80q is no header; there are \"%sPATH\", \"%sPATH\" and \"%sPATH\"", line,
		update, add, remove))
}

// content reads the lines of a new file.
func (p *parser) content(f *Section) error {
	var b strings.Builder
	for !p.done() && !p.header() {
		line, ok := strings.CutPrefix(p.peek(), "+")
		if !ok {
			p.skipEmpty()
			if p.done() || p.header() {
				break
			}
			return p.wrong("each line of a new file must begin with +")
		}
		b.WriteString(line + "\n")
		p.at++
	}
	f.Content = b.String()
	return nil
}

func (p *parser) updated(f *Section) error {
	if to, ok := p.path(p.peek(), moveTo); ok {
		if to == "" {
			return p.wrong("the path is missing")
		}
		f.To = to
		p.at++
	}
	p.skipEmpty()
	for !p.done() && !p.header() {
		h, err := p.hunk(len(f.Hunks) == 0)
		if err != nil {
			return err
		}
		f.Hunks = append(f.Hunks, h)
	}
	if len(f.Hunks) == 0 && f.To == "" {
		return p.wrong("the update of " + f.Path + " has no hunk: give lines that begin with a space, - or +")
	}
	return nil
}

// numbers are what a unified diff has behind its @@, which says nothing here; more may follow it.
var numbers = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^-\d+(?:,\d+)? \+\d+(?:,\d+)? @@ ?`) })

// hunk reads lines of context (@@), which the first hunk of a file may leave out, and then its lines.
func (p *parser) hunk(first bool) (Hunk, error) {
	h := Hunk{Line: p.at + 1}
	started := first
	for strings.HasPrefix(p.peek(), under) {
		started = true
		line := strings.TrimPrefix(p.peek(), under)
		line = strings.TrimSpace(numbers().ReplaceAllString(strings.TrimPrefix(line, " "), ""))
		if line != "" {
			h.Under = append(h.Under, line)
		}
		p.at++
	}
	if !started {
		return h, p.wrong("a hunk must begin with @@")
	}
	changes, empty := false, 0 // lines without even a space at the end of the hunk
	for !p.done() && !p.header() && !strings.HasPrefix(p.peek(), under) {
		line := p.peek()
		if strings.TrimRight(line, " \t") == endOfFile {
			h.AtEnd = true
			p.at++
			p.skipEmpty()
			break
		}
		sign, rest := byte(' '), ""
		if line != "" {
			sign, rest = line[0], line[1:]
		}
		switch sign {
		case ' ':
			h.Old, h.New = append(h.Old, rest), append(h.New, rest)
		case '-':
			h.Old, changes = append(h.Old, rest), true
		case '+':
			h.New, changes = append(h.New, rest), true
		default:
			return h, p.wrong(fmt.Sprintf("%.80q must begin with a space (context), - (removed) or + (added)", line))
		}
		if empty++; line != "" {
			empty = 0
		}
		p.at++
	}
	// What parts sections is no line of the file.
	h.Old, h.New = h.Old[:len(h.Old)-empty], h.New[:len(h.New)-empty]
	switch {
	case !changes:
		return h, &FormError{h.Line, "the hunk changes nothing: it has no line that begins with - or +"}
	case len(h.Old) == 1 && h.Old[0] == "":
		return h, &FormError{h.Line, "an empty line alone does not say where the hunk belongs; add lines around it"}
	}
	return h, nil
}
