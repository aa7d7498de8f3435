package pages

import (
	"context"
	"io"
	"runtime/metrics"
	"strings"
	"time"

	"golang.org/x/net/html"
)

// Limits of an HTML page.
const (
	maxTags   = 500_000
	maxParse  = 2 * time.Second
	maxTree   = 48 << 20 // bytes by which the process may grow while a page is read, and
	perByte   = 12       // for each byte of it: what large pages of documentation need, twice
	maxOutput = 16 << 20 // bytes of Markdown
)

// A feed hands a page to the parser until it has been enough.
type feed struct {
	ctx   context.Context
	text  string
	tags  int
	until time.Time
	cut   bool   // it ended before the text
	most  uint64 // live bytes of the process with which it ends
}

func newFeed(ctx context.Context, text string) *feed {
	return &feed{ctx: ctx, text: text, until: time.Now().Add(maxParse),
		most: liveHeap() + maxTree + perByte*uint64(len(text))}
}

// Read ends early, as if the page ended there, when there were too many tags, it took too long, or the tree is too
// large. A short page can make a large one: each paragraph repeats all formatting that was not closed.
func (f *feed) Read(p []byte) (int, error) {
	if err := context.Cause(f.ctx); err != nil {
		return 0, err
	}
	if f.text == "" {
		return 0, io.EOF
	}
	if f.tags > maxTags || time.Now().After(f.until) || liveHeap() > f.most {
		f.cut = true
		return 0, io.EOF
	}
	n := copy(p, f.text)
	f.tags += strings.Count(f.text[:n], "<")
	f.text = f.text[n:]
	return n, nil
}

// liveHeap is how many bytes of the process the last garbage collection found in use. A tree that grows makes
// collections frequent, and garbage of others does not count.
func liveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// parse builds the tree of a page. note says that it is not all of it.
func parse(ctx context.Context, text string) (doc *html.Node, note string, err error) {
	part := growing(text)
	f := newFeed(ctx, part)
	doc, err = html.ParseWithOptions(f, html.ParseOptionEnableScripting(false))
	switch {
	case context.Cause(ctx) != nil:
		return nil, "", context.Cause(ctx)
	case err != nil: // elements that are nested too deep
		return nil, "", err
	case f.cut || len(part) < len(text):
		note = "the page was too long to be read to its end"
	}
	return doc, note, nil
}

// plain is what can be had of a page that cannot be parsed: its text without tags.
func plain(ctx context.Context, text string) (string, error) {
	f := newFeed(ctx, text)
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
