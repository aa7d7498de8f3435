package bash

import (
	"slices"
	"strings"
	"testing"
)

// touchedBy says what a command touches: `a` is read, `a!` changed, `a?` perhaps used, `a/**` is
// a directory below which all is, `r` and `w` say that what it reads or changes is not all known.
func touchedBy(command string) string {
	a := Analyze(command, inRoot)
	var got []string
	for _, f := range a.Files {
		if f.Deep {
			got = append(got, f.Path+"/**"+map[bool]string{true: "!"}[f.Write])
		}
		switch {
		case f.Perhaps:
			f.Path += "?"
		case f.Write:
			f.Path += "!"
		}
		got = append(got, f.Path)
	}
	if a.UnsureReads != "" {
		got = append(got, "r")
	}
	if a.UnsureWrites != "" {
		got = append(got, "w")
	}
	slices.Sort(got)
	return strings.Join(slices.Compact(got), " ")
}

// A rule saw the words of a command as they are written, and so nothing of what its variables hold and of what pipes
// carry. Each file that the text gives them is named, or the command counts as one that may touch any.
func TestComputedIsUnsure(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"f=x; cat $f": "x", "f=x; cat ${f} \"$f\" '$f'": "$f x", "cat $f": "r", "f=x cat $f": "r x", "cat $f; f=x": "r x",
		"true && f=x && cat $f": "x", "true && f=x; cat $f": "r x", "if a; then f=x; cat $f; fi": "x", "if a; then f=x; fi; cat $f": "r x", "(f=x); cat $f": "r x", "f=x & cat $f": "r x",
		"f=x; f=y; cat $f": "x y", "f=x; f+=y; cat $f": "x xy", "f=x; f=$f.y; cat $f": "x x.y", "f=$f.y; cat $f": ".y r", "f=a g=$f; cat $g": "a",
		"f='a b'; cat $f": "a b", "f='a b'; cat \"$f\"": "a b", "f='*.go'; cat $f": "r", "f='*.go'; cat \"$f\"": "*.go", "f=; cat $f x": "x", "f=; cat \"$f\" x": "x", "f='-n 5'; head $f x": "5? x",
		"cat ${f:-x}": "r x", "cat ${f:-x y}": "r x y", "f=y; cat ${f:-x}": "y", "f=; cat ${f:-x} ${f-x}": "x", "f=y; cat ${f:+x}": "x", "cat ${f:+x}": "x", "cat ${f:=x} $f": "r x",
		"f=a.b.c; cat ${f%.*} ${f%%.*} ${f#*.} ${f##*.}": "a a.b b.c c", "f=a/b; cat ${f##*/} ${f%/*}": "a b", "f=axa; cat ${f/a/b} ${f//a/b}": "bxa bxb", "f=abcd; cat ${f:1} ${f:1:2}": "bc bcd",
		"f=Ab; cat ${f^^} ${f,,} ${f^} ${f,}": "AB Ab ab", "f=x; cat ${f@Q}": "r", "f=x; cat ${#f}": "r", "f=x; g=f; cat ${!g}": "x", "f=a; cat ${f%[a-z]}": "r", "f=a; cat ${f:$n}": "r",
		"a=(x y); cat ${a[@]}": "x y", "a=(x y); cat \"${a[*]}\"": "x y", "a=(x y); cat $a": "x", "a=(x y); cat ${a[1]}": "x y", "a=(x); a+=(y); cat ${a[@]}": "x y", "a=(*.go); cat \"${a[@]}\"": "r",
		"for f in x y; do cat $f; done": "x y", "for f in x *; do cat \"$f\"; done": "r x", "for f in x; do :; done; cat $f": "x", "for f in a{b,c}; do cat $f.x; done": "ab.x ac.x", "for f in $(a); do cat $f; done": "r",
		"for f in x; do mv $f $f.bak; done": "x! x.bak! x.bak/x! x/**!", "set -- x y; cat $1": "x", "set -- x y; cat $2": "y", "set -- x y; cat \"$@\"": "x y", "set x; for f; do cat $f; done": "x", "cat $1": "r", "set -- x y; shift; cat $1": "x y",
		"f() { cat $1; }; f x": "x", "f() { cat $2; }; f x y": "y", "f() { g $1; }; g() { cat $1; }; f x": "x", "sh -c 'cat $0 $1' x y": "x y", "env f=x sh -c 'cat $f'": "x", "f=x sh -c 'cat $f'": "r x",
		"f=x; sh -c \"cat '$f'\"": "$f x", "c='cat x'; $c": "x", "c='cat x'; sh -c \"$c\"": "x", "read f <<< x; cat $f": "x", "read -r a b <<< 'x y'; cat $b": "x y", "read f < l; cat $f": "l r",
		"printf -v f %s.y x; cat $f": "x.y", "export f=x; cat $f": "x", "declare 'f=x'; cat $f": "x", "declare -n f=g; g=x; cat $f": "r", "declare -l f; f=X; cat $f": "X r", "mapfile -t f <<< x; cat $f": "x", "IFS=:; f=a:b; cat $f \"$f\"": "a:b r",
		"d=e; cd $d; cat x": "e/x x", "for d in e g; do cd $d; cat x; done": "r x", "cat $HOME/x ~/y $PWD/z ~+/w": "w z ~/x ~/y", "f=~/x; cat $f": "~/x", "cat $X/y": "r y", "cat ~-/x": "r ~-/x",
		"while read f; do cat $f; done <<< x": "x", "while read f; do cat $f; done < l": "l r", "ls | while read f; do cat $f; done": "r", "printf '%s\\n' x y | while read f; do cat $f; done": "x y",

		"cd d; cat x": "d/x x", "cd d && cat x": "d/x", "cd d && cat x; cat y": "d/x d/y y", "cd d || exit; cat x": "d/x", "cd d || { a; exit 1; }; cat x": "d/x", "if cd d; then cat x; else cat y; fi": "d/x d/y y", "(cd d && cat x); cat y": "d/x y",
		"false && cd d; cat x": "d/x x", "cd d & cat x": "d/x x", "! cd d && cat x": "d/x x", "cd d || cat x": "d/x x", "cd d; cat *": "r", "cd a && { cd b || exit; cat x; }; cat y": "a/b/x a/b/y y", "case $X in a) cd d;; b) cat x;; esac": "d/x x",
		"cat $(echo x y)": "x y", "cat \"$(echo x)\"": "x", "cat $(echo $(echo x))": "x", "cat $(ls)": "r", "cat $(ls -a)": "r", "cat $(ls d)": "d r", "cat $(find d -name '*.x')": "d r", "cat $(a)": "r",
		"cat $(cat <<< x)": "x", "cat $(cat l)": "l r", "cat $(< l)": "l r", "cat $(basename a/x) $(dirname a/x) $(realpath x)": "a x", "cat $(printf %s.y x)": "x.y", "cat $(true; echo x)": "x", "cat $(echo x | head -1)": "x", "cat $(echo x | rev)": "r",
		"echo x | xargs cat": "x", "xargs cat <<< 'x y'": "x y", "xargs cat <<E\nx\ny\nE": "x y", "echo x | xargs -I{} cp {} d/{}": "d/x! d/x/x! x", "printf 'x\\0y' | xargs -0 cat": "x y", "echo 'x;y' | xargs -d ';' cat": "r", "echo \"'x y' z\" | xargs cat": "x y z",
		"a | xargs cat": "r", "a | xargs rm": "w", "xargs -a l cat": "l r", "ls | xargs rm": "w", "echo x | xargs sh -c 'cat $0'": "x", "ls | grep x | xargs cat": "r", "echo cat x | xargs env": "x",
		"find . -exec rm {} +": ". .! ./** w", "find d -name x -delete": "d w", "find . -name x -exec cat {} \\;": ". ./** r", "ln x y": "x x! x/** x/**! y! y/x!", "cp -l x y": "x x! y! y/x!", "link x y": "x x! x/** x/**! y! y/x!",
		"cat <(cat x)": "x", "cat < ${f:-x}": "r x", "f=x; a > $f": "x!", "cat x{1..3}": "r", "shopt -s dotglob; cat *": "r", "grep -r a s*": "r", "cat @(a|b)": "r",
		// programs that the table does not have
		"a x": "x?", "a --b=x -cx": "x?", "a $f": "r w", "make $f": "", "a x*": "r w", "python -c 'open(\"x\")'": "", "echo $f x": "", "fmt x": "x", "git add x": "x?", "git commit -m x": "", "tar xf x": "w x? xf?",
	} {
		got := " " + touchedBy(command) + " "
		for each := range strings.FieldsSeq(want) {
			reads, writes := strings.Contains(got, " r "), strings.Contains(got, " w ")
			switch {
			case strings.Contains(got, " "+each+" "):
			case strings.HasSuffix(each, "?") && reads && writes:
			case strings.HasSuffix(each, "!") && writes, each != "w" && !strings.HasSuffix(each, "!") && reads:
			default:
				t.Errorf("%s: %s is not seen: %s", command, each, got)
			}
		}
	}
}

// A file or a directory that is protected whatever the rules say was not seen behind a variable. Where the kernel holds
// the command it keeps those itself.
func TestGuesses(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"f=.git/config; echo a > $f": ".git/config!", "for f in a .env; do cat $f; done": ".env", "echo .env | xargs cat": ".env", "f() { cat $1; }; f .env": ".env",
		"read f <<< .env; cat $f": ".env", "cat $(echo .env)": ".env", "sh -c 'cat $0' .env": ".env", "printf -v f .env; cat $f": ".env", "cat ${f:-.env}": ".env", "d=.git; mv $d x": ".git!", "a=.g; b=it/config; echo > $a$b": ".git/config!",
		"f=.env; sh -c \"cat '$f'\"": ".env", "cd d; f=.env; cat $f": "d/.env", "f=~/.ssh/id; tee $f": "~/.ssh/id!", "a=(x .env); cat \"${a[@]}\"": ".env",
	} {
		a := Analyze(command, inRoot)
		is := func(f FileUse) bool {
			return f.Guess && f.Path == strings.TrimSuffix(want, "!") && f.Write == strings.HasSuffix(want, "!")
		}
		if !slices.ContainsFunc(a.Files, is) {
			t.Errorf("%s: %s is no guess: %+v", command, want, a.Files)
		}
		if a.Hold(); slices.ContainsFunc(a.Files, func(f FileUse) bool { return f.Guess }) {
			t.Errorf("%s: there are guesses though the kernel holds it", command)
		}
	}
	for command, want := range map[string]string{
		"x=/; rm -rf $x": "/", "for d in a /; do rm -rf \"$d\"; done": "/", "f() { rm -r $1; }; f /": "/", "x=~; rm -r $x": "~", "cat a; rm -rf b": "b", "x=/; rm -rf b": "b",
	} {
		a := Analyze(command, inRoot)
		if a.Hold(); !slices.Contains(a.Removes, want) || len(a.Removes) != 1 && want == "b" {
			t.Errorf("%s removes %q, want %s", command, a.Removes, want)
		}
	}
}

// What a rule about commands may be evaded by has an open form.
func TestOpenForms(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"git push": "", "x=push; git $x": "git *", "git $x push": "git * push", "$x push": "* push", "git pu$x": "git pu*", "/usr/bin/g$x push": "g* push", "git -C $d push": "git -C * push", "git -C d $x": "git *",
		"ls | xargs git": "git *", "ls | xargs -I{} git {} x": "git * x", "ls | xargs env": "*", "parallel git ::: push": "git *", "parallel git {} a ::: push": "git * a", "find $d -exec rm {} \\;": "rm * *",
		"find . -exec git a{} \\;": "git *", "timeout $n git $x": "git *", "env A=$x git push": "env A=* git push", "if a; then git \"$x\"; fi": "git *", "sh -c 'git $0' push": "git *", "sudo $x git push": "* git push",
	} {
		a := Analyze(command, inRoot)
		var open []string
		for _, p := range a.Parts {
			open = append(open, p.Open...)
		}
		got := strings.ReplaceAll(strings.Join(open, "|"), string(Any), "*")
		if want != "" && !slices.Contains(strings.Split(got, "|"), want) || want == "" && got != "" {
			t.Errorf("%s: open forms %q, want %q", command, got, want)
		}
	}
}

// A line whose command comes from a variable hid from R7 what it runs.
func TestValuesAreCommands(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"c='git push --force'; $c", "c='git push --force'; sh -c \"$c\"", "c='sudo x'; eval \"$c\"", "for c in 'git push -f'; do $c; done"} {
		a := Analyze(command, inRoot)
		if a.Hold(); a.Class != Dangerous {
			t.Errorf("%s: %s (%s)", command, a.Class, a.Why)
		}
	}
}

// A command with very many values took time and memory without a limit.
func TestGuessesAreBounded(t *testing.T) {
	t.Parallel()
	many := strings.Repeat("f=xx; ", 50) + strings.Repeat("f=y$f; cat $f; ", 500)
	for _, command := range []string{many, strings.Repeat("a=b; ", 20_000) + "$a", "for f in " + strings.Repeat("a b c ", 10_000) + "; do cat $f > $f; done", strings.Repeat("ls | xargs ", 5000) + "rm"} {
		a := Analyze(command, inRoot)
		size := 0
		for _, p := range a.Parts {
			for _, open := range p.Open {
				size += len(open)
			}
		}
		if a.UnsureReads == "" && a.Person == "" || len(a.Files) > 100_000 || size > 64<<20 {
			t.Errorf("%.60s: %d files, %d bytes of open forms, %q", command, len(a.Files), size, a.UnsureReads)
		}
	}
}
