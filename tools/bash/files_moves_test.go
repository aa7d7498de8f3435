package bash

import (
	"strings"
	"testing"
)

// What git is asked before one of its commands brings other contents.
func TestMoves(t *testing.T) {
	t.Parallel()
	inside := func(string) bool { return true }
	for command, want := range map[string]string{
		"git checkout main":            ". HEAD main -- | HEAD refs/remotes/origin/main -- | -- main",
		"git switch -":                 ". HEAD @{-1} -- | HEAD refs/remotes/origin/@{-1} --",
		"git checkout -f main":         ". main -- | refs/remotes/origin/main -- | -- main",
		"git checkout -f":              ". HEAD --",
		"git checkout -b new":          "",
		"git checkout -b new main":     ". HEAD main -- | HEAD refs/remotes/origin/main -- | -- main",
		"git checkout main -- a b":     ". main -- a b",
		"git checkout -- .":            ". -- .",
		"git checkout main a":          ". main -- a | -- main a",
		"git restore -s main a":        ". main -- a",
		"git restore --staged a":       "",
		"git reset --hard":             ". HEAD --",
		"git reset --hard HEAD~2":      ". HEAD~2 --",
		"git reset main":               "",
		"git merge a b":                ". HEAD...a --; . HEAD...b --",
		"git merge":                    ". HEAD...@{upstream} --",
		"git merge --abort":            ". HEAD --",
		"git pull":                     ". HEAD...@{upstream} --",
		"git pull origin main":         ". HEAD...origin/main --",
		"git rebase main":              ". HEAD main --",
		"git rebase --onto a b c":      ". HEAD a --; . HEAD c --",
		"git rebase --continue":        ". HEAD ORIG_HEAD --",
		"git cherry-pick a b..c":       ". a --; . b..c --",
		"git revert -m 1 a":            ". 1 --; . a --",
		"git stash":                    ". HEAD --",
		"git stash pop":                ". --include-untracked",
		"git stash apply stash@{1}":    ". --include-untracked stash@{1}",
		"git stash list":               "",
		"git -C sub merge a":           "sub HEAD...a --",
		"cd sub && git merge a":        "sub HEAD...a --",
		"git merge $X":                 "",
		"git -C $X merge a":            "",
		"git checkout -p main":         "",
		"git log main":                 "",
		"git commit -am x && git push": "",
		"env git merge a":              ". HEAD...a --",
	} {
		a := Analyze(command, inside)
		var moves []string
		for _, m := range a.Moves {
			var lists []string
			for _, words := range m.Lists {
				list := strings.Join(words, " ")
				for _, begin := range [][]string{diffNames, logNames, {"stash", "show", "--name-only", "-z", "--no-renames"}} {
					list = strings.TrimPrefix(list, strings.Join(begin, " ")+" ")
				}
				lists = append(lists, list)
			}
			moves = append(moves, m.Dir+" "+strings.Join(lists, " | "))
		}
		if got := strings.Join(moves, "; "); got != want {
			t.Errorf("%s:\n got %q\nwant %q", command, got, want)
		}
	}
}

// What git names is asked about like what the text names.
func TestChange(t *testing.T) {
	t.Parallel()
	a := Analyze("git merge x >out", func(string) bool { return true })
	a.Hold()
	a.Change([]string{"/w/.husky/a"})
	if len(a.Files) < 2 || a.Files[0] != (FileUse{Path: "/w/.husky/a", Write: true}) {
		t.Errorf("%+v", a.Files)
	}
}
