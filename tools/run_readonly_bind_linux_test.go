package tools

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"codehand/tools/bash"
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
		"grep package *.go", "grep -n TODO *", "grep dash *", "head -n 1 *.go", "sort -r *.go", "grep -c package a* b*", "grep p* a.go", "cd real && grep -c o *", "cd src && test -f x.go && cat x.go; cat y.txt", "test -d src && cd src && ls; true",
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

// A glob of which one match led outside was left as it was, so that a directory named `--compress-program=.` made the
// sort of `sort */x`, which counted as reading, run ./x.
func TestGlobThatLeadsOutside(t *testing.T) {
	t.Parallel()
	r := bindRig(t)
	outside := t.TempDir()
	r.write("--compress-program=./x", "touch made")
	if err := os.WriteFile(filepath.Join(outside, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(r.dir, "out")); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"sort */x", "wc -l a.go; sort */x", "cat ./*/x", "cat < ./[o]*/x", "go list ./*/x"} {
		r.fails(tool.OutsideRoots, "run_readonly", quote(command))
		call, err := runShell(nil).Bind(r.State, []byte(quote(command)))
		if err != nil {
			t.Errorf("%s: %v", command, err)
			continue
		}
		a := call.Targets[0].Analysis
		asks := func(u bash.FileUse) bool { return u.Path == filepath.Join(r.dir, "out/x") }
		if a.Class == bash.ReadOnly || a.IfBound || a.Bound != "" || !slices.ContainsFunc(a.Files, asks) {
			t.Errorf("%s: %v (%s), bound is %q, files are %+v", command, a.Class, a.Why, a.Bound, a.Files)
		}
	}
}

// A file that became a link out of the roots after run_shell had decided, and before the command ran, was read without
// a question: the text stayed the same.
func TestLedOutsideMeanwhile(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	for _, name := range []string{"g", "f"} {
		if err := os.WriteFile(filepath.Join(outside, name), []byte("canary\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, command := range []string{"cat f", "cat d/g", "cat d/*", "cat < f", "cd d && cat g", "cat $WORK/f", "head -n 1 ./f"} {
		r := newRig(t)
		r.write("f", "inside\n")
		r.write("d/g", "inside\n")
		command = strings.ReplaceAll(command, "$WORK", r.dir)
		call, err := runShell(nil).Bind(r.State, []byte(quote(command)))
		if err != nil || call.Targets[0].Analysis.Class != bash.ReadOnly {
			t.Fatalf("%s: %v %+v", command, err, call.Targets)
		}
		for name, to := range map[string]string{"f": "f", "d": "."} {
			if err := os.RemoveAll(filepath.Join(r.dir, name)); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(filepath.Join(outside, to), filepath.Join(r.dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		// as a link out of the roots it is a question, and runs if that is answered
		again, fault := runShell(nil).Bind(r.State, []byte(quote(command)))
		res, err := call.Run(t.Context(), r.Env(call))
		if refused, ok := errors.AsType[*tool.Refusal](err); ok {
			res.Text = refused.Text
		} else if err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		if strings.Contains(res.Text, "canary") || fault != nil || len(again.Targets[0].Analysis.Files) == 0 {
			t.Errorf("%s: %s; then %v %+v", command, res.Text, fault, again.Targets)
		}
	}
}

// Which text runs: what leads through no link stays as it is written.
func TestBoundText(t *testing.T) {
	t.Parallel()
	r := bindRig(t)
	if err := os.Symlink("a.go", filepath.Join(r.dir, "lf.go")); err != nil {
		t.Fatal(err)
	}
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
		"grep -h dash [-]n":                   "grep -h dash ./-n",
		"head -n 1 ?o.mod":                    "head -n 1 go.mod",
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
		"go list a.go":                        "go list a.go",
		"go list lf.go":                       "go list ./a.go",
		"go list example.com/x.go":            "go list example.com/x.go",
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
