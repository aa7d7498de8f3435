package pages

import (
	"context"
	"strings"
	"sync"
	"unicode"

	"github.com/PuerkitoBio/goquery"
	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// landmarks are where generators of pages put the main text, the most precise first. All elements that one of them
// finds are the text together.
var landmarks = selectors(
	"article.markdown-body", "#readme .markdown-body", ".markdown-body", // code hosts
	"article.md-content__inner", "div.md-content article", // MkDocs
	".theme-doc-markdown", "article .markdown", // Docusaurus
	"[itemprop=articleBody]", "div[role=main] div.body", "div.body[role=main]",
	"div.documentwrapper div.body",                    // Sphinx
	"#mw-content-text",                                // MediaWiki
	"section#main-content", "#main-content .docblock", // rustdoc
	"div.headertitle, div.contents", "#doc-content", // Doxygen
	".Documentation-content", ".UnitReadme-content", // Go
	"div.manual-text", // mandoc
	"body.manpage > #header, body.manpage > #content", // AsciiDoc
	"#apicontent", ".vp-doc", ".book-body", ".sl-markdown-content", // Node.js, VitePress, GitBook, Starlight
	"main", "[role=main]", "article", "#main-content", "#main_content", "#content", "#main", "#bodyContent",
	".post-content", ".entry-content", ".article-body", ".article-content", ".post-body", ".page-content", ".content",
)

// never are elements that are no text, wherever they stand.
var never = selector(strings.Join([]string{
	"script", "style", "template", "svg", "canvas", "iframe", "object", "embed", "applet", "frameset", "head",
	"link", "button", "select", "textarea", "input:not([type=checkbox])", "datalist", "progress", "map",
	"dialog:not([open])", "[hidden]:not([hidden=until-found])", "[aria-hidden=true]:not(img)",
	"[style*='display:none']", "[style*='display: none']", "[style*='visibility:hidden']",
	"[style*='visibility: hidden']", "[role=dialog]", "[role=alertdialog]", "[role=navigation]",
	"[role=search]", "[role=menu]", "[role=menubar]", "[role=tablist]", "[role=banner]", "[role=contentinfo]",
	"nav", ".mw-editsection", ".mw-jump-link", ".mw-indicators", ".noprint", ".navbox", ".printfooter", "#toc",
	"#catlinks", ".catlinks", "a.headerlink", "a.anchor", "a.anchorjs-link", "a.hash-link", "a.header-anchor",
	"a.doc-anchor", ".sr-only-focusable", ".skip-link", ".skip-to-content", "a.skip", ".linenos", ".lineno",
	".line-numbers-rows", ".gutter", "summary.hideme", ".clipboard-copy", ".copybtn", ".hljs-copy",
	".visually-hidden", ".screen-reader-text", "div.navheader", "div.navfooter", "table.navigation",
	"a.previous_page", "a.next_page", "footer#edit",
	"#toggle-all-docs", "pre a[data-nosnippet]", // rustdoc: what folds a page, numbers of lines
	"a.inheritanceTree", "a.summary_toggle", "a.constants_summary_toggle", // YARD
	".t-navbar", // cppreference
}, ","))

// frame are elements around the text of a page without landmarks.
var frame = selector("body > header:not(#title-block-header), body > footer, body > div > header, " +
	"body > div > footer, body > aside, body > div > aside, footer.footer, footer.site-footer, header.site-header, " +
	"#header:not(article *), #footer, .site-footer, .site-header")

// holdsText finds what never stands in a frame.
var holdsText = selector("main, article, pre")

// banners are words in a class or an id that mean what visitors are asked to agree to, to buy or to share.
var banners = []string{
	"cookie", "consent", "gdpr", "ccpa", "onetrust", "cookiebot", "cc-window", "cc-banner", "newsletter",
	"subscribe", "paywall", "popup", "modal", "advert", "advertisement", "ad-slot", "adsbygoogle", "sponsor",
	"social-share", "share-buttons", "sharing", "related-posts", "related-articles", "recommended",
	"breadcrumb", "breadcrumbs", "pagination", "pagination-nav", "sidebar", "side-bar", "sphinxsidebar",
	"table-of-contents", "table_of_contents", "toc", "menu", "navbar", "nav", "navigation", "topbar", "skiplink",
	"edit-this-page", "edit-page", "feedback", "announcement", "announcement-bar", "promo", "banner", "masthead",
	"signup",
	"login-prompt",
}

// selector is compiled when it is first needed: most processes never see a page.
func selector(text string) func() cascadia.Selector {
	return sync.OnceValue(func() cascadia.Selector { return cascadia.MustCompile(text) })
}

func selectors(list ...string) func() []cascadia.Selector {
	return sync.OnceValue(func() (all []cascadia.Selector) {
		for _, s := range list {
			all = append(all, cascadia.MustCompile(s))
		}
		return all
	})
}

// A found is what a page is about.
type found struct {
	title   string
	heading string       // the page's first h1, if it stands outside of the nodes
	nodes   []*html.Node // its main text, in the order of the page
	about   string       // what the page says of itself
	scripts bool         // it has scripts that may make its text
}

// content removes from a page what is no text, and finds its main text.
func content(ctx context.Context, doc *html.Node) (f found) {
	page := goquery.NewDocumentFromNode(doc)
	f.title = firstText(doc, title())
	f.about = about(page)
	f.scripts = scripted(doc)
	f.heading = firstText(doc, h1())
	root := cascadia.Query(doc, inBody())
	if root == nil {
		return f
	}
	prune(root)
	all := weigh(root)
	f.nodes = mainOf(ctx, root, all)
	if ctx.Err() != nil {
		return f
	}
	if len(f.nodes) == 0 {
		removeAround(root)
		unbanner(root, all)
		f.nodes = []*html.Node{scored(root)}
	} else {
		for _, n := range f.nodes {
			unbanner(n, all)
		}
	}
	for _, n := range f.nodes {
		first := cascadia.Query(n, anyHeading())
		if cascadia.Query(n, h1()) != nil || n.DataAtom == atom.H1 || first != nil && leads(f.title, textOf(first)) {
			f.heading = ""
			break
		}
	}
	return f
}

// leads says whether the title of a page begins with a heading of it, which is then the heading of the page.
func leads(title, heading string) bool {
	heading = strings.Trim(oneLine(heading), "#¶§ ")
	return heading != "" && strings.HasPrefix(title, heading)
}

var title, h1, inBody = selector("title"), selector("h1"), selector("body")

// firstText is the text of the first element that a selector finds, on one line.
func firstText(n *html.Node, s cascadia.Selector) string {
	if n = cascadia.Query(n, s); n == nil {
		return ""
	}
	return oneLine(textOf(n))
}

// scripted says whether a page has scripts that may make its text.
func scripted(n *html.Node) bool {
	size := 0
	var look func(n *html.Node) bool
	look = func(n *html.Node) bool {
		if n.DataAtom == atom.Script {
			if size += len(textOf(n)); size > 500 || attr(n, "src") != "" || attr(n, "type") == "module" {
				return true
			}
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			if look(c) {
				return true
			}
		}
		return false
	}
	return look(n)
}

// about is the description in the head of a page.
func about(page *goquery.Document) string {
	for _, s := range []string{"meta[name=description]", "meta[property='og:description']"} {
		if text, ok := page.Find(s).First().Attr("content"); ok && oneLine(text) != "" {
			return oneLine(text)
		}
	}
	return ""
}

// prune removes what is never text. Formulas in scripts, which MathJax shows, are text.
func prune(n *html.Node) {
	for c := n.FirstChild; c != nil; {
		next := c.NextSibling
		switch {
		case c.Type == html.CommentNode:
			n.RemoveChild(c)
		case c.Type != html.ElementNode:
		case c.DataAtom == atom.Script && strings.HasPrefix(attr(c, "type"), "math/tex"):
		case telling(c) && never().Match(c) && !keeps(c):
			n.RemoveChild(c)
		default:
			prune(c)
		}
		c = next
	}
}

// telling says whether an element can be one that never finds: most are not, and asking all of them takes long.
func telling(n *html.Node) bool {
	for i := range n.Attr {
		switch n.Attr[i].Key {
		case "class", "id", "role", "style", "hidden", "aria-hidden":
			return true
		}
	}
	return !plainText[n.DataAtom]
}

// plainText are elements that never does not find by their names, the most frequent ones.
var plainText = map[atom.Atom]bool{
	atom.A: true, atom.P: true, atom.Li: true, atom.Ul: true, atom.Ol: true, atom.Em: true, atom.Strong: true,
	atom.B: true, atom.I: true, atom.Code: true, atom.Pre: true, atom.Span: true, atom.Div: true, atom.Td: true,
	atom.Tr: true, atom.Th: true, atom.Table: true, atom.Tbody: true, atom.Dl: true, atom.Dt: true, atom.Dd: true,
	atom.Br: true, atom.H1: true, atom.H2: true, atom.H3: true, atom.H4: true, atom.Var: true, atom.Dfn: true,
}

// holders are elements of a body in which a landmark may be: what stands in running text is none.
func holders(body *html.Node) (all []*html.Node) {
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		switch n.DataAtom {
		case atom.A, atom.P, atom.Li, atom.Span, atom.Code, atom.Pre, atom.Dt, atom.H1, atom.H2, atom.H3, atom.H4:
		default:
			if n.Type == html.ElementNode && (telling(n) || attr(n, "itemprop") != "") {
				all = append(all, n)
			}
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
	}
	walk(body)
	return all
}

// keeps says of an element that never would remove that it is text after all.
func keeps(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Nav, atom.Button:
		return n.DataAtom == atom.Button && insideOf(n, atom.Summary)
	case atom.Body, atom.Html, atom.Main:
		return true
	}
	return false
}

func insideOf(n *html.Node, a atom.Atom) bool {
	for n = n.Parent; n != nil; n = n.Parent {
		if n.DataAtom == a {
			return true
		}
	}
	return false
}

// A weight is how much text an element has.
type weight struct {
	words, linked int // linked: in links
	blocks        int // pre and table
	heads         int // h1 to h3
}

func (w weight) density() float64 {
	if w.words == 0 {
		return 0
	}
	return float64(w.linked) / float64(w.words)
}

// weigh counts the words of all elements below n that may be blocks.
func weigh(n *html.Node) map[*html.Node]weight {
	all := map[*html.Node]weight{}
	var walk func(n *html.Node, link bool) weight
	walk = func(n *html.Node, link bool) (w weight) {
		link = link || n.DataAtom == atom.A
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			switch c.Type {
			case html.TextNode:
				k := wordsIn(c.Data)
				w.words += k
				if link {
					w.linked += k
				}
			case html.ElementNode:
				v := walk(c, link)
				w.words, w.linked, w.blocks = w.words+v.words, w.linked+v.linked, w.blocks+v.blocks
				w.heads += v.heads
			}
		}
		switch n.DataAtom {
		case atom.Pre, atom.Table:
			w.blocks++
		case atom.H1, atom.H2, atom.H3:
			w.heads++
		}
		if weighed[n.DataAtom] || n.DataAtom == 0 {
			all[n] = w
		}
		return w
	}
	walk(n, false)
	return all
}

var weighed = map[atom.Atom]bool{
	atom.Body: true, atom.Div: true, atom.Section: true, atom.Article: true, atom.Main: true, atom.Aside: true,
	atom.Header: true, atom.Footer: true, atom.Ul: true, atom.Ol: true, atom.Table: true, atom.Td: true,
	atom.Form: true, atom.Center: true, atom.Dl: true, atom.P: true, atom.Details: true, atom.Fieldset: true,
	atom.Figure: true, atom.Tbody: true, atom.Tr: true, atom.Nav: true, atom.Span: true,
}

// wordsIn counts words; ideographs count as words by threes.
func wordsIn(text string) (n int) {
	in, wide := false, 0
	for _, r := range text {
		switch {
		case r >= 0x3040 && r < 0xFB00:
			wide++
			in = false
		case unicode.IsSpace(r):
			in = false
		case !in:
			in = true
			n++
		}
	}
	return n + (wide+2)/3
}

// mainOf returns the elements of the first landmark that holds enough of the page; nil: no landmark does.
func mainOf(ctx context.Context, body *html.Node, all map[*html.Node]weight) []*html.Node {
	whole := all[body]
	own := whole.words - whole.linked // a page of links alone has none
	held := holders(body)
	for _, s := range landmarks() {
		if ctx.Err() != nil {
			return nil // the caller looks, too
		}
		nodes := outermost(s.Filter(held))
		var w weight
		for _, n := range nodes {
			v := all[n]
			w.words, w.linked, w.blocks = w.words+v.words, w.linked+v.linked, w.blocks+v.blocks
		}
		// Less than a third of the running text is a teaser or one part of many; a short page may have little of all.
		if text := w.words - w.linked; w.words > 0 && text*3 >= own && w.blocks*2 >= whole.blocks {
			return nodes
		}
	}
	return nil
}

// outermost leaves out nodes that lie within others of the list, which is in the order of the page.
func outermost(nodes []*html.Node) (out []*html.Node) {
	for _, n := range nodes {
		inside := false
		for p := n.Parent; p != nil && !inside; p = p.Parent {
			inside = len(out) > 0 && p == out[len(out)-1]
		}
		if !inside {
			out = append(out, n)
		}
	}
	return out
}

func removeAround(body *html.Node) {
	for _, n := range frame().MatchAll(body) {
		if n.Parent != nil && cascadia.Query(n, holdsText()) == nil {
			n.Parent.RemoveChild(n)
		}
	}
}

// unbanner removes elements below n whose names say that they are no part of the text, if they are small beside it.
func unbanner(n *html.Node, all map[*html.Node]weight) {
	whole := all[n].words
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		for c := n.FirstChild; c != nil; {
			next := c.NextSibling
			if c.Type == html.ElementNode {
				w, ok := all[c]
				if ok && w.words*4 <= whole+40 && (beside(w) && bannered(c, w) || steps(c, w)) {
					n.RemoveChild(c)
				} else {
					walk(c)
				}
			}
			c = next
		}
	}
	walk(n)
}

// beside says of an element with the name of a banner that it is one: it is short and has neither code nor tables, or
// it is made of links.
func beside(w weight) bool {
	if w.blocks > 0 {
		return w.density() > 0.8
	}
	return w.words < 150 || w.density() > 0.5
}

// steps says of an element that it is a row of links to the pages before, behind and above, as manuals have it around
// each of their sections.
func steps(n *html.Node, w weight) bool {
	if w.words > 60 || w.linked == 0 || n.DataAtom == atom.Span {
		return false
	}
	if n.DataAtom == atom.Table {
		return bracketed(n)
	}
	found, text := false, false
	most := 100
	var look func(n *html.Node)
	look = func(n *html.Node) {
		for c := n.FirstChild; c != nil && most > 0; c = c.NextSibling {
			most--
			text = text || heading(c) || c.DataAtom == atom.Pre || c.DataAtom == atom.Dl
			found = found || c.DataAtom == atom.A && rels[attr(c, "rel")] && attr(c, "accesskey") != ""
			look(c)
		}
	}
	look(n)
	return found && !text
}

// bracketed says of a table that it has one row of links in brackets, as texi2html writes [ < ] [ > ] [Top].
func bracketed(n *html.Node) bool {
	rows, _ := rowsOf(n)
	if len(rows) != 1 || len(rows[0].cells) < 3 {
		return false
	}
	for _, c := range rows[0].cells {
		text := strings.Trim(textOf(c), " \n\u00a0")
		if text != "" && (text[0] != '[' || text[len(text)-1] != ']') {
			return false
		}
	}
	return true
}

// rels are what links to other parts of a manual say that they are.
var rels = map[string]bool{"next": true, "prev": true, "previous": true, "up": true}

func heading(n *html.Node) bool {
	return len(n.Data) == 2 && n.Data[0] == 'h' && n.Data[1] >= '1' && n.Data[1] <= '6'
}

// named says whether the id of an element is made of the heading with which it begins: then the id says what a part of
// the text is about, and not what the element is.
func named(n *html.Node) bool {
	id := slug(attr(n, "id"))
	for c := n.FirstChild; c != nil && id != ""; c = c.NextSibling {
		if c.Type == html.ElementNode && attr(c, "id") == "" || heading(c) {
			return heading(c) && slug(textOf(c)) == id
		}
	}
	return false
}

// slug is the letters and digits of a text.
func slug(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, text)
}

// bannered says whether the class or the id of an element is, or has as a part, the name of a banner.
func bannered(n *html.Node, w weight) bool {
	return bannerName(attr(n, "class"), w) || bannerName(attr(n, "id"), w) && !(w.density() < 0.5 && named(n))
}

func bannerName(names string, w weight) bool {
	for name := range strings.FieldsSeq(strings.ToLower(names)) {
		for _, b := range banners {
			if at := strings.Index(name, b); at >= 0 && edge(name, at-1) && edge(name, at+len(b)) {
				// Some manuals call every list so. What leads nowhere is no table of contents.
				return b != "toc" || w.density() > 0.3
			}
		}
	}
	return false
}

// edge says whether the byte of a name is no letter, or outside of it.
func edge(name string, at int) bool {
	return at < 0 || at >= len(name) || name[at] < 'a' || name[at] > 'z'
}

// scored is the fallback for pages without landmarks: the smallest element that holds most of the running text, every
// block of code and every heading; in doubt the body.
func scored(body *html.Node) *html.Node {
	all := weigh(body) // what was removed must not count
	best := body
	for {
		whole := all[best]
		var into *html.Node
		for c := best.FirstChild; c != nil; c = c.NextSibling {
			w, ok := all[c]
			if !ok || c.DataAtom == atom.P || c.DataAtom == atom.Ul || c.DataAtom == atom.Ol ||
				c.DataAtom == atom.Table {
				continue
			}
			if own := whole.words - whole.linked; own > 0 && (w.words-w.linked)*10 >= own*9 &&
				w.blocks == whole.blocks && w.heads == whole.heads {
				into = c
			}
		}
		if into == nil {
			return best
		}
		best = into
	}
}

var anyHeading = selector("h1, h2, h3")

func attr(n *html.Node, name string) string {
	for i := range n.Attr {
		if n.Attr[i].Key == name && n.Attr[i].Namespace == "" {
			return n.Attr[i].Val
		}
	}
	return ""
}

// oneLine joins all white space of a text.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
