package pages

import (
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// maxDepth bounds the recursion; the parser allows 512.
const maxDepth = 600

// blocks are elements that begin and end a line.
var blocks = func() map[string]bool {
	m := map[string]bool{}
	for name := range strings.FieldsSeq("address article aside blockquote body center dd details dialog dir div dl " +
		"dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr legend li main menu nav ol " +
		"optgroup option p pre search section summary table tbody td tfoot th thead tr ul caption") {
		m[name] = true
	}
	return m
}()

// children writes what is below a node.
func (w *writer) children(n *html.Node) {
	if w.depth > maxDepth {
		return
	}
	w.depth++
	for c := n.FirstChild; c != nil && !w.full; c = c.NextSibling {
		w.node(c)
	}
	w.depth--
}

// node writes a node.
func (w *writer) node(n *html.Node) {
	if w.stop() {
		return
	}
	if n.Type == html.TextNode {
		w.text(n.Data)
		return
	}
	if n.Type != html.ElementNode {
		return
	}
	switch n.DataAtom {
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		w.heading(n, int(n.Data[1]-'0'))
	case atom.Ul, atom.Ol, atom.Menu, atom.Dir:
		w.list(n)
	case atom.Pre, atom.Listing, atom.Xmp, atom.Plaintext:
		w.code(n)
	case atom.Table:
		w.table(n)
	case atom.Blockquote:
		w.block()
		w.within("> ", "> ", func() { w.children(n) })
		w.block()
	case atom.Dl:
		w.definitions(n)
	case atom.Hr:
		w.block()
		w.literal("---")
		w.block()
	case atom.Summary:
		w.block()
		w.strongly(n)
		w.block()
	default:
		switch {
		case n.DataAtom == atom.Div && hasClass(n, "fragment"): // Doxygen
			w.code(n)
		case n.DataAtom == atom.Span && hasClass(n.Parent, "t-lines"): // cppreference: each is a line
			w.children(n)
			w.space = w.begun
		case n.DataAtom == atom.Div && hasClass(n, "title") && hasClass(n.Parent, "headertitle"): // Doxygen
			w.heading(n, 1)
		case w.inlineNode(n):
		case blocks[n.Data]:
			w.block()
			w.children(n)
			w.block()
		default:
			w.children(n)
		}
	}
}

// inlineNode writes an element of running text; false: it is none that has a form of its own.
func (w *writer) inlineNode(n *html.Node) bool {
	switch n.DataAtom {
	case atom.A:
		w.anchor(n)
	case atom.Img:
		w.image(n)
	case atom.Br:
		w.breakLine()
	case atom.B, atom.Strong:
		w.strongly(n)
	case atom.I, atom.Em, atom.Cite, atom.Dfn:
		w.emphatically(n)
	case atom.S, atom.Del, atom.Strike:
		w.marked("~~", "~~", func() { w.children(n) })
	case atom.Code, atom.Kbd, atom.Samp, atom.Tt:
		w.inlineCode(n)
	case atom.Sup:
		w.raised("^", n)
	case atom.Sub:
		w.raised("_", n)
	case atom.Q:
		w.marked("“", "”", func() { w.children(n) })
	case atom.Rt:
		w.marked("(", ")", func() { w.children(n) })
	case atom.Rp, atom.Noscript, atom.Video, atom.Audio, atom.Title:
	case atom.Input:
		w.checkbox(n)
	case atom.Script: // only formulas are left
		w.formula(strings.TrimSpace(textOf(n)), strings.Contains(attr(n, "type"), "display"))
	case atom.Math:
		w.math(n)
	default:
		return false
	}
	return true
}

func (w *writer) heading(n *html.Node, level int) {
	w.block()
	sign := strings.Repeat("#", level) + " "
	if w.cell || w.flat > 0 {
		w.strongly(n)
	} else {
		w.flat++
		w.strong++ // a heading is strong already
		w.marked(sign, "", func() { w.children(n) })
		w.strong--
		w.flat--
	}
	w.block()
}

func (w *writer) strongly(n *html.Node) {
	if w.strong > 0 || blockIn(n, 50) {
		w.children(n)
		return
	}
	w.strong++
	w.marked("**", "**", func() { w.children(n) })
	w.strong--
}

func (w *writer) emphatically(n *html.Node) {
	if w.em > 0 || blockIn(n, 50) {
		w.children(n)
		return
	}
	w.em++
	w.marked("*", "*", func() { w.children(n) })
	w.em--
}

// raised writes an index or exponent; a reference to a note stays as it is.
func (w *writer) raised(sign string, n *html.Node) {
	text := textStart(n, 40)
	if w.link > 0 && strings.TrimSpace(text) != "" && strings.Trim(text, "↗⧉🔗\uFE0E\uFE0F ") == "" {
		w.space = false
		return // it says that the link leaves the site
	}
	if len(text) > 12 || strings.ContainsAny(text, "[ ") || strings.TrimSpace(text) == "" {
		w.children(n)
		return
	}
	w.marked(sign, "", func() { w.children(n) })
}

func (w *writer) breakLine() {
	if w.begun || w.flat > 0 {
		w.line()
		return
	}
	w.block()
}

func (w *writer) checkbox(n *html.Node) {
	mark := "[ ]"
	for _, a := range n.Attr {
		if a.Key == "checked" {
			mark = "[x]"
		}
	}
	w.literal(mark)
	w.space = true
}

// anchor writes a link with its whole address. What leads nowhere else is its text alone.
func (w *writer) anchor(n *html.Node) {
	to := w.address(attr(n, "href"))
	if to == "" && attr(n, "href") != "" && onlySigns(textOf(n)) {
		return // it marks a heading, or leads back from a note
	}
	if to == "" || w.link > 0 {
		w.children(n)
		return
	}
	w.link++
	defer func() { w.link-- }()
	if blockIn(n, 200) && (find(n, atom.Pre) || find(n, atom.Table) || find(n, atom.Ul)) {
		w.children(n)
		w.line()
		w.literal("<" + to + ">")
		w.block()
		return
	}
	card := blockIn(n, 200)
	if card {
		w.block()
	}
	w.flat++
	w.marked("[", "]("+to+")", func() { w.children(n) })
	w.flat--
	if card {
		w.block()
	}
}

// onlySigns says whether a text is no more than the sign of an anchor.
func onlySigns(text string) bool {
	text = strings.TrimSpace(text)
	return text != "" && strings.Trim(text, "#¶§🔗↩↑^[]−\uFE0E\uFE0F\u200B ") == ""
}

// address is an address for a person or a fetch; "": there is none, or it is a place of this page.
func (w *writer) address(href string) string {
	href = strings.TrimSpace(href)
	if href == "" || href[0] == '#' || len(href) > 2000 {
		return ""
	}
	u, err := w.base.Parse(href)
	if err != nil {
		return ""
	}
	switch u.Scheme {
	case "http", "https", "mailto", "ftp":
	default:
		return ""
	}
	if u.Fragment != "" {
		page, here := *u, *w.base
		page.Fragment, page.RawFragment, here.Fragment, here.RawFragment = "", "", "", ""
		if page.String() == here.String() {
			return ""
		}
	}
	to := u.String()
	if strings.Count(to, "(") != strings.Count(to, ")") {
		to = strings.NewReplacer("(", "%28", ")", "%29").Replace(to)
	}
	return to
}

// image writes what an image shows. One without a text is decoration, or counts visitors.
func (w *writer) image(n *html.Node) {
	alt := oneLine(attr(n, "alt"))
	if alt == "" {
		alt = oneLine(attr(n, "title"))
	}
	if alt == "" {
		return
	}
	if class := attr(n, "class"); strings.Contains(class, "math") || class == "tex" {
		w.formula(texOf(alt), strings.Contains(class, "display"))
		return
	}
	src := attr(n, "src")
	if src == "" || strings.HasPrefix(src, "data:") {
		src = attr(n, "data-src")
	}
	alt = strings.NewReplacer("[", `\[`, "]", `\]`).Replace(alt)
	to := w.address(src)
	if to == "" || w.link > 0 {
		w.literal("![" + alt + "]")
		return
	}
	w.literal("![" + alt + "](" + to + ")")
}

func (w *writer) list(n *html.Node) {
	nested := w.inList > 0
	if nested || w.cell {
		w.line()
	} else {
		w.block()
	}
	w.inList++
	number, _ := strconv.Atoi(attr(n, "start"))
	if number < 1 || number > 1_000_000 {
		number = 1
	}
	for c := n.FirstChild; c != nil && !w.full; c = c.NextSibling {
		if c.Type != html.ElementNode {
			w.node(c)
			continue
		}
		mark := "- "
		if n.DataAtom == atom.Ol {
			mark = strconv.Itoa(number) + ". "
		}
		if c.DataAtom != atom.Li {
			w.within("  ", "  ", func() { w.node(c) }) // a list that lies between the items instead of in one
			continue
		}
		number++
		w.line()
		w.within(mark, strings.Repeat(" ", len(mark)), func() { w.item(c) })
		w.line()
		if !loose(c) {
			w.lines = min(w.lines, 1)
		}
	}
	w.inList--
	if nested {
		w.line()
	} else {
		w.block()
	}
}

func (w *writer) item(n *html.Node) {
	w.children(n)
}

// loose says whether an item has several blocks besides lists, so that empty lines belong between items.
func loose(n *html.Node) bool {
	count := 0
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch c.DataAtom {
		case atom.P, atom.Pre, atom.Table, atom.Blockquote:
			count++
		}
	}
	return count > 1
}

// definitions writes terms, each on a line, and what they mean behind a colon.
func (w *writer) definitions(n *html.Node) {
	w.block()
	for c := n.FirstChild; c != nil && !w.full; c = c.NextSibling {
		switch {
		case c.DataAtom == atom.Dt:
			if prev := before(c); prev == nil || prev.DataAtom != atom.Dt {
				w.block()
			} else {
				w.line()
			}
			if hasClass(c, "sig") && !find(c, atom.Table) {
				w.literal(fenced(oneLine(textOf(c))))
			} else {
				w.strongly(c)
			}
			w.line()
		case c.DataAtom == atom.Dd:
			w.line()
			w.within(": ", "  ", func() { w.children(c) })
			w.line()
		case c.DataAtom == atom.Div: // groups
			w.definitions(c)
		default:
			w.node(c)
		}
	}
	w.block()
}

// before is the element in front of a node; nil: it is the first one.
func before(n *html.Node) *html.Node {
	for n = n.PrevSibling; n != nil && n.Type != html.ElementNode; n = n.PrevSibling {
	}
	return n
}

// blockIn says whether one of the first most nodes below n begins a line.
func blockIn(n *html.Node, most int) bool {
	var look func(n *html.Node) bool
	look = func(n *html.Node) bool {
		for c := n.FirstChild; c != nil && most > 0; c = c.NextSibling {
			if most--; c.Type == html.ElementNode && (blocks[c.Data] || look(c)) {
				return true
			}
		}
		return false
	}
	return look(n)
}

// find says whether one of the first nodes below n is such an element.
func find(n *html.Node, a atom.Atom) bool {
	most := 2000
	var look func(n *html.Node) bool
	look = func(n *html.Node) bool {
		for c := n.FirstChild; c != nil && most > 0; c = c.NextSibling {
			if most--; c.DataAtom == a || look(c) {
				return true
			}
		}
		return false
	}
	return look(n)
}

func hasClass(n *html.Node, name string) bool {
	for c := range strings.FieldsSeq(attr(n, "class")) {
		if c == name {
			return true
		}
	}
	return false
}

// textOf is the text below a node as it stands there.
func textOf(n *html.Node) string {
	var b strings.Builder
	writeText(&b, n)
	return b.String()
}

// textStart is the text below a node, of which no more than about most bytes matter: elements may lie within others
// hundreds deep, and each may look at its text.
func textStart(n *html.Node, most int) string {
	var b strings.Builder
	var look func(n *html.Node)
	look = func(n *html.Node) {
		if n.Type == html.TextNode {
			b.WriteString(n.Data[:min(len(n.Data), most)])
		}
		for c := n.FirstChild; c != nil && b.Len() < most; c = c.NextSibling {
			look(c)
		}
	}
	look(n)
	return b.String()
}

func writeText(b *strings.Builder, n *html.Node) {
	if n.Type == html.TextNode {
		b.WriteString(n.Data)
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		writeText(b, c)
	}
}
