package lsp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// What is read is what was written, and anything else is an error.
func FuzzFraming(f *testing.F) {
	f.Add([]byte("Content-Length: 2\r\n\r\n{}"))
	f.Add([]byte("content-length:2\nContent-Type: x\n\n{}"))
	f.Add([]byte("Content-Length: 99999999999\r\n\r\n{}"))
	f.Add([]byte("Content-Length: -1\r\n\r\n{}"))
	f.Add([]byte("hello\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var v json.RawMessage
		if (framing{}).ReadObject(bufio.NewReader(bytes.NewReader(raw)), &v) != nil {
			return
		}
		var b bytes.Buffer
		if err := (framing{}).WriteObject(&b, v); err != nil {
			t.Fatal(err)
		}
		var again json.RawMessage
		if err := (framing{}).ReadObject(bufio.NewReader(&b), &again); err != nil {
			t.Fatal(err)
		}
	})
}

// A replacement leaves what is around it, and its positions are those of UTF-16.
func FuzzReplace(f *testing.F) {
	f.Add("a\U0001f600b\r\nc", 0, 1, 1, 1, "x")
	f.Add("", 0, 0, 0, 0, "")
	f.Fuzz(func(t *testing.T, text string, a, b, c, d int, with string) {
		if !utf8.ValidString(text) {
			return
		}
		got, err := Replace(text, []Replacement{{Position{a, b}, Position{c, d}, with}})
		if err != nil {
			return
		}
		from, _ := offset(text, lineStarts(text), Position{a, b})
		to, _ := offset(text, lineStarts(text), Position{c, d})
		if got != text[:from]+with+text[to:] || !utf8.ValidString(text[:from]) || strings.Count(text[:from], "\n") > a {
			t.Errorf("%q from %d to %d with %q: %q", text, from, to, with, got)
		}
	})
}
