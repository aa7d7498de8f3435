package pages

import (
	"strconv"
	"strings"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Limits of a table. A cell that says it spans more is cut down.
const (
	maxColumns = 40
	maxSpan    = 40
)

// A row is one row of a table.
type row struct {
	cells []*html.Node
	head  bool // all cells are th, or it stands in thead
}

// table writes a table of data as such, and one that only arranges a page as its contents.
func (w *writer) table(n *html.Node) {
	if hasClass(n, "memname") && w.flat == 0 { // Doxygen lays a declaration out in cells
		w.block()
		w.literal(fenced(oneLine(spaced(n))))
		w.block()
		return
	}
	rows, caption := rowsOf(n)
	if w.admonition(rows) {
		return
	}
	if w.cell || w.flat > 0 || layout(n, rows) {
		w.contents(rows, caption)
		return
	}
	w.block()
	if caption != nil {
		w.strongly(caption)
		w.block()
	}
	columns := 0
	grid := make([][]string, 0, len(rows))
	var above []int // rows that a cell still reaches down, by column
	for _, r := range rows {
		line := w.cells(r, &above)
		if columns = max(columns, len(line)); w.full {
			return
		}
		grid = append(grid, line)
	}
	grid, columns = withoutEmpty(grid, columns)
	head := 0
	if len(rows) > 0 && rows[0].head {
		head = 1
	}
	if head == 0 {
		w.tableRow(nil, columns)
	}
	for i, line := range grid {
		if i == head {
			w.verbatim(strings.Repeat("| --- ", columns) + "|")
		}
		if !empty(line) || i < head {
			w.tableRow(line, columns)
		}
	}
	if head == len(grid) {
		w.verbatim(strings.Repeat("| --- ", columns) + "|")
	}
	w.block()
}

// admonition writes a table that Asciidoctor and AsciiDoc make of a note or a warning: an icon, and a text beside it.
// false: it is none.
func (w *writer) admonition(rows []row) bool {
	if len(rows) != 1 || len(rows[0].cells) != 2 || !hasClass(rows[0].cells[0], "icon") {
		return false
	}
	icon, text := rows[0].cells[0], rows[0].cells[1]
	kind := oneLine(textOf(icon))
	if kind == "" {
		if sign := cascadia.Query(icon, iconNamed()); sign != nil {
			kind = oneLine(attr(sign, "alt") + attr(sign, "title"))
		}
	}
	w.block()
	w.within("> ", "> ", func() {
		if kind != "" {
			w.literal("**" + kind + "**")
			w.block()
		}
		w.children(text)
	})
	w.block()
	return true
}

var iconNamed = selector("img[alt], i[title]")

// spaced is the text of a table with blanks between its cells.
func spaced(n *html.Node) string {
	var b strings.Builder
	rows, _ := rowsOf(n)
	for _, r := range rows {
		for _, c := range r.cells {
			writeText(&b, c)
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// withoutEmpty leaves out columns in which no row has anything.
func withoutEmpty(grid [][]string, columns int) ([][]string, int) {
	var used []int
	for i := range columns {
		for _, line := range grid {
			if i < len(line) && line[i] != "" {
				used = append(used, i)
				break
			}
		}
	}
	if len(used) == columns {
		return grid, columns
	}
	for k, line := range grid {
		kept := make([]string, 0, len(used))
		for _, i := range used {
			if i < len(line) {
				kept = append(kept, line[i])
			}
		}
		grid[k] = kept
	}
	return grid, len(used)
}

func empty(line []string) bool { return strings.Join(line, "") == "" }

func (w *writer) tableRow(cells []string, columns int) {
	var b strings.Builder
	b.WriteByte('|')
	for i := range columns {
		b.WriteByte(' ')
		if i < len(cells) && cells[i] != "" {
			b.WriteString(cells[i])
			b.WriteByte(' ')
		}
		b.WriteByte('|')
	}
	w.verbatim(b.String())
}

// cells writes the cells of a row. Where a cell spans columns or rows, the others are empty.
func (w *writer) cells(r row, above *[]int) (line []string) {
	skip := func() {
		for len(line) < len(*above) && (*above)[len(line)] > 0 {
			(*above)[len(line)]--
			line = append(line, "")
		}
	}
	for _, c := range r.cells {
		skip()
		if len(line) >= maxColumns {
			break
		}
		down := span(c, "rowspan") - 1
		for i := range min(span(c, "colspan"), maxColumns-len(line)) {
			for len(*above) <= len(line) {
				*above = append(*above, 0)
			}
			(*above)[len(line)] = down
			text := ""
			if i == 0 {
				text = w.cellText(c)
			}
			line = append(line, text)
		}
	}
	skip()
	return line
}

func span(n *html.Node, key string) int {
	k, err := strconv.Atoi(strings.TrimSpace(attr(n, key)))
	if err != nil || k < 1 {
		return 1
	}
	return min(k, maxSpan)
}

// cellText is the text of a cell on one line.
func (w *writer) cellText(n *html.Node) string {
	c := &writer{base: w.base, out: out{ctx: w.ctx, place: w.place}}
	c.cell, c.flat = true, 0
	if n.DataAtom == atom.Th {
		c.strong++ // it is a head already
	}
	c.children(n)
	w.full = w.full || c.full
	return c.String()
}

// rowsOf are the rows of a table, without those of tables in it.
func rowsOf(n *html.Node) (rows []row, caption *html.Node) {
	var walk func(n *html.Node, head bool)
	walk = func(n *html.Node, head bool) {
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			switch c.DataAtom {
			case atom.Caption:
				caption = c
			case atom.Thead:
				walk(c, true)
			case atom.Tbody, atom.Tfoot:
				walk(c, false)
			case atom.Tr:
				r := row{head: true}
				for d := c.FirstChild; d != nil; d = d.NextSibling {
					if d.DataAtom == atom.Td || d.DataAtom == atom.Th {
						r.cells = append(r.cells, d)
						r.head = r.head && (d.DataAtom == atom.Th || head)
					}
				}
				if len(r.cells) > 0 {
					rows = append(rows, r)
				}
			}
		}
	}
	walk(n, false)
	return rows, caption
}

// layout says of a table that it only arranges: it has one column, or cells that are pages of their own.
func layout(n *html.Node, rows []row) bool {
	if role := attr(n, "role"); role == "presentation" || role == "none" || len(rows) == 0 {
		return true
	}
	columns := 0
	for _, r := range rows {
		columns = max(columns, len(r.cells))
	}
	if columns < 2 {
		return true
	}
	for _, r := range rows {
		for _, c := range r.cells {
			if find(c, atom.Table) || find(c, atom.Pre) || find(c, atom.H1) || find(c, atom.H2) {
				return true
			}
		}
	}
	return false
}

// contents writes cells one below the other; short ones of a row stand beside each other.
func (w *writer) contents(rows []row, caption *html.Node) {
	w.block()
	if caption != nil {
		w.strongly(caption)
		w.block()
	}
	for _, r := range rows {
		for _, c := range r.cells {
			if hasClass(c, "linenos") || hasClass(c, "gutter") || w.full {
				continue
			}
			if blockIn(c, 100) {
				w.block()
				w.children(c)
				w.block()
			} else {
				w.space = w.begun
				w.children(c)
			}
		}
		w.line()
	}
	w.block()
}
