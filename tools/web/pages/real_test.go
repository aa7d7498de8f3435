package pages

import (
	"bufio"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/PuerkitoBio/goquery"
	"golang.org/x/net/html"
)

// realDir has pages that other people's generators made, from packages of Debian and of npm; .ci/long fetches them.
const realDir = "../../../.ci/pages"

// A realPage is a row of testdata/real.txt, which says what its lines mean.
type realPage struct {
	path, main string
	skip       []string
	keep, drop []string
}

// realPages reads testdata/real.txt.
func realPages(t *testing.T) (all []realPage) {
	t.Helper()
	f, err := os.Open("testdata/real.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	for s.Scan() {
		key, value, _ := strings.Cut(s.Text(), " ")
		if key == "" || key == "#" {
			continue
		}
		if key == "page" {
			all = append(all, realPage{path: value})
			continue
		}
		p := &all[len(all)-1]
		switch key {
		case "main":
			p.main = value
		case "skip":
			p.skip = append(p.skip, value)
		case "keep":
			p.keep = append(p.keep, value)
		case "drop":
			p.drop = append(p.drop, value)
		default:
			t.Fatalf("testdata/real.txt: %q", s.Text())
		}
	}
	if s.Err() != nil || len(all) < 40 {
		t.Fatalf("%d pages, want at least 40: %v", len(all), s.Err())
	}
	return all
}

// Of real pages of documentation no text of the main element is lost, in its order, nor the form of headings, code and
// tables; nothing of the navigation around it is kept. What must be there is read from the HTML by other means.
func TestRealPages(t *testing.T) {
	if os.Getenv("CODEHAND_LONG") == "" {
		t.Skip("pages of packages that .ci/long fetches: CODEHAND_LONG=1")
	}
	if found, _ := filepath.Glob(realDir + "/*"); len(found) == 0 {
		if os.Getenv("CI") != "" {
			t.Fatal("no pages of packages in .ci/pages: .ci/long gets them")
		}
		t.Skip("no pages of packages in .ci/pages")
	}
	for _, p := range realPages(t) {
		t.Run(filepath.Base(filepath.Dir(p.path))+"/"+filepath.Base(p.path), func(t *testing.T) { p.check(t) })
	}
}

func (p realPage) check(t *testing.T) {
	body, err := os.ReadFile(filepath.Join(realDir, p.path))
	if err != nil {
		t.Fatal(err)
	}
	d, err := Text(t.Context(), body, "text/html", &url.URL{Scheme: "https", Host: "docs.example", Path: "/" + p.path})
	if err != nil || d.Form != "markdown" || d.Note != "" {
		t.Fatalf("form %q, note %q, %v", d.Form, d.Note, err)
	}
	if dir := os.Getenv("CODEHAND_REAL"); dir != "" {
		name := filepath.Join(dir, strings.ReplaceAll(p.path, "/", "_")+".md")
		if err := os.WriteFile(name, []byte(d.Text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	flat := oneLine(d.Text)
	for _, k := range p.keep {
		if !strings.Contains(flat, k) {
			t.Errorf("lost: %s", k)
		}
	}
	for _, k := range p.drop {
		if strings.Contains(flat, k) {
			t.Errorf("not left out: %s", k)
		}
	}
	page, err := goquery.NewDocumentFromReader(strings.NewReader(decode(body, "text/html", "html")))
	if err != nil {
		t.Fatal(err)
	}
	said := letters(page.Text()) + letters(string(body))
	for _, k := range p.drop {
		if !strings.Contains(said, letters(k)) {
			t.Errorf("the page no longer has what must be left out: %s", k)
		}
	}
	page.Find(strings.Join(append(p.skip, "script, style, head"), ", ")).Remove()
	main := page.Find(p.main)
	if main.Length() == 0 {
		t.Fatalf("no %s", p.main)
	}
	lost, all := lostTexts(main.Nodes, letters(withoutAddresses(d.Text, addressOfLink)))
	for i, text := range lost {
		if i < 10 {
			t.Errorf("lost: %.200q", text)
		}
	}
	blocks, fences := lostCode(main, d.Text)
	for _, text := range blocks {
		t.Errorf("lost code: %.300q", text)
	}
	headings, rows := filled(main.Find("h1, h2, h3, h4, h5, h6")), dataRows(main)
	hasHeadings, hasRows := formsOf(d.Text)
	if hasHeadings < headings || hasRows < rows {
		t.Errorf("%d of %d headings, %d of %d rows of tables", hasHeadings, headings, hasRows, rows)
	}
	t.Logf("%d bytes of HTML, %d of Markdown: %d of %d texts lost; %d headings of %d, %d rows of %d, %d blocks of code",
		len(body), len(d.Text), len(lost), all, hasHeadings, headings, hasRows, rows, fences)
}

// lostTexts are the texts below nodes that do not stand in rest, the letters of Markdown, in their order.
func lostTexts(nodes []*html.Node, rest string) (lost []string, all int) {
	const ahead = 2000 // letters: a text that only stands behind those is lost here; a short one might be another's
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		if n.Type == html.TextNode {
			want := letters(n.Data)
			if want == "" {
				return
			}
			all++
			far := min(ahead, 2*len(want)*len(want)) + 40
			at := strings.Index(rest[:min(len(rest), far+len(want))], want)
			if at < 0 {
				lost = append(lost, n.Data)
			} else {
				rest = rest[at+len(want):]
			}
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
	}
	for _, n := range nodes {
		walk(n)
	}
	return lost, all
}

// letters are the letters and digits of a text.
func letters(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, text)
}

var addressOfLink = regexp.MustCompile(`\]\((?:https?|mailto|ftp):[^\s()]*(?:\([^\s()]*\)[^\s()]*)*\)`)

// withoutAddresses removes from Markdown what is not in the text of a page: what address finds, languages of code, line
// ends in cells.
func withoutAddresses(markdown string, address *regexp.Regexp) string {
	var b strings.Builder
	fenced := ""
	for line := range strings.Lines(markdown) {
		sign := fenceOf(line)
		switch {
		case fenced == "" && sign != "":
			fenced = sign
			continue
		case fenced != "" && sign == fenced:
			fenced = ""
			continue
		case fenced == "":
			line = address.ReplaceAllString(line, "]")
			if strings.HasPrefix(strings.TrimLeft(line, ">-: "), "|") {
				line = strings.ReplaceAll(line, "<br>", " ")
			}
		}
		b.WriteString(line)
	}
	return b.String()
}

// fenceOf is the sign by which a line begins or ends a block of code; "": it does not.
func fenceOf(line string) string {
	line = strings.TrimLeft(line, "->: 0123456789.")
	if n := len(line) - len(strings.TrimLeft(line, "`")); n >= 3 {
		return line[:n]
	}
	return ""
}

// lostCode are the texts of blocks of code that do not stand in the Markdown with every sign; all is how many there are.
func lostCode(main *goquery.Selection, markdown string) (lost []string, all int) {
	has := squeezed(strings.NewReplacer(`\|`, "|", "<br>", " ").Replace(markdown))
	main.Find("pre, div.fragment").Each(func(_ int, pre *goquery.Selection) {
		want := squeezed(strings.NewReplacer(`\|`, "|", "<br>", " ").Replace(pre.Text()))
		if want == "" {
			return
		}
		if all++; !strings.Contains(has, want) {
			lost = append(lost, pre.Text())
		}
	})
	return lost, all
}

// squeezed is a text without white space and without marks at the beginnings of its lines.
func squeezed(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.Join(strings.Fields(strings.TrimLeft(line, "> ")), ""))
	}
	return b.String()
}

// filled counts the elements that have a text.
func filled(s *goquery.Selection) int {
	return s.FilterFunction(func(_ int, s *goquery.Selection) bool {
		return letters(s.Text()) != "" && s.Closest("td, th, a, dt, summary").Length() == 0
	}).Length()
}

// dataRows counts the rows of tables that hold data: several columns of a few words.
func dataRows(main *goquery.Selection) (rows int) {
	main.Find("table").Each(func(_ int, table *goquery.Selection) {
		inside := table.Parent().Closest("td, pre").Length() > 0
		note := table.Parent().HasClass("admonitionblock")
		if inside || note || table.Find("table, pre, h1, h2, h3, h4, h5, h6").Length() > 0 || table.HasClass("memname") {
			return
		}
		columns, here := 0, 0
		table.Find("tr").Each(func(_ int, tr *goquery.Selection) {
			k := tr.ChildrenFiltered("td, th").FilterFunction(func(_ int, s *goquery.Selection) bool {
				return letters(s.Text()) != ""
			}).Length()
			if columns = max(columns, k); k > 0 {
				here++
			}
		})
		if columns > 1 {
			rows += here
		}
	})
	return rows
}

// formsOf counts headings and rows of tables of Markdown, but not what stands in code.
func formsOf(markdown string) (headings, rows int) {
	fenced := ""
	for line := range strings.Lines(markdown) {
		sign := fenceOf(line)
		line = strings.TrimLeft(line, "->:* 0123456789.")
		switch {
		case fenced == "" && sign != "":
			fenced = sign
		case fenced != "" && sign == fenced:
			fenced = ""
		case fenced != "":
		case strings.HasPrefix(strings.TrimLeft(line, "#"), " ") && line[0] == '#':
			headings++
		case strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "| --- |"):
			rows++
		}
	}
	return headings, rows
}
