package pages

import (
	"strings"

	"golang.org/x/net/html"
)

// formula writes a formula as TeX.
func (w *writer) formula(tex string, display bool) {
	if tex == "" {
		return
	}
	tex = oneLine(tex)
	if display && w.flat == 0 && !w.cell {
		w.block()
		w.literal("$$" + tex + "$$")
		w.block()
		return
	}
	w.literal("$" + tex + "$")
}

// math writes MathML: as the TeX that it was made of, else in a linear form.
func (w *writer) math(n *html.Node) {
	tex := annotation(n)
	if tex == "" {
		tex = texOf(attr(n, "alttext"))
	}
	if tex == "" {
		tex = linear(n)
	}
	w.formula(tex, attr(n, "display") == "block")
}

// texOf takes off what some pages put around all TeX.
func texOf(tex string) string {
	tex = strings.TrimSpace(tex)
	for _, lead := range []string{`{\displaystyle`, `{\textstyle`} {
		if inner, ok := strings.CutPrefix(tex, lead); ok {
			if inner, ok := strings.CutSuffix(inner, "}"); ok {
				return strings.TrimSpace(inner)
			}
		}
	}
	return strings.Trim(tex, "$")
}

// annotation is the TeX that a formula brings along.
func annotation(n *html.Node) string {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Data == "annotation" && strings.Contains(attr(c, "encoding"), "tex") {
			return texOf(textOf(c))
		}
		if tex := annotation(c); tex != "" {
			return tex
		}
	}
	return ""
}

// linear writes MathML on one line.
func linear(n *html.Node) string {
	if n.Type == html.TextNode {
		return strings.TrimSpace(n.Data)
	}
	var parts []string
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Data != "annotation" && c.Data != "annotation-xml" {
			if part := linear(c); part != "" {
				parts = append(parts, part)
			}
		}
	}
	group := func(i int) string {
		if i >= len(parts) {
			return ""
		}
		if p := parts[i]; len([]rune(p)) > 1 {
			return "(" + p + ")"
		}
		return parts[i]
	}
	switch n.Data {
	case "msup", "mover":
		return group(0) + "^" + group(1)
	case "msub", "munder":
		return group(0) + "_" + group(1)
	case "msubsup", "munderover":
		return group(0) + "_" + group(1) + "^" + group(2)
	case "mfrac":
		return group(0) + "/" + group(1)
	case "msqrt":
		return "sqrt(" + strings.Join(parts, " ") + ")"
	case "mroot":
		return group(0) + "^(1/" + group(1) + ")"
	}
	return strings.Join(parts, " ")
}
