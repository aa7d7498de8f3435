package bash

import (
	"os/exec"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"codehand/filestate/leaktest"
	"codehand/tools/bash/programs"
)

var corpora = []string{"shell-commands.tsv", "shell-readonly.tsv", "shell-dangerous.tsv"}

// provedNames are the programs of which something is proved.
func provedNames() map[string]bool {
	names := map[string]bool{}
	for _, row := range programs.All() {
		for _, name := range row.Names {
			if name, _, _ := strings.Cut(name, " "); row.Reads && !strings.HasPrefix(name, "@") {
				names[name] = true
			}
		}
	}
	return names
}

// TestReadOnlyCorpora: nothing that writes is proved, by the rules R0 to R6 alone and with R7; what only reads is.
func TestReadOnlyCorpora(t *testing.T) {
	t.Parallel()
	for _, name := range corpora {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reads, proved, others := 0, 0, 0
			for _, r := range corpus(t, name) {
				class, why := newScript(r.command).prove(inRoot)
				a := Analyze(r.command, inRoot)
				switch {
				case r.class != "readonly":
					others++
					if class == ReadOnly || a.Class == ReadOnly {
						t.Errorf("proved although %s: %q (%s)", r.class, r.command, r.why)
					}
					if class != ReadOnly && !strings.HasPrefix(why, "R") {
						t.Errorf("%q: why %q does not begin with a rule", r.command, why)
					}
				case class == ReadOnly && a.Class == ReadOnly && a.Why == "":
					proved++
					reads++
				default:
					reads++
					t.Logf("not proved: %q: %s", r.command, a.Why)
				}
			}
			t.Logf("%d of %d that only read are proved; 0 of %d others", proved, reads, others)
			if proved*100 < reads*98 {
				t.Errorf("%d of %d proved, want 98 %%", proved, reads)
			}
		})
	}
}

// TestWhy shows what reasons look like: the rule, the command, the word.
func TestWhy(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"sort --compress-program=./x": "R5: sort: option --compress-program=./x is not on the list",
		"ls\x00":                      "R0: control character U+0000 at byte 2",
		"ls \u200b":                   "R0: invisible character U+200B at byte 3",
		"ls\u00a0x":                   "R0: white space U+00A0 at byte 2",
		"ls \xff":                     "R0: invalid UTF-8 at byte 3",
		"ls \\\n":                     "R0: backslash before a newline at byte 3",
		"ls (":                        "R1: it does not parse: 1:1: `foo(` must be followed by `)`",
		"":                            "R1: there is no command",
		strings.Repeat("ls;", 60):     "R1: 60 simple commands, at most 50",
		"echo $(id)":                  "R2: substitution: $(id)",
		`echo "a${b}"`:                "R2: expansion: \"a${b}\"",
		"A=1 ls":                      "R2: assignment: A=1",
		"ls &":                        "R2: & starts it in the background",
		"ls | cat &":                  "R2: & starts it in the background",
		"ls |& cat":                   "R2: operator |&",
		"(ls)":                        "R2: subshell: (ls)",
		"for i in a\ndo ls\ndone":     "R2: loop: for i in a do ls done",
		"ls > a.txt":                  "R3: redirection > a.txt",
		"ls < ../a":                   "R3: redirection < ../a: path ../a goes up",
		"vim x":                       "R4: vim is not on the list",
		"'ls'":                        "R4: the name of the command is not one plain word: ls",
		"cat a ../b":                  "R5: cat: path ../b goes up",
		"cat /etc/hosts":              "R5: cat: path /etc/hosts is outside",
		"find . -fls x":               "R5: find: word -fls is not on the list",
		"sed -n '1p;w x' a":           "R5: sed: script 1p;w x is not on the list",
		"head -n":                     "R5: head: option -n has no value",
		"head -n -c":                  "R5: head: value -c of option -n looks like an option",
		"rg foo *":                    "R5: rg: glob * may turn into an option",
		"ls && grep x * | cat":        "R5: grep: glob * may turn into an option", // a proof that was kept
		"git push":                    "R6: git push is not on the list",
		"git diff --output=x":         "R6: git diff: option --output=x is not on the list",
		"git -c a=b status":           "R6: git: option -c before the sub-command is not on the list",
		"git log --format=%G?":        "R6: git: word --format=%G? starts gpg",
	} {
		if class, why := newScript(command).prove(inRoot); why != want || class == ReadOnly {
			t.Errorf("%q: %v %q, want %q", command, class, why, want)
		}
	}
}

// TestValuesAreMissing: a line that ended with the option of a script (`sed -e`) panicked. No option of the table may
// rely on its value, whatever stands around it.
func TestValuesAreMissing(t *testing.T) {
	t.Parallel()
	lines := 0
	for _, row := range programs.All() {
		if strings.ContainsAny(row.Name, "@*") {
			continue
		}
		for _, o := range row.Options() {
			glued := o.Name + "="
			for _, words := range [][]string{{o.Name}, {"x", o.Name}, {o.Name, o.Name}, {"-n", o.Name}, {o.Name, "--"}, {glued}, {"''", glued}, {o.Name, "''"}, {o.Name, "x"}} {
				command := row.Name + " " + strings.Join(words, " ")
				lines++
				Explain(command, inRoot)
			}
		}
	}
	if lines < 1000 {
		t.Errorf("only %d lines", lines)
	}
}

// TestUnknown: what the grammar does not cover is Unknown, the rest Writes.
func TestUnknown(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]Class{
		"ls": ReadOnly, "touch a": Writes, "ls &": Writes, "ls\r": Unknown, "ls 'x": Unknown, "": Unknown,
		strings.Repeat("ls|", 50) + "ls": Unknown, strings.Repeat("ls|", 49) + "ls": ReadOnly,
		"cat " + strings.Repeat("a", maxCommand-4): ReadOnly, "cat " + strings.Repeat("a", maxCommand-3): Unknown,
	} {
		if class, why := newScript(command).prove(inRoot); class != want {
			t.Errorf("%.40q: %v %s, want %v", command, class, why, want)
		}
	}
}

// TestProvePart looks at the simple commands of a line, each alone.
func TestProvePart(t *testing.T) {
	t.Parallel()
	var got []string
	for _, p := range Analyze("ls; touch a && cat <b || cat <../c | (pwd); x=1", inRoot).Parts {
		got = append(got, p.Class.String()+" "+p.Why)
	}
	want := []string{
		"readonly ",
		"write R4: touch is not on the list",
		"readonly ",
		"write R3: redirection <../c: path ../c goes up",
		"readonly ",
		"write R2: assignment: x=1",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if p := Analyze("ls\x00; pwd", inRoot).Parts[0]; p.Class != Unknown || !strings.HasPrefix(p.Why, "R0") {
		t.Errorf("a part of a text with NUL: %v %s", p.Class, p.Why)
	}
}

// TestDirectory: after `cd` with an absolute path, relative ones start there, and so must be inside from there.
func TestDirectory(t *testing.T) {
	t.Parallel()
	inside := func(path string) bool {
		return path == "/proj" || path == "/proj/a" || path == "/proj/a/b" || path == "/proj/a/b/c"
	}
	for command, want := range map[string]Class{
		"cd /proj/a && cat b":            ReadOnly,
		"cd /proj/a && cat x":            Writes,
		"cd /proj && cd a && cat b":      ReadOnly,
		"cd /proj && cd a && cat a":      Writes,
		"cd x && cat y":                  ReadOnly,
		"cd /elsewhere":                  Writes,
		"git -C /proj/a show b":          ReadOnly,
		"git -C /proj/a show x":          Writes,
		"git -C /proj/a status; cat x":   ReadOnly,
		"git -C /proj -C a/b show c":     ReadOnly,
		"git -C /proj -C a/b show x":     Writes,
		"cd /proj/a; git -C b show c":    ReadOnly,
		"cd /proj/a; git -C b show b":    Writes,
		"cat /proj/a /proj//a/./b":       ReadOnly,
		"cat /proj/a/b/d":                Writes,
		"cd /proj/a; cat < b":            ReadOnly,
		"cd /proj/a; cat < x":            Writes,
		"find /proj/a -newer /proj/a/b":  ReadOnly,
		"find /proj/a -newer /proj/a/bb": Writes,
	} {
		if class, why := newScript(command).prove(inside); class != want {
			t.Errorf("%q: %v %s, want %v", command, class, why, want)
		}
	}
}

// TestParser holds the facts about the parser (v3.14.1) that R0, R2 and R3 rest on.
func TestParser(t *testing.T) {
	t.Parallel()
	parse := func(text string) []*syntax.Stmt {
		s := newScript(text)
		if s.err != nil {
			t.Fatalf("%q: %v", text, s.err)
		}
		return s.file.Stmts
	}
	words := func(stmt *syntax.Stmt) (all []string) {
		for _, w := range stmt.Cmd.(*syntax.CallExpr).Args {
			all = append(all, w.Lit())
		}
		return all
	}
	if got := words(parse("l\x00s -l\x00a")[0]); strings.Join(got, " ") != "ls -la" {
		t.Errorf("NUL is no longer dropped: %q", got)
	}
	if got := parse("ls\r\npwd"); len(got) != 2 || words(got[0])[0] != "ls" {
		t.Errorf("CR LF is no longer a newline: %d commands", len(got))
	}
	if got := parse("ls #x\\\nrm y"); len(got) != 1 || strings.Join(words(got[0]), " ") != "ls rm y" {
		t.Errorf("a comment no longer goes on behind a backslash: %d commands", len(got))
	}
	if got := words(parse("cat {a,b}.txt ~/x a=~")[0]); strings.Join(got, " ") != "cat {a,b}.txt ~/x a=~" {
		t.Errorf("braces and tildes no longer stand in literals: %q", got)
	}
	to := func(text string) syntax.RedirOperator { return parse(text)[0].Redirs[0].Op }
	if to("ls >&out") != to("ls >&2") {
		t.Error("`>&file` no longer has the operator of `>&2`")
	}
}

// TestNested: the parser has no limit of its own, and a stack that is full ends the process.
func TestNested(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{"(", "$(", "`", "{ ", "if ", "while ", "! ", "time ", "\"$(", "${a:-", "$((", "f()", "[[ ( ", "<(", "a[", "$[", "a|", "x=$(", "case x in x) "} {
		a := Analyze(strings.Repeat(unit, leaktest.Rounds(50_000, 400_000)/len(unit)), inRoot)
		if a.Class == ReadOnly || a.Why == "" {
			t.Errorf("%q: %v %q", unit, a.Class, a.Why)
		}
	}
	for _, deep := range []int{10, 50} {
		if s := newScript(strings.Repeat("$(", deep) + "ls" + strings.Repeat(")", deep)); s.err != nil {
			t.Errorf("%d levels are not read: %v", deep, s.err)
		}
	}
}

// TestBraces compares with bash which words become several.
func TestBraces(t *testing.T) {
	t.Parallel()
	bash := needBash(t)
	pieces := []string{"{", "}", ",", "..", "a", "1", "{a,b}", "{}", "@{"}
	var all []string
	var grow func(prefix string, n int)
	grow = func(prefix string, n int) {
		all = append(all, prefix)
		if n > 0 {
			for _, p := range pieces {
				grow(prefix+p, n-1)
			}
		}
	}
	for _, p := range pieces {
		grow(p, 3)
	}
	var script strings.Builder
	for _, w := range all {
		script.WriteString("printf '%s\\x01' " + w + "; echo\n")
	}
	cmd := exec.CommandContext(t.Context(), bash, "--noprofile", "--norc")
	cmd.Stdin = strings.NewReader(script.String())
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(lines) != len(all) {
		t.Fatalf("%d lines for %d words", len(lines), len(all))
	}
	same := 0
	for i, w := range all {
		read := newScript("echo " + w).found().commands[0].words
		odd := len(read) != 2 || read[1].shape != 0
		if plain := lines[i] == w+"\x01"; !plain && !odd {
			t.Errorf("bash makes %q of %q, which counts as plain", lines[i], w)
		} else if plain == !odd {
			same++
		}
	}
	t.Logf("%d words; of %d both say the same, of the others only we say that they are not plain", len(all), same)
}
