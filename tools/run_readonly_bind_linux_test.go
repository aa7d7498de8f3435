package tools

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"codehand/tools/tool"
)

// bindRig is a workspace with links inside it, names that are hard to quote, and nothing that leads out.
func bindRig(t *testing.T, deny ...string) *rig {
	t.Helper()
	r := newRig(t, deny...)
	for name, text := range map[string]string{
		"a.go": "package a\nfunc A() {}\n", "b.go": "package b\n", "go.mod": "module m\n\ngo 1.26\n", "src/x.go": "package x\n// TODO x\n", "src/y.txt": "y\nTODO y\n",
		"src/deep/z.txt": "TODO z\n", "real/one.txt": "one\n", "real/two words.txt": "two\n", "real/it's.txt": "quote\n", "-n": "dash\n", ".hidden": "hidden\n", "$HOME;x": "odd\n",
		"new\nline.txt": "newline\n", "[b].txt": "bracket\n", "other/w.txt": "TODO w\n", "\xff.bin": "bytes\n",
	} {
		r.write(name, text)
	}
	for name, to := range map[string]string{"l": "real", "lf.txt": "real/one.txt", "src/in": "../other", "src/deep/up": "..", "gone": "nowhere", "loop": "loop", "abs": filepath.Join(r.dir, "real")} {
		if err := os.Symlink(to, filepath.Join(r.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// linked are lines that name a file by a link, where a bound command names what it leads to, and lines with bytes.
var linked = regexp.MustCompile(`\babs\b|\bloop\b|\bl\b|\bsrc/in\b|\blf\.txt\b|src/deep/up|\?|\x{FFFD}|^\./-n$`)

// What a bound command prints is what bash makes of it as it was written.
func TestBoundAsBash(t *testing.T) {
	t.Parallel()
	r := bindRig(t)
	for _, command := range []string{
		"cat a.go", "cat *.go", "cat ./*", "wc -l *.go src/*", "head -n 1 src/*.txt real/*", "cat real/*", "ls", "ls src", "ls -d -- *", "ls [a-z]*", "ls gone", "find -L src", "ls -LR src", "ls -d */", "ls -l l", "ls l", "ls l/",
		"echo *", "echo */*", "echo 'a b' *.go \"*\"", "echo nothing*", "echo [ab].go", "echo '[b]'*", "echo \"[b]\".txt", "echo ./[!a]*.go", "echo src/**", "echo **/*.txt",
		"printf '%s\\n' src/* real/*", "cat l/one.txt", "cat lf.txt", "cat l/*", "cat abs/one.txt", "cat missing", "cat a.go missing b.go", "cat gone", "cat loop", "ls missing* src",
		"cat < a.go", "cat < l/one.txt", "cat < real/o*", "wc -l < missing", "cd src && cat x.go", "cd src && cat *.txt && cd deep && cat z.txt", "cd l && pwd -P && cat one.txt",
		"cd missing && cat a.go", "cd missing; cat a.go", "cd missing || cat a.go", "cd src | cat a.go", "cd src || cd real; cat x.go", "! cd src; cat x.go", "cd src 2>/dev/null; ls",
		"test -f a.go && echo yes", "test -f missing || echo no", "[ -d src ] && ls src", "[ -L l ] && echo link", "test -h lf.txt && echo link", "test l/one.txt -ef lf.txt && echo same",
		"grep -rn TODO src", "grep -rn TODO src | sort", "grep TODO src/*", "grep -l TODO *.go src/*.txt", "grep -rn --include=*.go package .", "grep -rc package --include='*.go' src",
		"find . -name '*.go' | sort", "find src -type f | sort", "find src/ -maxdepth 1 | sort", "find l", "find l/ | sort", "find -L src -name w.txt",
		"stat -c %n l lf.txt", "stat -c %F l", "stat -L -c %F l", "readlink l lf.txt", "readlink -f l/one.txt", "realpath l/one.txt missing", "file -b l", "du -a real | sort -k2", "du l",
		"diff a.go b.go", "diff src/y.txt src/deep/z.txt", "sort real/* | uniq -c", "tail -n 1 a.go; head -n 1 b.go", "sed -n 1p l/*", "cut -c1-3 a.go", "md5sum a.go lf.txt",
		"cat -- -n", "cat \"two words.txt\"", "cat 'real/two words.txt'", "cat real/it\\'s.txt || true", "cat \"real/it's.txt\"", "grep odd ./\\$* ; true", "cat real/*words*", "cat ./new*", "cat ./$'x' || true",
		"git --version", "basename src/x.go", "true && false || echo or", "seq 3", "which ls", "command -v cat", "jq -r .a[0] missing", "cat <<< *.go", "cat <<'EOF'\n*.go\nEOF", "xxd ./??.bin", "cat ./?.bin",
		"cd src && test -f x.go && cat x.go; cat y.txt", "test -d src && cd src && ls; true",
	} {
		want := exec.Command("bash", "--noprofile", "--norc", "-c", command)
		want.Dir, want.Env = r.dir, []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "HOME=/nonexistent"}
		var out, errs strings.Builder
		want.Stdout, want.Stderr = &out, &errs
		err := want.Run()
		res, text := r.do("run_readonly", quote(command))
		if res.Failed == tool.NotReadOnly {
			continue
		}
		// the shown text is made of both streams; what it leaves out of bytes does not matter here
		clean := func(s string) string { return strings.TrimSpace(strings.ReplaceAll(s, "\xff", "?")) }
		for _, part := range []string{clean(out.String()), clean(errs.String())} {
			for line := range strings.Lines(part) {
				if line = strings.TrimSpace(line); line != "" && !strings.Contains(text, line) && !linked.MatchString(line) {
					t.Errorf("%s: %q is not in\n%s\nbash says (%v)\n%s%s", command, line, text, err, &out, &errs)
				}
			}
		}
		if res.Failed != "" {
			continue
		}
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if !strings.Contains(clean(out.String()+errs.String()), line) && !linked.MatchString(line) && line[0] != '[' &&
				line != "(no output)" && !strings.Contains(command+" ", " l") && !strings.Contains(line, "real") {
				t.Errorf("%s: bash does not print %q", command, line)
			}
		}
	}
}

// Which text runs: what leads through no link stays as it is written.
func TestBoundText(t *testing.T) {
	t.Parallel()
	r := bindRig(t)
	for command, want := range map[string]string{
		"cat a.go | sort > /dev/null":         "cat a.go | sort > /dev/null",
		"grep -rn 'x*' ./src":                 "grep -rn 'x*' ./src",
		"cat l/one.txt":                       "cat real/one.txt",
		"cat abs/one.txt":                     "cat real/one.txt",
		"cat $WORK/l/one.txt":                 "cat $WORK/real/one.txt",
		"cat missing":                         "cat /proc/-/missing",
		"cat real/*":                          "cat 'real/it'\\''s.txt' real/one.txt 'real/two words.txt'",
		"echo nothing*":                       "echo 'nothing*'",
		"cat l/nothing*":                      "cat 'l/nothing*'",
		"ls -- *-n":                           "ls -- ./-n",
		"ls -l l":                             "ls -l l",
		"ls l":                                "ls real",
		"cd l && cat one.txt":                 "{ cd real || exit; } && cat one.txt",
		"cd l 2>/dev/null && cat two*":        "{ cd real 2>/dev/null || exit; } && cat 'two words.txt'",
		"cd missing && cat one.txt":           "cd /proc/-/missing && cat one.txt",
		"grep -Rn TODO src":                   "grep -rn TODO src other",
		"grep --dereference-recursive x real": "grep --recursive x real",
		"rg -L TODO src":                      "rg --no-follow TODO src other",
		"rg -nL TODO src":                     "rg -n TODO src other",
		"diff src real":                       "diff --no-dereference src real",
		"grep -rn --include=*.go x .":         "grep -rn '--include=*.go' x .",
		"git log -- gone missing l/x":         "git log -- gone missing l/x",
		"go list ./src/...":                   "go list ./src/...",
		"go list ./l/...":                     "go list ./real/...",
		"date --reference=lf.txt":             "date '--reference=real/one.txt'",
		"date -rlf.txt":                       "date -rreal/one.txt",
		"test -f l/one.txt":                   "test -f real/one.txt",
		"cat < lf.txt":                        "cat < real/one.txt",
	} {
		command, want = strings.ReplaceAll(command, "$WORK", r.dir), strings.ReplaceAll(want, "$WORK", r.dir)
		call, err := runReadonly.Bind(r.State, []byte(quote(command)))
		if err != nil {
			t.Errorf("%s: %v", command, err)
			continue
		}
		if got := call.Targets[0].Analysis.Bound; got != want {
			t.Errorf("%s: bound is\n%s, want\n%s", command, got, want)
		}
	}
}
