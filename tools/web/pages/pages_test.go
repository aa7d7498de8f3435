package pages

import (
	"flag"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write the golden Markdown")

// A sample is one page with what must stay of it. The comment of its file is its address.
type sample struct {
	name, page string
	base       *url.URL
	keep, drop []string // lines that must be in the Markdown; texts that must not
	want       string
	archive    *txtar.Archive
	path       string
}

func samples(t testing.TB) (all []sample) {
	t.Helper()
	files, err := filepath.Glob("testdata/pages/*.txtar")
	if err != nil || len(files) < 40 {
		t.Fatalf("%d pages, want at least 40: %v", len(files), err)
	}
	for _, path := range files {
		a, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		s := sample{name: strings.TrimSuffix(filepath.Base(path), ".txtar"), archive: a, path: path}
		if s.base, err = url.Parse(strings.TrimSpace(string(a.Comment))); err != nil {
			t.Fatal(err)
		}
		for _, f := range a.Files {
			text := string(f.Data)
			switch f.Name {
			case "page.html":
				s.page = text
			case "keep":
				s.keep = lines(text)
			case "drop":
				s.drop = lines(text)
			case "want.md":
				s.want = text
			}
		}
		all = append(all, s)
	}
	return all
}

func lines(text string) (all []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, "\n"); strings.TrimSpace(line) != "" {
			all = append(all, line)
		}
	}
	return all
}

// Of each page all of the main text stays, with its form, and nothing of the navigation and the banners around it.
func TestPages(t *testing.T) {
	t.Parallel()
	for _, s := range samples(t) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			d, err := Text(t.Context(), []byte(s.page), "text/html; charset=utf-8", s.base)
			if err != nil || d.Form != "markdown" {
				t.Fatalf("form %q, %v", d.Form, err)
			}
			got := d.Text + "\n"
			if d.Note != "" {
				got = "(Note: " + d.Note + ")\n" + got
			}
			for _, k := range s.keep {
				if !strings.Contains(got, k) {
					t.Errorf("lost: %s", k)
				}
			}
			for _, k := range s.drop {
				if strings.Contains(got, k) {
					t.Errorf("not left out: %s", k)
				}
			}
			if *update {
				s.archive.Files = append(s.archive.Files[:3:3], txtar.File{Name: "want.md", Data: []byte(got)})
				if err := os.WriteFile(s.path, txtar.Format(s.archive), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != s.want {
				t.Errorf("got\n%s\nwant\n%s\nIf it is better: go test ./tools/web/pages -update", got, s.want)
			}
		})
	}
}
