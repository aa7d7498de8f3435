package media

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"codehand/filestate/leaktest"
)

// makePDF makes the files of these tests with reportlab: text, images only, no text, passwords, text that has form
// feeds, a title that has lines, much to warn of, and a page of a mile.
const makePDF = `
import sys
from reportlab.pdfgen import canvas
from reportlab.lib.pdfencrypt import StandardEncryption
def make(name, pages, draw=None, **k):
    c = canvas.Canvas(name, **k)
    for i in range(1, pages + 1):
        (draw or (lambda c, i: c.drawString(72, 720, 'This is page %d.' % i)))(c, i)
        c.showPage()
    c.save()
make('three.pdf', 3)
make('ten.pdf', 10)
make('many.pdf', 25)
def mixed(c, i):
    if i == 2:
        c.setFillColorRGB(200/255, 50/255, 40/255); c.rect(0, 0, 600, 900, fill=1, stroke=0)
    elif i == 3:
        c.drawString(72, 720, 'Gr\u00fc\u00dfe')
make('mixed.pdf', 4, mixed)
make('password.pdf', 2, encrypt=StandardEncryption('secret', strength=128))
make('owner.pdf', 2, encrypt=StandardEncryption('', ownerPassword='x', canCopy=0, strength=128))
def titled(c, i):
    c.setTitle('a title\nPages:          9000\nEncrypted:      yes'); c.drawString(72, 720, 'short')
make('title.pdf', 1, titled)
def noisy(c, i):
    c.drawString(72, 720, 'Hello'); c._code.append('\n'.join('1 2 3 4 foo%d' % n for n in range(20000))); c.drawString(72, 600, 'World')
make('noisy.pdf', 1, noisy)
make('mile.pdf', 1, lambda c, i: c.line(0, 0, 9, 9), pagesize=(4561920, 4561920))
`

func pdfs(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"pdfinfo", "pdftotext", "pdftoppm"} {
		need(t, name)
	}
	dir := t.TempDir()
	run(t, dir, python(t, "reportlab"), "-c", makePDF)
	return dir
}

// patient is the time that tests of contents allow: the race detector slows decoding down, and so do other tests.
const patient = 5 * time.Minute

func open(t testing.TB, dir, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// numbers prints pages as "1:text 2:image 3:-".
func numbers(pages []Page) string {
	var b strings.Builder
	for _, p := range pages {
		what := strings.TrimSpace(p.Text)
		if p.Image != nil {
			what += fmt.Sprintf("%dx%d", p.Image.ShownWidth, p.Image.ShownHeight)
		}
		fmt.Fprintf(&b, "%d:%s|", p.Number, what)
	}
	return b.String()
}

func TestPages(t *testing.T) {
	t.Parallel()
	dir, temp := pdfs(t), t.TempDir()
	r := New(Options{Temp: temp, Fit: FitOptions{MaxTime: patient}, PDFTime: patient})
	for _, c := range []struct {
		name     string
		from, to int
		want     string // pages; else the error
		is       error
		limit    LimitError
	}{
		{name: "three.pdf", want: "1:This is page 1.|2:This is page 2.|3:This is page 3.|"},
		{name: "three.pdf", from: 2, to: 2, want: "2:This is page 2.|"},
		{name: "three.pdf", from: 2, to: 9, want: "2:This is page 2.|3:This is page 3.|"},
		{name: "many.pdf", limit: LimitError{What: "pages", Have: 25, Most: 10}},
		{name: "many.pdf", from: 24, to: 25, want: "24:This is page 24.|25:This is page 25.|"},
		{name: "many.pdf", from: 1, to: 21, limit: LimitError{What: "pages", Have: 21, Most: 20}},
		{name: "mixed.pdf", want: "1:902x1274|2:902x1274|3:Grüße|4:902x1274|"},
		{name: "password.pdf", is: ErrEncrypted},
		{name: "owner.pdf", want: "1:This is page 1.|2:This is page 2.|"},
		{name: "title.pdf", want: "1:short|"},
		{name: "mile.pdf", want: "1:1072x1072|"},
	} {
		data := open(t, dir, c.name)
		pages, err := r.Pages(t.Context(), bytes.NewReader(data), int64(len(data)), c.from, c.to)
		limit, isLimit := errors.AsType[*LimitError](err)
		switch {
		case isLimit && *limit == c.limit:
		case c.is != nil && errors.Is(err, c.is):
		case err != nil || numbers(pages) != c.want:
			t.Errorf("%s %d-%d: %s %v, want %s %v %v", c.name, c.from, c.to, numbers(pages), err, c.want, c.is, c.limit)
		}
		if c.name == "many.pdf" && err == nil && pages[0].Of != 25 {
			t.Errorf("%s: a page of %d, want 25", c.name, pages[0].Of)
		}
	}
	empty(t, temp)
}

// empty says that nothing is left of what was worked on.
func empty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// The image of a page has the colours of the page.
func TestPagesImage(t *testing.T) {
	t.Parallel()
	dir := pdfs(t)
	data := open(t, dir, "mixed.pdf")
	pages, err := New(Options{Fit: FitOptions{MaxTime: patient}, PDFTime: patient}).Pages(t.Context(), bytes.NewReader(data), int64(len(data)), 2, 2)
	if err != nil || len(pages) != 1 || pages[0].Image == nil {
		t.Fatal(pages, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "page"), pages[0].Image.Data, 0o600); err != nil {
		t.Fatal(err)
	}
	seen := look(t, dir, "page")["page"]
	for _, c := range seen.Colours {
		if c != [4]int{200, 50, 40, 255} {
			t.Errorf("%v, want 200 50 40 255", c)
		}
	}
}

// The longer edge of a page follows the option down, but not up: a page of 8,192 by 8,192 pixels would not be shown.
func TestPagesEdge(t *testing.T) {
	t.Parallel()
	dir := pdfs(t)
	for _, c := range []struct {
		name string
		edge int
		want string
	}{
		{"mixed.pdf", 300, "2:213x300|"}, {"mile.pdf", 8192, "1:1072x1072|"},
	} {
		page := int(c.want[0] - '0')
		data := open(t, dir, c.name)
		r := New(Options{Fit: FitOptions{MaxEdge: c.edge, MaxTime: patient}, PDFTime: patient})
		pages, err := r.Pages(t.Context(), bytes.NewReader(data), int64(len(data)), page, page)
		if got := numbers(pages); err != nil || got != c.want {
			t.Errorf("%s, %d pixels: %s %v, want %s", c.name, c.edge, got, err, c.want)
		}
	}
}

// A PDF with more to warn of than a pipe holds was said to take too long.
func TestPagesNoisy(t *testing.T) {
	t.Parallel()
	data := open(t, pdfs(t), "noisy.pdf")
	pages, err := New(Options{PDFTime: patient}).Pages(t.Context(), bytes.NewReader(data), int64(len(data)), 0, 0)
	if err != nil || !strings.Contains(numbers(pages), "Hello") || !strings.Contains(numbers(pages), "World") {
		t.Errorf("%s, %v", numbers(pages), err)
	}
}

// PDF files that were cut off are shown as far as poppler mends them, or refused; never with another error.
func TestPagesDamaged(t *testing.T) {
	t.Parallel()
	dir := pdfs(t)
	whole := open(t, dir, "three.pdf")
	r := New(Options{Fit: FitOptions{MaxTime: patient}, PDFTime: patient})
	damaged := map[string][]byte{
		"nothing behind the mark": []byte("%PDF-1.7\n"),
		"noise":                   append([]byte("%PDF-1.7\n"), bytes.Repeat([]byte("\x00\xff<<>>obj["), 10_000)...),
		"nested arrays":           append([]byte("%PDF-1.7\n1 0 obj\n"), bytes.Repeat([]byte("["), 1_000_000)...),
	}
	for n := 16; n < len(whole); n += 256 {
		damaged[fmt.Sprintf("%d bytes", n)] = whole[:n]
	}
	for name, data := range damaged {
		pages, err := r.Pages(t.Context(), bytes.NewReader(data), int64(len(data)), 0, 0)
		if err != nil && !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && len(pages) > 3 {
			t.Errorf("%s: %s", name, numbers(pages))
		}
	}
	if _, err := r.Pages(t.Context(), strings.NewReader("<html>"), 6, 0, 0); !errors.Is(err, ErrKind) {
		t.Errorf("no PDF: %v, want ErrKind", err)
	}
	if _, err := r.Pages(t.Context(), bytes.NewReader(whole), 200<<20, 0, 0); !errors.As(err, new(*LimitError)) {
		t.Errorf("200 MiB: %v, want a LimitError", err)
	}
	if _, err := r.Pages(t.Context(), bytes.NewReader(whole), int64(len(whole)), 7, 8); !errors.As(err, new(*RangeError)) {
		t.Errorf("page 7 of 3: %v, want a RangeError", err)
	}
}

// fake puts programs of a test in the place of poppler's.
func fake(t *testing.T, scripts map[string]string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the programs are shell scripts")
	}
	dir := t.TempDir()
	for name, text := range scripts {
		if err := leaktest.WriteProgram(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n")); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const pdf = "%PDF-1.7\nhello\n"

func fakePages(ctx context.Context, o Options) ([]Page, error) {
	o.PDFTime = cmp.Or(o.PDFTime, patient)
	return New(o).Pages(ctx, strings.NewReader(pdf), int64(len(pdf)), 0, 0)
}

// What a program says and does can neither hang nor flood the server, and it gets nothing of the server's.
func TestPagesPrograms(t *testing.T) {
	t.Parallel()
	one := `echo "Pages:   1"`
	for _, c := range []struct {
		name, info, text string
		want             func(pages []Page, err error) bool
	}{
		{"reads the file", one, `cat /dev/stdin`, func(p []Page, err error) bool { return err == nil && p[0].Text == pdf }},
		{"sees its directory", one, `ls -A; pwd`, func(p []Page, err error) bool { return err == nil && strings.Count(p[0].Text, "\n") == 1 }},
		{"has no environment", one, `env | grep -v -e ^PATH= -e ^LC_ALL= -e ^HOME= -e ^TMPDIR= -e ^PWD= -e ^_= -e ^SHLVL= -e ^OLDPWD= -e ^CODEHAND_TREE=; echo end`,
			func(p []Page, err error) bool { return err == nil && p[0].Text == "end\n" }},
		{"floods", one, `yes`, isLimit},
		{"floods the other", `yes >&2 & sleep 0.1; exit 1`, ``, is(ErrDamaged)},
		{"warns a lot", `head -c 1000000 /dev/zero >&2; ` + one, `head -c 1000000 /dev/zero >&2; echo text`,
			func(p []Page, err error) bool { return err == nil && p[0].Text == "text\n" }},
		{"says nothing", `:`, ``, is(ErrDamaged)},
		{"fails", `echo why >&2; exit 1`, ``, is(ErrDamaged)},
		{"wants a password", `echo "Command Line Error: Incorrect password" >&2; exit 1`, ``, is(ErrEncrypted)},
		{"forbids", one, `exit 3`, is(ErrEncrypted)},
		{"crashes", one, `kill -SEGV $$`, is(ErrDamaged)},
		{"leaves a daemon", one, `(sleep 1000 &) ; echo text`, func(p []Page, err error) bool { return err == nil && p[0].Text == "text\n" }},
		{"form feeds", one, `printf 'a\fb\f'`, func(p []Page, err error) bool { return err == nil && p[0].Text == "a\nb" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			temp := t.TempDir()
			pages, err := fakePages(t.Context(), Options{Temp: temp, Dirs: []string{fake(t, map[string]string{"pdfinfo": c.info, "pdftotext": c.text})}})
			if !c.want(pages, err) {
				t.Errorf("%+v, %v", pages, err)
			}
			empty(t, temp)
		})
	}
}

func isLimit(_ []Page, err error) bool { return errors.As(err, new(*LimitError)) }

func is(want error) func([]Page, error) bool {
	return func(_ []Page, err error) bool { return errors.Is(err, want) }
}

// A program that hangs ends with the call.
func TestPagesCancel(t *testing.T) {
	t.Parallel()
	temp := t.TempDir()
	o := Options{Temp: temp, Dirs: []string{fake(t, map[string]string{"pdfinfo": "sleep 1000"})}}
	reason := errors.New("the user left")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, reason)
	defer cancel()
	if _, err := fakePages(ctx, o); !errors.Is(err, reason) {
		t.Errorf("%v, want %v", err, reason)
	}
	empty(t, temp)
}

// So does one that takes too long.
func TestPagesSlow(t *testing.T) {
	t.Parallel()
	temp := t.TempDir()
	o := Options{Temp: temp, PDFTime: 300 * time.Millisecond, Dirs: []string{fake(t, map[string]string{"pdfinfo": "sleep 1000"})}}
	if _, err := fakePages(t.Context(), o); !errors.Is(err, ErrSlow) {
		t.Errorf("%v, want %v", err, ErrSlow)
	}
	empty(t, temp)
}

// Programs that another user could have put there do not count.
func TestPagesMissing(t *testing.T) {
	t.Parallel()
	missing := func(name string, dirs ...string) {
		t.Helper()
		_, err := fakePages(t.Context(), Options{Dirs: append([]string{}, dirs...)})
		if e, ok := errors.AsType[*ProgramError](err); !ok || e.Program != "pdfinfo" || !strings.HasPrefix(e.Package, "poppler") {
			t.Errorf("%s: %v, want a ProgramError for pdfinfo", name, err)
		}
	}
	missing("no directory")
	missing("empty directory", t.TempDir())
	missing("relative directory", "bin")
	dir := fake(t, map[string]string{"pdfinfo": "echo Pages: 1", "pdftotext": "echo text", "pdftoppm": ""})
	if _, err := fakePages(t.Context(), Options{Dirs: []string{dir}}); err != nil {
		t.Errorf("a good directory: %v", err)
	}
	chmod := func(path string, mode os.FileMode) {
		t.Helper()
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	chmod(dir, 0o777)
	missing("directory for everybody", dir)
	linked := t.TempDir()
	if err := os.Symlink(filepath.Join(dir, "pdfinfo"), filepath.Join(linked, "pdfinfo")); err != nil {
		t.Fatal(err)
	}
	missing("link into it", linked)
	chmod(dir, 0o755)
	chmod(filepath.Join(dir, "pdfinfo"), 0o777)
	missing("file for everybody", dir)
	chmod(filepath.Join(dir, "pdfinfo"), 0o644)
	missing("no program", dir)
}
