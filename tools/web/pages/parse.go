package pages

import (
	"context"
	"io"
	"strings"
	"time"

	"golang.org/x/net/html"
)

// Limits of an HTML page.
const (
	maxTags   = 2_000_000
	maxParse  = 2 * time.Second
	maxOutput = 16 << 20 // bytes of Markdown
)

// A feed hands a page to the parser until it has been enough.
type feed struct {
	ctx   context.Context
	text  string
	tags  int
	until time.Time
	cut   bool // it ended before the text
}

// Read ends early, as if the page ended there, when there were too many tags or it took too long.
func (f *feed) Read(p []byte) (int, error) {
	if err := context.Cause(f.ctx); err != nil {
		return 0, err
	}
	if f.text == "" {
		return 0, io.EOF
	}
	if f.tags > maxTags || time.Now().After(f.until) {
		f.cut = true
		return 0, io.EOF
	}
	n := copy(p, f.text)
	f.tags += strings.Count(f.text[:n], "<")
	f.text = f.text[n:]
	return n, nil
}

// parse builds the tree of a page. note says that it is not all of it.
func parse(ctx context.Context, text string) (doc *html.Node, note string, err error) {
	f := &feed{ctx: ctx, text: text, until: time.Now().Add(maxParse)}
	doc, err = html.ParseWithOptions(f, html.ParseOptionEnableScripting(false))
	switch {
	case context.Cause(ctx) != nil:
		return nil, "", context.Cause(ctx)
	case err != nil: // elements that are nested too deep
		return nil, "", err
	case f.cut:
		note = "the page was too long to be read to its end"
	}
	return doc, note, nil
}

// plain is what can be had of a page that cannot be parsed: its text without tags.
func plain(ctx context.Context, text string) (string, error) {
	f := &feed{ctx: ctx, text: text, until: time.Now().Add(maxParse)}
	z := html.NewTokenizer(f)
	var b strings.Builder
	skip := ""
	for {
		switch z.Next() {
		case html.ErrorToken:
			return squeeze(b.String()), context.Cause(ctx)
		case html.TextToken:
			if skip == "" {
				b.Write(z.Text())
			}
		case html.StartTagToken:
			if name, _ := z.TagName(); string(name) == "script" || string(name) == "style" {
				skip = string(name)
			} else if blocks[string(name)] {
				b.WriteByte('\n')
			}
		case html.EndTagToken:
			if name, _ := z.TagName(); string(name) == skip {
				skip = ""
			}
		}
	}
}

// squeeze removes blanks at ends of lines, and empty lines.
func squeeze(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			b.WriteString(line)
			b.WriteByte('\n')
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}
