// Package pages makes text for a model of what a server of the web sent: decodes it, and turns HTML into Markdown of
// its main content.
//
// What is sent is hostile. Every step has a limit of size, depth or time, and looks at its context, so that it ends
// soon after it. Nothing is fetched and nothing is run. The text is foreign: the caller cleans and marks it.
package pages

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"strings"
)

// ErrNoText says that the bytes are no text: an image, an archive, a program.
var ErrNoText = errors.New("not a text")

// A Doc is a text that was made of an answer.
type Doc struct {
	Form  string // markdown, text, json or xml: what Text is
	Title string // of an HTML page, one line; "": it has none
	Text  string // valid UTF-8, lines end with LF
	Note  string // what is missing, one line; "": nothing
}

// Text reads a body. contentType is what the server says that it is, which the bytes can overrule. base is the address
// of the page, to which its links are relative. Errors: ErrNoText, or the cause of an ended ctx.
func Text(ctx context.Context, body []byte, contentType string, base *url.URL) (Doc, error) {
	form := formOf(body, contentType)
	if form == "" {
		return Doc{}, ErrNoText
	}
	text := decode(body, contentType, form)
	if err := context.Cause(ctx); err != nil {
		return Doc{}, err
	}
	if form == "html" {
		return fromHTML(ctx, text, base)
	}
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if form == "json" {
		text = pretty(text)
	}
	return Doc{Form: form, Text: text}, nil
}

// forms are what media types say that a text is.
var forms = map[string]string{
	"text/html": "html", "application/xhtml+xml": "html",
	"text/markdown": "markdown", "text/x-markdown": "markdown",
	"application/json": "json", "text/json": "json",
	"application/xml": "xml", "text/xml": "xml",
	"application/javascript": "text", "application/x-javascript": "text", "application/ecmascript": "text",
	"application/typescript": "text", "application/yaml": "text", "application/x-yaml": "text",
	"application/toml": "text", "application/x-sh": "text", "application/x-httpd-php": "text",
	"application/sql":      "text",
	"application/x-ndjson": "text", "application/jsonl": "text", "application/graphql": "text",
	"application/x-tex": "text", "application/rtf": "",
}

// formOf says what a body is: html, markdown, json, xml or text; "": no text.
func formOf(body []byte, contentType string) string {
	looks, _, _ := mime.ParseMediaType(http.DetectContentType(body)) // it always is one
	said, _, err := mime.ParseMediaType(contentType)
	if err != nil && !strings.Contains(said, "/") {
		said = ""
	}
	wide := strings.HasPrefix(decodeName(body, contentType), "utf-16") // full of zeros, so it looks binary
	switch {
	case said == "" || said == "application/octet-stream" || said == "binary/octet-stream":
		said = looks
		if wide {
			said = "text/plain"
		}
	case strings.HasPrefix(looks, "image/") && said != "image/svg+xml" || looks == "application/pdf":
		return "" // whatever the server says
	}
	if form, ok := forms[said]; ok {
		return binary(body, wide, form)
	}
	switch {
	case strings.HasSuffix(said, "+json"):
		return binary(body, wide, "json")
	case strings.HasSuffix(said, "+xml"):
		return binary(body, wide, "xml")
	case strings.HasPrefix(said, "text/"):
		if looks == "text/html" && said == "text/plain" && err != nil {
			return "html"
		}
		return binary(body, wide, "text")
	}
	return ""
}

// binary is "" for a body that cannot be a text, else form.
func binary(body []byte, wide bool, form string) string {
	if !wide && bytes.IndexByte(body[:min(len(body), 8<<10)], 0) >= 0 {
		return ""
	}
	return form
}

// maxIndent bounds the white space that pretty adds to JSON: so many bytes, and as many again as the JSON has.
const maxIndent = 8 << 10

// pretty indents JSON. What is none, or would grow beyond reason by its depth, stays as it is.
func pretty(text string) string {
	deep, added, inString, escaped := 0, 0, false, false
	for i := range len(text) {
		switch c := text[i]; {
		case escaped:
			escaped = false
		case inString:
			escaped, inString = c == '\\', c != '"'
		case c == '"':
			inString = true
		case c == '{' || c == '[':
			deep++
			added += 1 + 2*deep
		case c == ',':
			added += 1 + 2*deep
		case c == '}' || c == ']':
			deep = max(0, deep-1) // it need not be JSON
			added += 1 + 2*deep
		}
		if added > maxIndent+len(text) {
			return text
		}
	}
	var b bytes.Buffer
	b.Grow(len(text) + added)
	if json.Indent(&b, []byte(text), "", "  ") != nil {
		return text
	}
	return strings.TrimSpace(b.String())
}
