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
		"grep -r --exclude-dir=d x .":          "read .: a .env x.go",
		"grep -r --exclude-dir d x .":          "read .: a .env x.go",
		"grep -r -e --exclude-dir=d .":         "read .: a .env d/a d/.x d/e/b.go d/.h/c x.go",
		"grep -r --exclude-dir=$X x .":         "read .: a .env d/a d/.x d/e/b.go d/.h/c x.go",
		"grep -r --exclude='*.go' x .":         "read .: a .env d/a d/.x d/.h/c",
		"grep -r --exclude=a --include=a x .":  "read .: a d/a",
		"rg -g '!d' x":                         "read .: a x.go",
		"rg -g '!d/e' x":                       "read .: a d/a d/e/b.go x.go",
		"rg -g '!d' -g d x":                    "read .: a d/a d/e/b.go x.go",
		"cd d* && cat *":                       "read .: d/a",
		"cat */../a":                           "read .:",
		"cat ../*/a":                           "read ..: d/a",
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

// Git shows what it tracks, or tracked, without a word that names it.
func TestShows(t *testing.T) {
	t.Parallel()
	const none = ""
	for command, want := range map[string]string{
		"git diff": ".", "git diff -- a": ". -- a", "git diff a b": ". a b", "git diff HEAD": ". HEAD", "git diff --cached": ". past", "git diff --stat": none, "git diff --stat -p": ".", "git diff --binary --stat": ".", "git diff --no-index a b": none,
		"git diff A:d B:d": ". A:d B:d", "git -C d diff -- a ./b": "d -- a ./b", "cd d && git diff -- .": "d -- .", "git diff -- ':!a'": ". -- :!a", "git diff $x -- a": ". -- a past whole", "git diff HEAD --": ". HEAD --",
		"git show": ". past", "git show HEAD": ". HEAD past", "git show HEAD:a": ". HEAD:a past", "git show --stat x": ". x past blobs", "git show --name-only": ". past blobs", "git show :/first": ". :/first past", "git show --format=%H --no-patch": ". past blobs", "git show --no-patch --what": ". past",
		"git log": none, "git log --stat -3": none, "git log -p": ". past", "git log -2 -U5": ". past", "git log --binary": ". past", "git log -L1,2:a": ". past", "git log --remerge-diff": ". past", "git log --patc -- a": ". -- a past", "git reflog": none, "git reflog -p": ". past whole",
		"git status": none, "git status -v": ". past whole", "git stash": none, "git stash list": none, "git stash list -p": ". past whole", "git stash list -U1": ". past whole", "git stash list --cc": ". past whole", "git stash list --patch-with-stat": ". past whole", "git stash list --binary": ". past whole", "git stash list -c": ". past whole", "git stash list -L1,2:a": ". past whole", "git stash list --remerge-diff": ". past whole", "git stash list --stat -3": none, "git stash list --oneline --name-only": none, "git stash list --name-only -p": ". past whole", "git stash push -p": ". past whole", "git stash -p": ". past whole", "git stash pop": none,
		"git bisect view": none, "git bisect view --oneline": none, "git bisect view -p": ". past whole", "git bisect visualize --stat -U1": ". past whole", "git bisect visualize show": ". past whole", "git bisect view --stat": none, "git bisect log": none, "git bisect good HEAD": none,
		"git notes": none, "git notes list": none, "git notes show": ". past whole", "git notes --ref x show HEAD": ". past whole", "git notes add -m show": none, "git notes add -C HEAD:a HEAD": ". past whole", "git notes append --reuse-mess=x": ". past whole", "git notes append -cx": ". past whole", "git notes copy a b": none, "git notes --ref list show": ". past whole", "git notes what": ". past whole",
		"git fsck": none, "git fsck --full": none, "git fsck --lost-found": ". past whole", "git fsck --lost": ". past whole", "git fsck --no-lost-found": none, "git stash show": ". past whole", "git stash show --stat": none, "git stash show -p": ". past whole",
		"git cat-file -p HEAD": ". HEAD -- past blobs", "git cat-file blob x": ". x -- past blobs", "git cat-file -t x": none, "git cat-file --batch": ". past whole", "git cat-file --batch-check": none, "git blame a": none,
		"git grep x": ".", "git grep x HEAD": ". HEAD", "git grep x HEAD -- d": ". HEAD -- d", "git grep -e x a": ". a", "git archive HEAD d": ". HEAD d past", "git format-patch --stdout HEAD~1": ". HEAD~1 past", "git range-diff a b c": ". a b c past",
		"git for-each-ref": none, "git for-each-ref --format='%(raw)'": ". past whole", "git tag -l --format='%(*raw:size)'": ". past whole", "git branch --format='%(refname)'": none, "git worktree list": none, "git worktree add ../x": ". past whole",
		"git update-index --cacheinfo 100644,x,y": ". past whole", "git read-tree --prefix=x HEAD": ". past whole", "git read-tree HEAD": none, "git diff-tree HEAD": none, "git diff-tree -p HEAD": ". HEAD past", "git what": ". past whole",
		"git show HEAD; git diff -- a": ". HEAD past; . -- a",
	} {
		var all []string
		for _, s := range Analyze(command, inRoot).Shows {
			words := append([]string{s.From}, s.Words...)
			if s.Dashes {
				words = append(append(words, "--"), s.Paths...)
			}
			if s.Past {
				words = append(words, "past")
			}
			if s.Blobs {
				words = append(words, "blobs")
			}
			all = append(all, strings.Join(words, " ")+map[bool]string{true: " whole"}[s.Whole])
		}
		if got := strings.Join(all, "; "); got != want {
			t.Errorf("%s: got %q, want %q", command, got, want)
		}
	}
}
