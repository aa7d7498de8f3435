package pages

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// hostile are pages that are easy to write and hard to read, each of about size bytes.
func hostile(size int) map[string]string {
	r := func(s string) string { return strings.Repeat(s, size/len(s)) }
	formats := "<p>" // each paragraph behind it repeats all of them
	for i := range 480 {
		formats += fmt.Sprintf("<b id=%d>", i)
	}
	formats += "</p>"
	return map[string]string{
		"quotes":         r("<blockquote>x"),
		"lists":          r("<ul><li>x"),
		"bold":           r("<b>x"),
		"links":          r("<a href=/x>y"),
		"tables":         r("<table><tr><td>x"),
		"cells":          "<table><tr>" + r("<td>x") + "</table>",
		"spans of cells": "<table>" + r("<tr><td colspan=99999 rowspan=99999>x<td>y</tr>") + "</table>",
		"divs":           r("<div>"),
		"breaks":         strings.Repeat("<blockquote>", 200) + r("x<br>"),
		"details":        r("<dl><dt>a<dd>b"),
		"code":           r("<code>x<code>y</code>"),
		"lines of code":  "<pre>" + r("<div>x</div>") + "</pre>",
		"nested lines":   "<pre>" + r("<div>x"),
		"headings":       r("<h1>x<h2>y"),
		"formulas":       "<math>" + r("<msup><mi>x</mi>"),
		"comments":       r("<!-- x -->"),
		"attributes":     "<p " + r("a=1 ") + ">x",
		"classes":        `<div class="` + r("a b ") + `">x</div>`,
		"paragraphs":     r("<p>x"),
		"definitions":    "<dl>" + r("<dt>x<dd>y") + "</dl>",
		"unclosed":       r("<"),
		"entities":       r("&amp;&#x41;"),
		"formats":        formats + r("<p>x</p>"),
		"wide and deep":  strings.Repeat("<div>", 480) + "<h1>x</h1>" + r("<p>word word</p>"),
		"bodies":         strings.Repeat("<div>", 480) + r(`<div class="body markdown content">x</div>`),
		"exponents":      strings.Repeat("<sup>", 480) + r("x y ["),
		"fonts":          r("<font color=a><p>"),
		"beside rows":    "<table>" + r("x<tr>"),
		"spans":          "<main>" + r("<span>x</span>") + "</main>",
	}
}

// JSON that is written on many short lines of its own stays as it is where indenting would make it many times as long.
func TestDeepJSON(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"deep":     strings.Repeat("[", 60) + strings.Repeat("0,", 200_000) + "0" + strings.Repeat("]", 60),
		"deeper":   strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000),
		"closings": strings.Repeat("]", 300_000),
		"opened":   strings.Repeat("{", 300_000),
		"many":     "[" + strings.Repeat("{},", 200_000) + "{}]",
		"empty":    strings.Repeat(`{"a":[`, 300) + strings.Repeat(`]}`, 300),
	} {
		d, err := Text(t.Context(), []byte(text), "application/json", nil)
		if err != nil || d.Form != "json" || len(d.Text) > 2*len(text)+maxIndent {
			t.Errorf("%s: %d bytes from %d, %v", name, len(d.Text), len(text), err)
		}
	}
	if d, _ := Text(t.Context(), []byte(`{"a":[1,{"b":"]"}]}`), "application/json", nil); !strings.Contains(d.Text, "\n    {\n      \"b\": \"]\"\n    }\n") {
		t.Errorf("%s", d.Text)
	}
}

// A page that repeats what it leaves open is read to where its tree would grow beyond reason, however busy the machine
// is; what pages of people leave open is read whole.
func TestGrowing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text  string
		whole bool
	}{
		"formats":           {hostile(1 << 20)["formats"], false},
		"fonts":             {strings.Repeat("<font color=a><p>x", 10_000), false},
		"closed elsewhere":  {strings.Repeat("<b id=1>", 300) + strings.Repeat("</i><p>x", 10_000), false},
		"closed in comment": {strings.Repeat("<b id=1>", 300) + strings.Repeat("<!-- </b> --><p>x", 10_000), false},
		"links":             {strings.Repeat("<p><a href=x><code>x</code></a> <b>y</b></p>", 50_000), true},
		"one left open":     {"<font>" + strings.Repeat("<p><a href=x>x</a></p>", 50_000), true},
		"cells":             {"<table>" + strings.Repeat("<tr><td><font>x<td><b>y", 50_000) + "</table>", true},
		"around tables":     {strings.Repeat("<b><table><tr><td><i>x</table></b>", 20_000), true},
	} {
		if part := growing(c.text); !strings.HasPrefix(c.text, part) || (len(part) == len(c.text)) != c.whole {
			t.Errorf("%s: %d of %d bytes", name, len(part), len(c.text))
		}
	}
}

// No page holds the converter up: each ends within its time, and soon after its context.
func TestHostile(t *testing.T) {
	t.Parallel()
	for name, page := range hostile(300_000) {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, fmt.Errorf("it takes more than a minute"))
			defer cancel()
			begin := time.Now()
			d, err := Text(ctx, []byte(page), "text/html", nil)
			if err != nil {
				t.Fatal(err)
			}
			if most := 50 * len(page); len(d.Text) > most {
				t.Errorf("%d bytes of text from %d", len(d.Text), len(page))
			}
			t.Logf("%v, %d bytes, note %q", time.Since(begin).Round(time.Millisecond), len(d.Text), d.Note)
		})
	}
}
