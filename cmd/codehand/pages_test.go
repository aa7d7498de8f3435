package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// maxSentence is how many words a reader of the README is asked to keep in mind.
const maxSentence = 30

// TestReadmeSentences: a stranger reads each sentence of the README once.
func TestReadmeSentences(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range longSentences(string(text)) {
		t.Error("README.md: " + fault)
	}
}

// TestPagesLinks: every relative link of a document leads to a file, and to a heading of it where it names one.
func TestPagesLinks(t *testing.T) {
	t.Parallel()
	documents, err := readDocuments(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range documents {
		for _, fault := range deadLinks(root, name, text) {
			t.Error(fault)
		}
	}
}

// TestPagesCommands: a page that shows commands for a shell is run, by the script that is named here.
func TestPagesCommands(t *testing.T) {
	t.Parallel()
	documents, err := readDocuments(root)
	if err != nil {
		t.Fatal(err)
	}
	scripts := map[string]string{}
	for _, name := range []string{"readme", "team", "packages"} {
		b, err := os.ReadFile(filepath.Join(root, ".ci", name))
		if err != nil {
			t.Fatal(err)
		}
		scripts[name] = string(b)
	}
	ranBy := func(name string) string {
		switch {
		case name == "AGENTS.md", strings.Contains(name, "testdata/"):
			return "none: it is what the gate itself runs, or a test's file"
		case name == "packaging/README.md" && strings.Contains(scripts["packages"], "packaging/release"):
			return "packages"
		case path.Dir(name) == "docs/clients" && strings.Contains(scripts["readme"], "/docs/clients/*.md"):
			return "readme"
		}
		for _, script := range []string{"readme", "team"} {
			if regexp.MustCompile(`(?m)^\s*(run|awk) .*\b` + regexp.QuoteMeta(name) + `\b`).MatchString(scripts[script]) {
				return script
			}
		}
		return ""
	}
	ran := 0
	for name, text := range documents {
		if !regexp.MustCompile("(?m)^ *```sh$").MatchString(text) {
			continue
		}
		if ranBy(name) == "" {
			t.Errorf("%s shows commands that nothing runs: name it in .ci/readme, or show them as text and say why", name)
		}
		ran++
	}
	if ran < 20 {
		t.Fatalf("only %d pages with commands were found", ran)
	}
}

// maxPage is how many lines a page of docs has. Who looks for one thing reads no more.
const maxPage = 250

func TestPagesAreShort(t *testing.T) {
	t.Parallel()
	documents, err := readDocuments(filepath.Join(root, "docs"))
	if err != nil {
		t.Fatal(err)
	}
	if len(documents) < 30 {
		t.Fatalf("only %d pages were found", len(documents))
	}
	for name, text := range documents {
		if n := strings.Count(text, "\n"); n > maxPage {
			t.Errorf("docs/%s has %d lines, at most %d: divide it by who reads it", name, n, maxPage)
		}
	}
}

// longSentences are the sentences of a Markdown text that have too many words. Blocks of code have none; a cell of a
// table, a heading and an item of a list end a sentence.
func longSentences(text string) (faults []string) {
	code := regexp.MustCompile("(?ms)^```.*?^```$")
	link := regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	comment := regexp.MustCompile(`(?s)<!--.*?-->`)
	text = link.ReplaceAllString(comment.ReplaceAllString(code.ReplaceAllString(text, "\n\n"), ""), "$1")
	text = regexp.MustCompile(`(?m)^(#+|-|\*|\|) `).ReplaceAllString(text, "\n\n")
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		for cell := range strings.SplitSeq(paragraph, " | ") {
			for _, sentence := range regexp.MustCompile(`[.!?]\s`).Split(cell, -1) {
				if n := len(strings.Fields(sentence)); n > maxSentence {
					faults = append(faults, fmt.Sprintf("%d words, at most %d: %s", n, maxSentence, strings.TrimSpace(sentence)))
				}
			}
		}
	}
	return faults
}

// deadLinks are the relative links of a document below a directory that lead nowhere.
func deadLinks(dir, name, text string) (faults []string) {
	text = regexp.MustCompile("(?ms)^ *```.*?^ *```$").ReplaceAllString(text, "")
	for _, m := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(text, -1) {
		target, anchor, _ := strings.Cut(m[1], "#")
		if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
			continue
		}
		file := path.Join(path.Dir(name), target)
		if path.Dir(name) == "changelog/unreleased" && path.Base(name) != "README.md" { // a release moves its text into CHANGELOG.md
			file = target
		}
		if target == "" {
			file = name
		}
		at := filepath.Join(dir, filepath.FromSlash(file))
		if _, err := os.Stat(at); err != nil {
			faults = append(faults, fmt.Sprintf("%s links to %s, which does not exist", name, m[1]))
			continue
		}
		if anchor == "" || path.Ext(file) != ".md" {
			continue
		}
		if b, err := os.ReadFile(at); err != nil || !hasHeading(string(b), anchor) {
			faults = append(faults, fmt.Sprintf("%s links to %s, and %s has no such heading", name, m[1], file))
		}
	}
	return faults
}

// hasHeading says whether a page has a heading with that anchor, as web pages of repositories make anchors.
func hasHeading(page, anchor string) bool {
	for line := range strings.Lines(page) {
		hashes, title, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || strings.Trim(hashes, "#") != "" {
			continue
		}
		slug := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, title)
		if slug == anchor {
			return true
		}
	}
	return false
}

func TestPlantedPages(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", maxSentence)
	wantFailures(t, longSentences(long+"end.\n"), "31 words")
	wantFailures(t, longSentences(long+"\n\nend. | "+long+" | "+long+"\n- "+long+"\n- "+long+"\n```sh\n"+long+long+"\n```\n"))
	wantFailures(t, longSentences("[a b](c)\n"+long+"!\n"), "32 words")
	dir := t.TempDir()
	for name, text := range map[string]string{"b.md": "# A Title, `of` it\n", "a.md": "## Mine\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	wantFailures(t, deadLinks(dir, "a.md", "## Mine\n[x](b.md) [y](b.md#a-title-of-it) [z](#mine) <b> [w](https://x.example/y)\n```text\n[x](c.md)\n```\n"))
	wantFailures(t, deadLinks(dir, "a.md", "[x](c.md) and\n[y](b.md#title) [z](#other) ![p](../q.svg)"),
		"a.md links to c.md,", "a.md links to b.md#title", "a.md links to #other", "a.md links to ../q.svg")
}
