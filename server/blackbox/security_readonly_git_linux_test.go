package blackbox

import (
	"os/exec"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
)

// Git and go went where files of the workspace told them: git into the repository of another user, by a .git file, a
// link or a list of further objects; go by links in packages and by replacements in go.mod; and with a rule about paths
// go showed what is in a package. What git keeps of a file that a rule denies is shown: the rule is about the file.
func TestGitAndGoReadWhatReadFileMay(t *testing.T) {
	t.Parallel()
	gitPath(t)
	eachReader(t, "Read(secrets/**)", func(t *testing.T, work string, connect func() func(string) string) {
		outside := leaktest.Dir(t)
		cmd := exec.Command("bash", "-ec", strings.NewReplacer("OUT", outside, "MARK", outsideMark).Replace(`
git() { command git -c user.name=a -c user.email=a@b "$@"; }
repo() { mkdir "$1"; git -C "$1" init -q -b main; (cd "$1"; echo x > x; git add x; git commit -qm one); }
printf 'module example.com/m\n\ngo 1.21\n' > go.mod
mkdir OUT/bob secrets src; git -C OUT/bob init -q -b main
(cd OUT/bob; echo MARK > a.txt; printf '// Package bob MARK\npackage bob\n' > b.go; printf 'module example.com/bob\n' > go.mod; git add .; git commit -qm MARK)
git init -q -b main; printf 'MARK\n' > secrets/a.txt; printf '// Package secrets MARK\npackage secrets\n' > secrets/s.go
printf '// Package src shows.\npackage src\n' > src/s.go; echo open > b
git add go.mod secrets src b; git commit -qm one; git tag blob HEAD:secrets/a.txt
echo more >> b; git commit -qam two; git worktree add -q linked; git stash -q 2>/dev/null || true; echo changed >> src/s.go
mkdir file link dot; echo "gitdir: OUT/bob/.git" > file/.git; ln -s OUT/bob/.git link/.git; ln -s ../dot/real dot/.git; echo "gitdir: ../../../$(basename OUT)/bob/.git" > dot/real
repo common; echo OUT/bob/.git > common/.git/commondir
repo alternates; echo OUT/bob/.git/objects > alternates/.git/objects/info/alternates
repo objects; rm -r objects/.git/objects; ln -s OUT/bob/.git/objects objects/.git/objects
repo refs; rm -r refs/.git/refs; ln -s OUT/bob/.git/refs refs/.git/refs; rm -r refs/.git/logs; ln -s OUT/bob/.git/logs refs/.git/logs
repo index; ln -sf OUT/bob/.git/index index/.git/index
repo exclude; ln -sf OUT/bob/a.txt exclude/.git/info/exclude; ln -s ../../../secrets/a.txt exclude/.git/info/attributes
repo config; git -C config config blame.ignoreRevsFile OUT/bob/a.txt
repo tree; git -C tree config core.worktree OUT/bob
repo include; git -C include config include.path OUT/bob/a.txt
mkdir p l; ln -s OUT/bob/b.go p/b.go
mkdir -p rep/in; printf 'module example.com/rep\n\nrequire example.com/bob v0.0.0\n\nreplace example.com/bob v0.0.0 => OUT/bob\n' > rep/go.mod; printf 'package rep\n' > rep/r.go`))
		cmd.Dir = work
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		call := connect()
		var commands []string
		for _, dir := range []string{"file", "link", "dot", "common", "alternates", "objects", "refs", "index", "exclude", "config", "tree", "include"} {
			commands = append(commands, "git -C "+dir+" log -1", "cd "+dir+" && git status", "cd "+dir+"; git rev-list --all --objects")
		}
		commands = append(commands, "git -C exclude check-ignore -vn x", "git -C config blame x", "git -C index ls-files", "git -C objects show main",
			"go doc -src ./secrets", "go doc secrets", "go doc example.com/m/secrets", "cd secrets && go doc", "go list -f {{.Doc}} ./secrets", "go list -json=Doc ./...", "go list -f {{.Doc}} example.com/m/secrets", "go doc -all ./p", "go doc example.com/m/p", "go list -f {{.Doc}} ./p",
			"cd rep && go doc example.com/bob", "cd rep && go list -f {{.Doc}} example.com/bob", "cd rep && go list -deps -json=Doc .", "gofmt p", "gofmt -d secrets")
		for _, command := range commands {
			text := call(command)
			if strings.Contains(strings.ReplaceAll(text, command, ""), outsideMark) {
				t.Errorf("%s: %s", command, text)
			}
		}
		for command, want := range map[string]string{
			"git diff --stat": "src/s.go", "git diff -- src": "+changed", "git diff src/s.go": "+changed", "git show --stat": "two", "git log --oneline": "two", "git show HEAD:b": "open\nmore", "git log -p -- b": "+more", "git show HEAD -- b": "+more", "git blame -s b": "more",
			"git -C linked log --oneline": "two", "cd linked && git status": "nothing to commit", "git status -s src": " M src/s.go", "git cat-file -p HEAD": "two", "git stash list": "",
		} {
			if text := call(command); strings.HasPrefix(text, "! ") || !strings.Contains(text, want) {
				t.Errorf("%s: %s, want %s", command, text, want)
			}
		}
	})
}
