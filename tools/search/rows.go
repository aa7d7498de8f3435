package search

import "strconv"

// A RowForm says how Rows writes hits.
type RowForm struct {
	Name   func(path string) string // of a file as it is shown
	Show   func(text string) string // makes text safe to show
	Bare   bool                     // without line numbers
	Parts  bool                     // matched parts instead of lines, one per row
	Groups bool                     // lines that do not follow each other are parted by --
	Once   bool                     // the name of a single file stands once, above its numbered lines
}

// Rows writes hits of mode Lines as grep does: path:line:text, and path-line-text for context.
func Rows(files []FileHits, f RowForm) []string {
	var rows []string
	if f.Once && !f.Bare && len(files) == 1 && len(files[0].Lines) > 1 {
		named := f.Name
		f.Name = func(string) string { return "" }
		rows = append(rows, named(files[0].Path))
	}
	for _, file := range files {
		name := f.Name(file.Path)
		if file.Binary {
			rows = append(rows, "Binary file "+name+" matches")
			continue
		}
		for i, l := range file.Lines {
			if f.Groups && len(rows) > 0 && (i == 0 && name != "" || i > 0 && file.Lines[i-1].N+1 != l.N) {
				rows = append(rows, "--")
			}
			for _, text := range f.texts(l) {
				rows = append(rows, f.row(name, l, text))
			}
		}
	}
	return rows
}

// NShown is how many of the lines are matches, not context.
func (h FileHits) NShown() int {
	n := 0
	for _, l := range h.Lines {
		if !l.Context {
			n++
		}
	}
	return n
}

// texts is what a line shows: itself, or the parts of it that matched.
func (f RowForm) texts(l Line) []string {
	if f.Parts && !l.Context {
		texts := make([]string, len(l.Spans))
		for i, s := range l.Spans {
			texts[i] = f.Show(l.Text[s.From:s.To])
		}
		return texts
	}
	text := f.Show(l.Text)
	if l.Cut {
		text += " [... cut]"
	}
	if l.Cut && l.From > 0 {
		text = "[... cut] " + text
	}
	return []string{text}
}

func (f RowForm) row(name string, l Line, text string) string {
	sep := ":"
	if l.Context {
		sep = "-"
	}
	switch {
	case f.Bare:
		return name + sep + text
	case name == "":
		return strconv.Itoa(l.N) + sep + text
	}
	return name + sep + strconv.Itoa(l.N) + sep + text
}
