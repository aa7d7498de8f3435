package bash

import (
	"fmt"
	"slices"
	"strings"

	"codehand/tools/bash/programs"
)

// A tried is a program whose commands the kernel judges: every option that is proved, and every pair of them, in every
// way in which the program may read its words otherwise than the table does.
type tried struct {
	name    string // `ls`, `git log`
	row     *programs.Program
	options []*programs.Option
	sets    []string // operands, the most first
	words   []string // of a program that has readings of its own: what stands behind its name
}

// triedPrograms returns what is proved, in the order of the names.
func triedPrograms() []tried {
	var all []tried
	for _, row := range programs.All() {
		if !row.Reads && len(row.Version) == 0 || strings.HasPrefix(row.Name, "@") {
			continue
		}
		for _, name := range row.Names {
			if strings.HasPrefix(name, "@") || slices.Index(row.Names, name) > 0 && slices.Contains(sameProgram, name) {
				continue
			}
			t := tried{name: name, row: row, words: slices.Concat(row.Version, strings.Split(ownWords[name], "\n")), sets: []string{""}}
			if row.Reads && !row.Has("own") && name != "git" {
				t.sets = operandSets(row.Proved)
				t.options = slices.DeleteFunc(row.Options(), func(o *programs.Option) bool { return !o.Safe })
			}
			all = append(all, t)
		}
	}
	return all
}

// sameProgram are other names of the first program of a row, by which it is not installed here.
var sameProgram = strings.Fields("gsort gsed gfind ripgrep pypy nodejs luajit gmake sha1sum sha224sum sha384sum sha512sum base32")

// operandSets are operands of a kind, in several numbers. The files name others: a program that takes one for a list of
// names, or for the file that it writes, is seen.
func operandSets(o programs.Operands) []string {
	files := []string{"names.txt b.txt src", "names.txt b.txt", "names.txt", ""}
	first := map[string]string{"pattern": "a ", "filter": ". ", "script": "p "}[o.First]
	var sets []string
	switch o.Kind {
	case "path", "list":
		sets = files
	case "text", "name":
		sets = files[1:]
	case "rev":
		sets = []string{"HEAD names.txt", "HEAD HEAD~1", "HEAD", "names.txt b.txt", ""}
	case "dir":
		sets = []string{"src"}
	case "number":
		sets = []string{"1 2 3", "1"}
	case "seconds":
		sets = []string{"0"}
	case "format":
		sets = []string{"+%s", ""}
	case "style":
		sets = []string{"aux", ""}
	case "package":
		sets = []string{"./src fmt", "fmt", ""}
	case "variable":
		sets = []string{"GOFLAGS GOROOT", ""}
	default:
		sets = []string{""}
	}
	sets = slices.Clone(sets)
	for i := range sets {
		sets[i] = strings.TrimSpace(first + sets[i])
	}
	return sets
}

// made are the values that options are made for, where a number is none. What is not here is tried with `1`.
var made = map[string]string{
	"ls":   "--color always --format long --indicator-style slash --quoting-style c --sort size --time ctime --time-style iso --classify always --hyperlink always",
	"sort": "--sort version --check quiet -t ,", "wc": "--total never", "nl": "-b a -n rz", "diff": "--color always",
	"du": "--time ctime --time-style iso", "df": "--output source", "tree": "--sort name --charset UTF-8 --timefmt %F",
	"cksum": "-a md5 --algorithm md5", "shasum": "-a 256 --algorithm 256", "od": "-A d -t x1 --address-radix d --format x1",
	"strings": "-t d --radix d -e S --encoding S", "join": "-o auto", "seq": "-f %g --format %g", "uniq": "--all-repeated separate",
	"grep": "--color always --colour always -d recurse --directories recurse -D skip --devices skip --binary-files text -e a --regexp a",
	"rg":   "--type go -t go -T go --type-not go --type-add x:*.x --encoding utf-8 -E utf-8 --engine pcre2 --sort path --sortr path --color always --colors path:fg:red",
	"date": "-d @0 --date @0 --rfc-3339 date -I ns --iso-8601 date", "sed": "-e p --expression p", "ps": "-o pid,args --sort pid -C bash -u 0",
	"go": "-f {{.Dir}} -json Name -tags x",
	"git": "--diff-filter AM --diff-algorithm histogram --word-diff plain --color-moved zebra --color always --stat 80 --dirstat files -L 1,2:README.md " +
		"--pretty fuller --format %H --date iso --decorate full --porcelain v2 --untracked-files all -u all --ignored traditional --sort refname --column always " +
		"--path-format absolute --abbrev-ref strict --encoding UTF-8 --group author --ignore-submodules all --contains HEAD --no-contains HEAD --merged HEAD " +
		"--no-merged HEAD --points-at HEAD --ignore-rev HEAD",
	"find": "-name a.txt -iname a.txt -path ./a -ipath ./a -wholename ./a -regex a -iregex a -regextype egrep -type f -xtype f -perm 644 -user root -group root " +
		"-lname a -ilname a -printf %p -newerat now -newerBt now -newerct now -newermt now",
}

// value returns what is tried as the value of an option: what it is made for, or odd, the name of a file that a program
// which does not take it for the value reads or writes.
func (t *tried) value(o *programs.Option, odd string) string {
	if odd != "" && o.Kind == programs.Text && o.Takes == programs.Value {
		return odd
	}
	if o.Kind == programs.Reads {
		return "b.txt"
	}
	first, _, _ := strings.Cut(t.name, " ")
	if first == "egrep" || first == "fgrep" {
		first = "grep"
	}
	pairs := strings.Fields(made[first])
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i] == o.Name {
			return pairs[i+1]
		}
	}
	return "1"
}

// spellings are the ways in which an option is written with its value.
func (t *tried) spellings(o *programs.Option, value string) []string {
	words, long := t.row.Has("words"), strings.HasPrefix(o.Name, "--")
	switch {
	case o.Takes == programs.Nothing:
		return []string{o.Name}
	case o.Takes == programs.Two:
		return []string{o.Name + " v " + value}
	case o.Takes == programs.Maybe && (long || words):
		return []string{o.Name, o.Name + "=" + value}
	case o.Takes == programs.Maybe:
		return []string{o.Name, o.Name + value}
	case long || words:
		return []string{o.Name + " " + value, o.Name + "=" + value}
	}
	return []string{o.Name + " " + value, o.Name + value}
}

// single returns the commands with one option, and those without.
func (t *tried) single() []string {
	var lines []string
	for _, words := range t.words {
		lines = append(lines, t.proved(words)...)
	}
	for _, set := range t.sets {
		lines = append(lines, t.proved(set)...)
	}
	for _, o := range t.options {
		for _, odd := range []string{"", "names.txt", "@names.txt"} {
			for _, words := range t.spellings(o, t.value(o, odd)) {
				for i, set := range t.sets {
					if i > 1 && odd != "" {
						break
					}
					lines = append(lines, t.proved(words, set)...)
					lines = append(lines, t.proved(set, words)...)
					lines = append(lines, t.proved(words, "--", set)...)
				}
			}
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// pair returns the commands with two options: letters apart before, around and behind operands, and as a cluster. Long
// options cannot run into each other, so that these stand side by side only.
func (t *tried) pair(a, b *programs.Option) []string {
	letters := len(a.Name) == 2 && len(b.Name) == 2
	var lines []string
	for _, odd := range []string{"", "names.txt"} {
		x, y := t.spellings(a, t.value(a, odd)), t.spellings(b, t.value(b, odd))
		if !letters {
			x, y = x[len(x)-1:], y[len(y)-1:]
		}
		for i := range max(len(x), len(y)) {
			one, two := x[min(i, len(x)-1)], y[min(i, len(y)-1)]
			lines = append(lines, t.first(func(set string) []string { return t.proved(one, two, set) })...)
			if letters {
				lines = append(lines, t.first(func(set string) []string { return t.proved(one, set, two) })...)
				lines = append(lines, t.first(func(set string) []string { return t.proved(set, two, one) })...)
			}
		}
		if letters {
			for _, words := range slices.Concat(cluster(a, y), cluster(b, x)) {
				lines = append(lines, t.first(func(set string) []string { return t.proved(words, set) })...)
			}
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// cluster puts a letter before others.
func cluster(o *programs.Option, others []string) []string {
	if o.Takes != programs.Nothing {
		return nil
	}
	var words []string
	for _, each := range others {
		words = append(words, o.Name+each[1:])
	}
	return words
}

// first returns what make returns for the first operands for which that is something.
func (t *tried) first(make func(set string) []string) []string {
	for _, set := range t.sets {
		if lines := make(set); len(lines) > 0 {
			return lines
		}
	}
	return nil
}

// proved is the command with these words, if it is ReadOnly.
func (t *tried) proved(words ...string) []string {
	line := strings.Join(strings.Fields(t.name+" "+strings.Join(words, " ")), " ")
	if class, _ := newScript(line).prove(inRoot); class != ReadOnly {
		return nil
	}
	return []string{line}
}

// pairs calls f with every pair of options but those that another row has, too, for which the same code reads them.
func (t *tried) pairs(f func(a, b *programs.Option)) {
	var other []*programs.Option
	switch {
	case t.name == "egrep" || t.name == "fgrep":
		other = programs.Of("grep").Options()
	case strings.HasPrefix(t.name, "git ") && t.name != "git log":
		other = programs.Of("git log").Options()
	}
	twice := func(o *programs.Option) bool {
		return slices.ContainsFunc(other, func(each *programs.Option) bool { return each.Name == o.Name && each.Takes == o.Takes })
	}
	for i, a := range t.options {
		for _, b := range t.options[:i] {
			if !twice(a) || !twice(b) {
				f(a, b)
			}
		}
	}
}

// text stands for all that is tried.
func (t *tried) text() string {
	var b strings.Builder
	fmt.Fprintln(&b, t.name, t.sets, t.words)
	for _, o := range t.options {
		fmt.Fprintln(&b, o.Name, o.Takes, o.Kind, t.value(o, ""))
	}
	return b.String()
}

// ownWords are for programs with readings of their own, also what these refuse.
var ownWords = map[string]string{
	"echo": "-n names.txt\n-e a\\nb\n-E @names.txt\n-- x", "printf": "%s names.txt\n%d 1\n%b x\n%q x\n%5s names.txt b.txt\n%s -v x\n-v x y\n%n x",
	"test": "-f names.txt\n-e b.txt -a -d src\nnames.txt -nt b.txt\n-t 1\n-o posix\n1 -eq 2\n-w b.txt\n-v x", "[": "-f names.txt ]\n-s b.txt ]\na = b ]\n! -x b.txt ]",
	"command": "-v ls\n-V ls\n-v ./names.txt\n-p ls\nls",
	"sed":     "-n p names.txt\n-n 1,2p names.txt b.txt\ns/a/b/g names.txt\n-e 1d -e s,a,b,p names.txt\n$= names.txt\n1q names.txt\n-n /a/,/b/p names.txt\n1~2d names.txt\n-n 1w names.txt\nw names.txt",
	"jq":      ".a data.json\n.items[0].name data.json\n-r .items data.json\n--arg a 1 $a data.json\n--args . data.json\n-n input data.json\n-n inputs data.json names.txt\nkeys data.json\n-n env\n-n input_line_number",
	"find":    ". src -name a.txt -o -type f\n. -maxdepth 1 -newer b.txt -ls\nsrc ! -name a -printf %p\n. -delete\n. -fls names.txt\n. -fprint names.txt\n. -exec ls ;\n-L . -samefile b.txt\n-files0-from names.txt",
	"ps":      "-ef\n-eo pid,args\n-eo pid,args --sort=-pid\n-e -o etime\n-auxww\n-p 1 -f\n-e -up1\n-e -u p1\n-ef -o pid\naux -C e\nax -o cmd -C e\n-e -o nosuch\n-C bash -x",
	"git": "log -1 --format=%(describe)\nlog -1 --format=%s\nconfig user.name\nconfig --get core.bare\nremote get-url origin\n-C src log -1\n--no-pager diff\nshow HEAD:names.txt\nshow :b.txt\ncat-file -p HEAD\n" +
		"rev-parse HEAD\ncat-file blob HEAD:README.md\ngrep a\n-c core.pager=x log\nls-files\nlog -p -1\ndiff --stat HEAD~1 HEAD",
	"cd": "src", "type": "ls\n-a ls\n-p ./names.txt\n-P ls", "which": "ls\n-a ls\n./names.txt", "go": "version\nenv\nenv GOROOT\nhelp\nhelp list\nmod graph\nlist -m\nlist .",
}
