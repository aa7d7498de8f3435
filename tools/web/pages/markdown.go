package pages

import (
	"context"
	"net/url"
	"strings"

	"golang.org/x/net/html"
)

// fromHTML makes Markdown of a page.
func fromHTML(ctx context.Context, text string, base *url.URL) (Doc, error) {
	tree, note, err := parse(ctx, text)
	if err != nil {
		if context.Cause(ctx) != nil {
			return Doc{}, err
		}
		text, err := plain(ctx, text)
		return Doc{Form: "text", Text: text, Note: "the page is nested too deep; this is its text without form"}, err
	}
	d := Doc{Form: "markdown", Note: note}
	base = baseOf(tree, base)
	f := content(ctx, tree)
	d.Title = f.title
	w := &writer{base: base, out: out{ctx: ctx}}
	w.b.Grow(min(len(text)/2, maxOutput)) // most pages need less
	if f.heading != "" && len(f.nodes) > 0 {
		w.block()
		w.literal("# " + f.heading)
	}
	for _, n := range f.nodes {
		w.block()
		w.node(n)
		w.block()
	}
	if err := context.Cause(ctx); err != nil {
		return Doc{}, err
	}
	if w.full {
		d.Note = "the page was too long to be written to its end"
	}
	d.Text = w.String()
	if words := wordsIn(d.Text); f.scripts && words < 25 {
		d.Note = "the page has hardly any text of its own: scripts make it in a browser, and they are not run here"
		if f.about != "" && !strings.Contains(d.Text, f.about) {
			d.Text = strings.TrimSpace(d.Text + "\n\n" + f.about)
		}
	}
	if d.Text == "" && f.title != "" && f.scripts {
		d.Text = "# " + f.title
	}
	return d, nil
}

// baseOf is what links of a page are relative to: its address, or what it says itself.
func baseOf(doc *html.Node, base *url.URL) *url.URL {
	if base == nil {
		base = &url.URL{}
	}
	var find func(n *html.Node, depth int) string
	find = func(n *html.Node, depth int) string {
		for c := n.FirstChild; c != nil && depth < 4; c = c.NextSibling {
			if c.Type == html.ElementNode && c.Data == "base" {
				return attr(c, "href")
			}
			if href := find(c, depth+1); href != "" {
				return href
			}
		}
		return ""
	}
	if href := find(doc, 0); href != "" {
		if u, err := base.Parse(strings.TrimSpace(href)); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
			return u
		}
	}
	return base
}
