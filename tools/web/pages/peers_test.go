package pages

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/PuerkitoBio/goquery"
	"golang.org/x/net/html"
)

// A figure is what a side made of pages.
type figure struct {
	kept, keep     int // sentences that must be there
	around, drop   int // texts of navigation and banners that were kept, of those that must not be
	texts, all     int // texts of the main element that are there, in their order; of real pages only
	code, blocks   int // blocks of code with every sign; of real pages only
	headings, rows int
	tokens         int
	time           time.Duration
}

func (f *figure) add(g figure) {
	f.kept, f.keep, f.around, f.drop = f.kept+g.kept, f.keep+g.keep, f.around+g.around, f.drop+g.drop
	f.texts, f.all, f.code, f.blocks = f.texts+g.texts, f.all+g.all, f.code+g.code, f.blocks+g.blocks
	f.headings, f.rows = f.headings+g.headings, f.rows+g.rows
	f.tokens, f.time = f.tokens+g.tokens, f.time+g.time
}

// A contest is a page that every side reads.
type contest struct {
	name       string
	body       []byte
	base       *url.URL
	keep, drop []string
	real       *realPage // nil: one of the small pages
}

func contests(t *testing.T) (small, large []contest) {
	t.Helper()
	for _, s := range samples(t) {
		small = append(small, contest{s.name, []byte(s.page), s.base, s.keep, s.drop, nil})
	}
	for _, p := range realPages(t) {
		body, err := os.ReadFile(filepath.Join(realDir, p.path))
		if err != nil {
			t.Logf("left out: %v", err)
			continue
		}
		base := &url.URL{Scheme: "https", Host: "docs.example", Path: "/" + p.path}
		large = append(large, contest{p.path, body, base, p.keep, p.drop, &p})
	}
	return small, large
}

// Other extractors read the pages of this package in the same run. CODEHAND_PEERS has one on each line, a name and a
// command that reads HTML from stdin and writes Markdown; the pages of packages are those that .ci/long fetched:
//
//	CODEHAND_PEERS='fetch python3 /tmp/extract.py' go test -v -run TestBesidePeers ./tools/web/pages
//
// For MCP's reference fetch server the command is a script that writes what extract_content_from_html of its module
// mcp_server_fetch.server makes of stdin; it needs readabilipy (with the npm packages of its directory javascript) and
// markdownify. In 2026-11, at modelcontextprotocol/servers 76d64c8, it kept 195 of 221 sentences and 28 of 110 texts
// around on the small pages, and 106 of 120, 5 of 108, and 1,431 of 1,566 blocks of code on the real ones.
//
// The time of a peer is that of its command without what it takes for an empty page. On no page may a peer keep more
// of the text, or less of what is around it.
func TestBesidePeers(t *testing.T) {
	peers := os.Getenv("CODEHAND_PEERS")
	if peers == "" {
		t.Skip("other extractors: CODEHAND_PEERS")
	}
	small, large := contests(t)
	for _, set := range [][]contest{small, large} {
		ours := map[string]figure{}
		all := figure{}
		for _, c := range set {
			begin := time.Now()
			d, err := Text(t.Context(), c.body, "text/html", c.base)
			if err != nil {
				t.Fatal(err)
			}
			ours[c.name] = c.judge(d.Text, time.Since(begin))
			all.add(ours[c.name])
		}
		t.Logf("%d pages", len(set))
		t.Log(all.row("ours", len(set)))
		for line := range strings.Lines(peers) {
			if f := strings.Fields(line); len(f) > 1 {
				t.Log(besidePeer(t, set, ours, f[0], f[1:]).row(f[0], len(set)))
			}
		}
	}
}

func (f figure) row(name string, pages int) string {
	return fmt.Sprintf("%-12s %4d of %4d sentences, %3d of %3d texts around, %5d of %5d texts, %4d of %4d blocks of code, "+
		"%4d headings, %4d rows of tables, %6d tokens, %6.1f ms a page", name, f.kept, f.keep, f.around, f.drop, f.texts, f.all,
		f.code, f.blocks, f.headings, f.rows, f.tokens, float64(f.time.Microseconds())/1000/float64(pages))
}

// besidePeer runs a peer over pages, and fails where it is better.
func besidePeer(t *testing.T, set []contest, ours map[string]figure, name string, command []string) (all figure) {
	_, start := runPeer(t, command, []byte("<!DOCTYPE html><title>x</title><p>x</p>"))
	for _, c := range set {
		text, took := runPeer(t, command, c.body)
		f, own := c.judge(text, max(0, took-start)), ours[c.name]
		all.add(f)
		switch {
		case f.kept > own.kept || f.texts > own.texts || f.code > own.code:
			t.Errorf("%s: %s keeps more: %+v, and we %+v", c.name, name, f, own)
		case f.kept == own.kept && f.texts == own.texts && f.around < own.around:
			t.Errorf("%s: %s keeps less of what is around: %+v, and we %+v", c.name, name, f, own)
		case f.kept == f.keep && f.texts == own.texts && f.code == own.code && f.tokens*10 < own.tokens*9:
			t.Logf("%s: %s is shorter: %+v, and we %+v", c.name, name, f, own)
		}
		if dir := os.Getenv("CODEHAND_REAL"); dir != "" {
			file := filepath.Join(dir, name+"-"+strings.ReplaceAll(c.name, "/", "_")+".md")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return all
}

// runPeer is what a peer writes about a page. One that fails has written nothing.
func runPeer(t *testing.T, command []string, page []byte) (string, time.Duration) {
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Stdin = bytes.NewReader(page)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	begin := time.Now()
	if err := cmd.Run(); err != nil {
		t.Logf("%v: %v: %.300s", command, err, said.String())
		return "", time.Since(begin)
	}
	return out.String(), time.Since(begin)
}

var anyTarget = regexp.MustCompile(`\]\([^\s()]*(?:\([^\s()]*\)[^\s()]*)*(?: "[^"]*")?\)`)

// judge compares letters, so that no side wins by how it writes Markdown.
func (c contest) judge(text string, took time.Duration) (f figure) {
	f = figure{keep: len(c.keep), drop: len(c.drop), tokens: tokens(text), time: took}
	said, flat := letters(withoutAddresses(text, anyTarget)), oneLine(text)
	for _, k := range c.keep {
		if strings.Contains(said, letters(withoutAddresses(k, anyTarget))) {
			f.kept++
		}
	}
	for _, d := range c.drop {
		if strings.Contains(flat, d) {
			f.around++
		}
	}
	f.headings, f.rows = formsOf(text)
	if c.real == nil {
		return f
	}
	page, err := html.Parse(strings.NewReader(decode(c.body, "text/html", "html")))
	if err != nil {
		return f
	}
	doc := goquery.NewDocumentFromNode(page)
	doc.Find(strings.Join(append(c.real.skip, "script, style, head"), ", ")).Remove()
	main := doc.Find(c.real.main)
	lost, all := lostTexts(main.Nodes, said)
	f.texts, f.all = all-len(lost), all
	blocks, fences := lostCode(main, text)
	f.code, f.blocks = fences-len(blocks), fences
	return f
}

// tokens is the estimate of room in results: a quarter of ASCII, and one of each other character.
func tokens(text string) (n int) {
	ascii := 0
	for _, r := range text {
		if r < utf8.RuneSelf {
			ascii++
		} else {
			n++
		}
	}
	return n + ascii/4
}
