package pages

import (
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// inlineCode writes code in running text.
func (w *writer) inlineCode(n *html.Node) {
	if find(n, atom.Pre) || find(n, atom.Img) || find(n, atom.Math) {
		w.children(n)
		return
	}
	if blockIn(n, 50) && strings.Contains(textOf(n), "\n") && !w.cell && w.flat == 0 {
		w.code(n)
		return
	}
	code := oneLine(textOf(n))
	if code == "" {
		return
	}
	to := ""
	if a := onlyLink(n); a != nil && w.link == 0 {
		to = w.address(attr(a, "href"))
	}
	if blankAt(n, true) {
		w.space = w.begun
	}
	if to != "" {
		w.literal("[" + fenced(code) + "](" + to + ")")
	} else {
		w.literal(fenced(code))
	}
	w.space = w.space || blankAt(n, false)
}

// blankAt says whether the text of code begins, or ends, with white space that belongs between words.
func blankAt(n *html.Node, begin bool) bool {
	text := textOf(n)
	if begin {
		return strings.TrimLeft(text, " \t\n") != text
	}
	return strings.TrimRight(text, " \t\n") != text
}

// onlyLink is the link that is all of an element; nil: it is not one link.
func onlyLink(n *html.Node) *html.Node {
	if c := n.FirstChild; c != nil && c.NextSibling == nil && c.DataAtom == atom.A {
		return c
	}
	return nil
}

// fenced puts backquotes around code, more than it has itself.
func fenced(code string) string {
	fence := strings.Repeat("`", 1+backquotes(code))
	if len(fence) > 1 && (strings.HasPrefix(code, "`") || strings.HasSuffix(code, "`")) {
		code = " " + code + " "
	}
	return fence + code + fence
}

// backquotes is the longest run of them.
func backquotes(code string) (most int) {
	run := 0
	for i := range len(code) {
		if code[i] != '`' {
			run = 0
			continue
		}
		run++
		most = max(most, run)
	}
	return most
}

// code writes a block of code with its language.
func (w *writer) code(n *html.Node) {
	if only := oneCell(n); only != nil { // a table of numbers and lines
		n = only
	}
	var b strings.Builder
	codeText(&b, n)
	code := strings.Trim(strings.ReplaceAll(b.String(), "\r\n", "\n"), "\n")
	if strings.TrimSpace(code) == "" || onlyNumbers(code) && hasCodeBeside(n, strings.Count(code, "\n")) {
		return
	}
	if w.cell || w.flat > 0 {
		w.block()
		if w.flat > 0 {
			code = oneLine(code)
		}
		w.literal(fenced(code))
		w.block()
		return
	}
	fence := strings.Repeat("`", max(3, 1+backquotes(code)))
	w.block()
	w.verbatim(fence + language(n) + "\n" + code + "\n" + fence)
	w.block()
}

// onlyNumbers says whether a text is nothing but the numbers of lines: three or more, each one more than that before.
func onlyNumbers(code string) bool {
	before, count := 0, 0
	for field := range strings.FieldsSeq(code) {
		n, err := strconv.Atoi(field)
		if err != nil || count > 0 && n != before+1 {
			return false
		}
		before = n
		count++
	}
	return count > 2
}

// hasCodeBeside says whether a block of about as many lines of code follows n, in the same element or the next cell.
func hasCodeBeside(n *html.Node, lines int) bool {
	next := after(n)
	if next == nil && n.Parent != nil {
		next = after(n.Parent)
	}
	if next == nil || next.DataAtom != atom.Pre && !find(next, atom.Pre) {
		return false
	}
	more := strings.Count(strings.Trim(textStart(next, 1<<20), "\n"), "\n") - lines
	return -1 <= more && more <= 3 // some begin with an empty line, or with the name of the file
}

// after is the element behind a node; nil: it is the last one.
func after(n *html.Node) *html.Node {
	for n = n.NextSibling; n != nil && n.Type != html.ElementNode; n = n.NextSibling {
	}
	return n
}

// codeText is the text of code. Some pages make lines of elements.
func codeText(b *strings.Builder, n *html.Node) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch {
		case c.Type == html.TextNode:
			b.WriteString(c.Data)
		case c.DataAtom == atom.Br:
			b.WriteByte('\n')
		case c.Type == html.ElementNode && isLine(c):
			if text := b.String(); text != "" && !strings.HasSuffix(text, "\n") {
				b.WriteByte('\n')
			}
			codeText(b, c)
			if text := b.String(); !strings.HasSuffix(text, "\n") {
				b.WriteByte('\n')
			}
		default:
			codeText(b, c)
		}
	}
}

func isLine(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Div, atom.P, atom.Li, atom.Tr:
		return true
	}
	return false
}

func oneCell(n *html.Node) *html.Node {
	if n.DataAtom != atom.Pre {
		return nil
	}
	var cell *html.Node
	var look func(n *html.Node)
	look = func(n *html.Node) {
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			if c.DataAtom == atom.Td && hasClass(c, "code") {
				cell = c
			}
			look(c)
		}
	}
	if find(n, atom.Table) {
		look(n)
	}
	return cell
}

// language is what a block of code says that it is written in; "": nothing that is known.
func language(n *html.Node) string {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if name := spoken(c); name != "" && (c.DataAtom == atom.Code || c.DataAtom == atom.Pre) {
			return name
		}
		if name := inner(c); name != "" {
			return name
		}
	}
	for depth := 0; n != nil && depth < 5; n, depth = n.Parent, depth+1 {
		if name := spoken(n); name != "" {
			return name
		}
		if n.DataAtom == atom.Td || n.DataAtom == atom.Li {
			break
		}
	}
	return ""
}

// inner looks into a pre within a pre.
func inner(n *html.Node) string {
	if n.DataAtom != atom.Pre {
		return ""
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if name := spoken(c); name != "" {
			return name
		}
	}
	return ""
}

// spoken is the language that the attributes of one element name.
func spoken(n *html.Node) string {
	for _, key := range []string{"data-lang", "data-language", "lang"} {
		// lang is a language of people on other elements, and of two letters
		if name := attr(n, key); isName(name) && (key != "lang" || n.DataAtom == atom.Pre && len(name) > 2) {
			return strings.ToLower(name)
		}
	}
	class := attr(n, "class")
	for c := range strings.FieldsSeq(class) {
		for _, lead := range leadClasses {
			if name, ok := strings.CutPrefix(c, lead); ok && isName(name) && !plainNames[name] {
				return strings.ToLower(strings.Split(name, "-")[0])
			}
		}
	}
	if n.DataAtom == atom.Pre && hasClass(n, "rust") { // rustdoc
		return "rust"
	}
	if fields := strings.Fields(class); len(fields) > 1 { // `sourceCode python`, `brush: js`, `hljs go`
		switch fields[0] {
		case "sourceCode", "brush:", "hljs", "prism", "src":
			name := strings.TrimSuffix(strings.TrimPrefix(fields[1], "src-"), ";")
			if isName(name) && !plainNames[name] {
				return strings.ToLower(name)
			}
		}
	}
	return ""
}

// leadClasses begin a class that names a language.
var leadClasses = []string{"language-", "lang-", "highlight-source-", "highlight-text-", "highlight-", "brush:"}

// plainNames are said of code in which nothing is coloured, or are other classes.
var plainNames = map[string]bool{"none": true, "default": true, "plaintext": true, "notranslate": true, "plain": true,
	"source": true, "wrapper": true, "numberlines": true, "table": true, "nohighlight": true, "undefined": true}

func isName(s string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789+#-_."
	return s != "" && len(s) <= 20 && strings.Trim(strings.ToLower(s), letters) == ""
}
