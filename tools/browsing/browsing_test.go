package browsing

import (
	"bytes"
	"errors"
	"image"
	"image/png"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"codehand/tools/results"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/tooltest"
	"codehand/tools/web"
)

var want = Want{Tool: "web_fetch", Length: 50_000}

func env(s *tooltest.Session) tool.Env {
	return s.Env(tool.Call{Spec: tool.Spec{Name: "web_fetch", MaxRunes: 50_000}})
}

func refused(t *testing.T, err error) *tool.Refusal {
	t.Helper()
	r, ok := errors.AsType[*tool.Refusal](err)
	if !ok {
		t.Fatalf("%v is no refusal", err)
	}
	return r
}

var next = regexp.MustCompile(`next offset=(\d+)\]$`)

// Page by page a model gets all of a text, each character once, and no result is longer than may be shown.
func TestPagesMeet(t *testing.T) {
	t.Parallel()
	s := tooltest.New(t, nil)
	whole := strings.Repeat("Wörter 漢字 und mehr davon, so dass es viele Seiten werden.\n", 4000)
	for _, length := range []int{777, 50_000, 100_000} {
		e := env(s)
		got, offset := "", 0
		for range 500 {
			w := want
			w.Offset, w.Length = offset, length
			res, err := Show(t.Context(), e, web.Page{URL: "https://example.org/", Status: 200, Type: "text/plain",
				Form: "text", Text: whole}, w)
			if err != nil {
				t.Fatal(err)
			}
			if n := utf8.RuneCountInString(res.Text); n > e.Limit {
				t.Fatalf("%d characters, at most %d", n, e.Limit)
			}
			_, body, _ := strings.Cut(res.Text, " ---\n")
			body, _, _ = strings.Cut(body, "\n--- untrusted")
			got += body
			m := next.FindStringSubmatch(res.Text)
			if m == nil {
				break
			}
			offset, _ = strconv.Atoi(m[1])
			if utf8.RuneCountInString(got) < offset { // a line end at the end of a page is not shown
				got += "\n"
			}
		}
		if got != strings.Trim(whole, "\n") {
			t.Errorf("length %d: %d of %d bytes", length, len(got), len(whole))
		}
	}
}

// A page was cut at 35,325 characters, whatever max_length said and whatever the client shows. It has as many as it
// wants, or as its client's result has room for.
func TestPagesAreFull(t *testing.T) {
	t.Parallel()
	s := tooltest.New(t, nil)
	plain := strings.Repeat("A line of a page of sixty characters, with its end, is it.\n", 4000)
	signs := strings.Repeat("\"a\\b\"\t\u202e", 20_000)
	shown := func(text string, length int, client session.Client) int {
		e := env(s)
		e.Client = client
		if client.MaxRunes > 0 {
			e.Limit = client.MaxRunes
		}
		res, err := Show(t.Context(), e, web.Page{URL: "https://example.org/" + strings.Repeat("x", 300), Status: 200,
			Type: "text/plain", Form: "text", Text: text}, Want{Tool: "web_fetch", Length: length})
		if err != nil {
			t.Fatal(err)
		}
		f := results.Form{Runes: e.Limit, Bytes: client.MaxBytes, Lines: client.MaxLines, JSON: client.MaxJSON}
		if !f.Fits(res.Text) {
			t.Errorf("length %d, %+v: the result has %d characters and does not fit", length, client, utf8.RuneCountInString(res.Text))
		}
		m := next.FindStringSubmatch(res.Text)
		if m == nil {
			t.Fatalf("length %d, %+v: no offset in …%s", length, client, res.Text[len(res.Text)-100:])
		}
		n, _ := strconv.Atoi(m[1])
		return n
	}
	for _, c := range []struct {
		text        string
		length      int
		client      session.Client
		least, most int
	}{
		{plain, 1000, session.Client{}, 940, 1000},
		{plain, 40_000, session.Client{}, 39_900, 40_000},
		{plain, 50_000, session.Client{}, 49_300, 50_000},
		{plain, 100_000, session.Client{}, 49_300, 50_000},
		{plain, 50_000, session.Client{MaxRunes: 8_000}, 7_350, 8_000},
		{plain, 50_000, session.Client{MaxBytes: 19_000}, 18_300, 19_000},
		{plain, 50_000, session.Client{MaxLines: 200}, 190 * 59, 200 * 59},
		{plain, 50_000, session.Client{MaxRunes: 7_900, MaxJSON: 7_900}, 7_100, 7_900},
		{signs, 50_000, session.Client{MaxRunes: 7_900, MaxJSON: 7_900}, 3_000, 7_900},
	} {
		if got := shown(c.text, c.length, c.client); got < c.least || got > c.most {
			t.Errorf("length %d, %+v: %d characters, want %d to %d", c.length, c.client, got, c.least, c.most)
		}
	}
}

// A secret is masked also where a page ends within it, and an offset behind the end is refused.
func TestSecretsAcrossPages(t *testing.T) {
	t.Parallel()
	s := tooltest.New(t, nil)
	secret := "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
	p := web.Page{URL: "https://example.org/", Status: 200, Type: "text/plain", Form: "text", Text: "token " + secret + " end"}
	for length := 1; length < 60; length++ {
		w := want
		w.Length = length
		res, err := Show(t.Context(), env(s), p, w)
		if err != nil || strings.Contains(res.Text, "ghp_") {
			t.Errorf("length %d: %v\n%s", length, err, res.Text)
		}
	}
	w := want
	w.Offset = 1000
	_, err := Show(t.Context(), env(s), p, w)
	if r := refused(t, err); r.Code != tool.InputInvalid {
		t.Errorf("behind the end: %v", r)
	}
}

// A page without text has no characters to continue from; that is said, and no offset is asked for that there is not.
func TestEmptyPage(t *testing.T) {
	t.Parallel()
	w := want
	w.Offset = 10
	res, err := Show(t.Context(), env(tooltest.New(t, nil)), web.Page{URL: "https://example.org/", Status: 200,
		Type: "text/plain", Form: "text", Text: "\n"}, w)
	if err != nil || !strings.HasSuffix(res.Text, "0 characters)\n(empty response)") {
		t.Errorf("%q, %v", res.Text, err)
	}
}

// Images are shown, or saved where the client cannot show them. What is neither text nor image is saved in a file that
// only this user can read.
func TestOtherKinds(t *testing.T) {
	t.Parallel()
	s := tooltest.New(t, nil)
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 30, 20))); err != nil {
		t.Fatal(err)
	}
	p := web.Page{URL: "https://example.org/a.png", Status: 200, Type: "image/png", Body: picture.Bytes()}
	e := env(s)
	e.Client.MaxImages = 1
	res, err := Show(t.Context(), e, p, want)
	if err != nil || len(res.Media) != 1 || !strings.Contains(res.Text, "Image 30x20 png") {
		t.Errorf("%v: %s", err, res.Text)
	}
	saved := func(p web.Page, e tool.Env, why string) {
		t.Helper()
		res, err := Show(t.Context(), e, p, want)
		_, path, _ := strings.Cut(res.Text, ") to ")
		path, _, _ = strings.Cut(path, ".bin")
		data, readErr := os.ReadFile(path + ".bin")
		if err != nil || readErr != nil || !bytes.Equal(data, p.Body) || !strings.Contains(res.Text, why) {
			t.Errorf("%v, %v: %s", err, readErr, res.Text)
		}
	}
	e = env(s)
	e.Client.MaxImages = 0
	saved(p, e, "does not accept images")
	broken := p
	broken.Body = picture.Bytes()[:40]
	saved(broken, env(s), "cannot be shown")
	saved(web.Page{URL: "https://example.org/x", Status: 200, Type: "application/zip", Body: []byte("PK\x03\x04")}, env(s),
		"Saved 4 bytes (application/zip)")
	e = env(s)
	e.Prefs.NoPDF = "the operator said so"
	saved(web.Page{URL: "https://example.org/x", Status: 200, Type: "application/pdf", Body: []byte("%PDF-1.7\nx")}, e,
		"the operator said so")
	saved(web.Page{URL: "https://example.org/x", Status: 200, Type: "application/pdf", Body: []byte("%PDF-1.7\nx")}, env(s),
		"PDF")
}

// Each code of the client is a code of the tool, with what to do next; foreign text stands in a frame.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		e    web.Error
		code tool.Code
		text string
	}{
		{web.Error{Code: web.Invalid, Text: "x"}, tool.URLInvalid, "absolute public"},
		{web.Error{Code: web.Blocked, Text: "x"}, tool.URLBlocked, "x."},
		{web.Error{Code: web.Status, Status: 404, Text: "x", Body: "EXIT"}, tool.HTTPError, "\n--- untrusted content "},
		{web.Error{Code: web.Status, Status: 403, Text: "x"}, tool.HTTPError, "login"},
		{web.Error{Code: web.Status, Status: 503, Text: "x", Wait: 1e9}, tool.HTTPError, "in 1 s"},
		{web.Error{Code: web.Status, Status: 503, Text: "x", Wait: 1}, tool.HTTPError, "in 1 s"}, // never 0 s
		{web.Error{Code: web.Status, Status: 500, Text: "x"}, tool.HTTPError, "later"},
		{web.Error{Code: web.Timeout, Text: "x"}, tool.Timeout, "later"},
		{web.Error{Code: web.TooLarge, Text: "x"}, tool.TooLarge, "x."},
		{web.Error{Code: web.Limited, Text: "x"}, tool.RateLimited, "x."},
		{web.Error{Code: web.Failed, Text: "x"}, tool.FetchFailed, "another source"},
	} {
		if r := refused(t, Refusal(&c.e)); r.Code != c.code || !strings.Contains(r.Text, c.text) {
			t.Errorf("%s: %s %s", c.e.Code, r.Code, r.Text)
		}
	}
	if err := Refusal(os.ErrClosed); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a fault: %v", err)
	}
}
