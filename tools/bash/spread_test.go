package bash

import (
	"fmt"
	"strings"
	"testing"
)

// A rule about a file was passed by every command that reaches the file without naming it.
func TestSpreads(t *testing.T) {
	t.Parallel()
	files := strings.Fields("a .env d/a d/.x d/e/b.go d/.h/c x.go")
	for command, want := range map[string]string{
		"grep -r x":                            "read .: a .env d/a d/.x d/e/b.go d/.h/c x.go",
		"grep -rn x d e":                       "read d: a .env d/a d/.x d/e/b.go d/.h/c x.go; read e: a .env d/a d/.x d/e/b.go d/.h/c x.go",
		"grep x a":                             "",
		"grep -d recurse x d":                  "read d: a .env d/a d/.x d/e/b.go d/.h/c x.go",
		"grep -r --include=*.go x .":           "read .: d/e/b.go x.go",
		"rg x":                                 "read .: a d/a d/e/b.go x.go",
		"rg -uu x d":                           "read d: a .env d/a d/.x d/e/b.go d/.h/c x.go",
		"cat *":                                "read .: a x.go",
		"cat .*":                               "read .: .env",
		"cat */*":                              "read .: d/a",
		"cat d/*":                              "read d: a x.go",
		"cat ~/d/*.go":                         "read ~/d: x.go",
		"cat /d/[!a]*":                         "read /d: x.go",
		"cat [[:alpha:]]":                      "read .: a x.go",
		"cat **/a":                             "read .: a d/a",
		"cat '*'":                              "",
		"cat $X/*":                             "",
		"ls *":                                 "",
		"cd d && cat *":                        "read d: a x.go",
		"wc -l < x*":                           "read .: x.go",
		"find . -name '*.go'":                  "",
		"find . -name '*.go' -exec cat {} +":   "read .: d/e/b.go x.go",
		"find d ! -name '*.go' -exec cat {} +": "read d: a .env d/a d/.x d/e/b.go d/.h/c x.go",
		"find -name a | xargs cat":             "read .: a d/a",
		"cp -r d e":                            "read d: a .env d/a d/.x d/e/b.go d/.h/c x.go",
		"mv d e":                               "write d: a .env d/a d/.x d/e/b.go d/.h/c x.go",
		"rm x*":                                "write .: x.go",
		"tar czf a.tgz d":                      "read d: a .env d/a d/.x d/e/b.go d/.h/c x.go",
		"tar xf a.tgz":                         "",
		"bash -c 'cat x*'":                     "read .: x.go",
	} {
		var got []string
		a := Analyze(command, inRoot)
		for _, s := range a.Spreads {
			text := map[bool]string{false: "read ", true: "write "}[s.Write] + s.Dir + ":"
			for _, f := range files {
				ok := s.Reaches(f, false)
				for i := range f {
					ok = ok && (f[i] != '/' || s.Reaches(f[:i], true))
				}
				if ok {
					text += " " + f
				}
			}
			got = append(got, text)
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%s:\ngot  %s\nwant %s", command, strings.Join(got, "; "), want)
		}
	}
	var many strings.Builder
	for i := range maxSpreads + 1 {
		fmt.Fprintf(&many, "cat d%d/*; ", i)
	}
	if a := Analyze(many.String(), inRoot); len(a.Spreads) != maxSpreads || a.UnsureReads == "" || a.UnsureWrites == "" {
		t.Errorf("%d places, and no rule about paths asks", len(a.Spreads))
	}
}

// Git shows what it tracks without a word that names it.
func TestShows(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"git diff": "/", "git show HEAD": "/", "git log -p": "/", "git log -2 -U5": "/", "git stash show -p": "/", "git cat-file -p HEAD": "/", "git diff --stat -p": "/",
		"git log": "", "git status": "", "git diff --stat": "", "git show --name-only": "", "git show HEAD:a": "", "git blame a": "",
		"git diff -- a": "a", "git -C d diff -- a ./b": "d/a d/b", "cd d && git log -p -- .": "d", "git diff -- ':!a'": "/", "git diff -- '*.go'": "/",
		"git show HEAD; git diff -- a": "/ a",
	} {
		if got := strings.Join(Analyze(command, inRoot).Shows, " "); got != want {
			t.Errorf("%s: got %q, want %q", command, got, want)
		}
	}
}
