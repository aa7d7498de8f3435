package signin

import (
	"html"
	"slices"
	"strings"
)

// Pages are built of nodes and not from text, so whatever they show is escaped where it is put in. html/template does
// the same and makes the program 2.6 MB larger: it calls methods by name, so the linker keeps all of them.

// A node writes itself.
type node func(*strings.Builder)

// attrs are the attributes of an element, as names and values in turn. One without a value has "". Values are escaped;
// none of them may be an address from outside.
type attrs []string

// void elements have no end, and flowing ones stand within a line.
var (
	voidElements    = []string{"input", "link", "meta", "br"}
	flowingElements = []string{"strong", "span", "code", "a", "button", "option", "br", "legend", "summary", "title"}
)

// el is an element. name is a constant of ours.
func el(name string, with attrs, inside ...node) node {
	return func(b *strings.Builder) {
		b.WriteString("<" + name)
		for i := 0; i+1 < len(with); i += 2 {
			b.WriteString(" " + with[i])
			if with[i+1] != "" {
				b.WriteString(`="` + html.EscapeString(with[i+1]) + `"`)
			}
		}
		b.WriteByte('>')
		for _, n := range inside {
			n(b)
		}
		if !slices.Contains(voidElements, name) {
			b.WriteString("</" + name + ">")
		}
		if !slices.Contains(flowingElements, name) {
			b.WriteByte('\n')
		}
	}
}

// text is text.
func text(s string) node {
	return func(b *strings.Builder) { b.WriteString(html.EscapeString(s)) }
}

// all are several nodes in a row.
func all(nodes ...node) node {
	return func(b *strings.Builder) {
		for _, n := range nodes {
			n(b)
		}
	}
}

// when is yes, or nothing.
func when(ok bool, yes ...node) node {
	if !ok {
		return all()
	}
	return all(yes...)
}

// each is what one makes of every item.
func each[T any](items []T, one func(T) node) node {
	nodes := make([]node, len(items))
	for i, item := range items {
		nodes[i] = one(item)
	}
	return all(nodes...)
}

// Elements that occur often.
func para(inside ...node) node { return el("p", nil, inside...) }
func note(s string) node       { return el("p", attrs{"class", "note"}, text(s)) }
func strong(s string) node     { return el("strong", nil, text(s)) }
func styled(class, s string) node {
	return el("span", attrs{"class", class}, text(s))
}
func hiddenField(name, value string) node {
	return el("input", attrs{"type", "hidden", "name", name}.with("value", value))
}

// with adds an attribute, also an empty one.
func (a attrs) with(name, value string) attrs {
	if value == "" {
		return append(a, name+`=""`, "")
	}
	return append(a, name, value)
}

// row is a term and what it means.
func row(term string, inside ...node) node {
	return all(el("dt", nil, text(term)), el("dd", nil, inside...))
}
