package bash

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

// A row is one line of a corpus of commands.
type row struct {
	class, command, why string
}

// corpus reads the rows of a file of testdata/corpus.
func corpus(t testing.TB, name string) []row {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../testdata/corpus", name))
	if err != nil {
		t.Fatal(err)
	}
	var rows []row
	for i, line := range strings.Split(strings.TrimSpace(string(data)), "\n")[1:] {
		fields := strings.Split(line, "\t")
		if len(fields) != 3 {
			t.Fatalf("%s:%d: want class, command and why, got %q", name, i+2, line)
		}
		r := row{class: fields[0], why: fields[2]}
		if err := json.Unmarshal([]byte(fields[1]), &r.command); err != nil {
			t.Fatalf("%s:%d: %v", name, i+2, err)
		}
		rows = append(rows, r)
	}
	return rows
}

// inRoot is the root of the corpora.
func inRoot(path string) bool { return path == "/proj" || strings.HasPrefix(path, "/proj/") }

// dangerCorpora are the files with commands and their class.
func dangerCorpora() []string { return []string{"shell-commands.tsv", "shell-dangerous.tsv"} }

// mostFalse is how many commands that only write may be taken for dangerous (SEC-24).
const mostFalse = 3

func TestDangerCorpora(t *testing.T) {
	t.Parallel()
	falsely := 0
	for _, name := range dangerCorpora() {
		dangerous := 0
		for _, r := range corpus(t, name) {
			why := newScript(r.command).danger(inRoot).why
			switch {
			case r.class == "dangerous" && why == "":
				t.Errorf("%s: not found to be dangerous: %q (%s)", name, r.command, r.why)
			case r.class == "dangerous":
				dangerous++
			case why != "" && r.class == "readonly":
				t.Errorf("%s: readonly, but dangerous: %q: %s", name, r.command, why)
			case why != "":
				falsely++
				t.Logf("%s: taken for dangerous: %q: %s", name, r.command, why)
			}
		}
		t.Logf("%s: %d dangerous rows found", name, dangerous)
	}
	if falsely > mostFalse {
		t.Errorf("%d commands that only write are taken for dangerous, want at most %d", falsely, mostFalse)
	}
}

// Whatever stands around a dangerous command, it stays one.
func TestDangerBehindEverything(t *testing.T) {
	t.Parallel()
	lists := []string{
		"%s", "ls; %s", "ls && %s", "ls || %s", "ls\n%s", "%s; ls", "%s && ls", "! %s", "( %s )", "{ %s; }", "%s &", "time %s", "coproc { %s; }",
		"if ls; then %s; fi", "while ls; do %s; done", "for x in a; do %s; done", "case x in x) %s;; esac", "f() { %s; }; f",
		"echo $( %s )", "echo \"$( %s )\"", "x=$( %s )", "cat <( %s )", "echo ${x:-$( %s )}", "echo $(( $( %s ) + 1 ))", "[[ -n $( %s ) ]]",
		"x=($( %s ))", "ls > $( %s )", "cat <<E\n$( %s )\nE", "a \\\n; %s", "export X=$( %s )",
	}
	words := []string{
		"command %s", "env %s", "env -i A=b %s", "jobs -x %s", "nohup %s", "timeout 5 %s", "timeout -s KILL 5s %s", "nice -n 5 %s", "stdbuf -o0 %s", "setsid %s",
		"ionice -c 3 %s", "taskset 1 %s", "exec %s", "strace -e trace=file %s", "busybox %s", "unbuffer %s", "flock f %s", "nohup timeout 5 env %s",
	}
	rows := 0
	for _, name := range dangerCorpora() {
		for _, r := range corpus(t, name) {
			if r.class != "dangerous" || newScript(r.command).file == nil || strings.Contains(r.command, "<<") {
				continue // the text around it would end up in its here-document
			}
			forms := lists
			if one := newScript(r.command).file.Stmts; len(one) == 1 {
				if call, ok := one[0].Cmd.(*syntax.CallExpr); ok && len(call.Assigns) == 0 && !strings.Contains(call.Args[0].Lit(), "\\") && !builtIn(call.Args[0].Lit()) {
					forms = append(words, lists...)
				}
			}
			rows++
			for _, form := range forms {
				text := strings.Replace(form, "%s", r.command, 1)
				if why := newScript(text).danger(inRoot).why; why == "" {
					t.Errorf("not found to be dangerous: %q", text)
				}
			}
			quoted, err := syntax.Quote(r.command, syntax.LangBash)
			if err != nil || strings.HasPrefix(quoted, "$") {
				continue
			}
			for _, form := range []string{"bash -c %s", "sh -ec %s x", "env bash -lc %s", "timeout 5 sh -c %s", "trap %s EXIT", "ssh h %s"} {
				text := strings.Replace(form, "%s", quoted, 1)
				if why := newScript(text).danger(inRoot).why; why == "" && !strings.Contains(r.command, "bash -c") {
					t.Errorf("not found to be dangerous: %q", text)
				}
			}
		}
	}
	if rows < 500 {
		t.Errorf("%d dangerous rows, want at least 500", rows)
	}
}

// What runs in a program of awk is found, whatever stands in quotes and patterns around it.
func TestAwk(t *testing.T) {
	t.Parallel()
	for program, want := range map[string]bool{
		`{print $1}`: false, `/a|b/ {n++}`: false, `$1 ~ /a|b/ && !/x@y/`: false, `{print "a|b > c", $2/3}`: true, `{print "a > c"}`: false, `{print ($1 > 3)}`: false, `$3 > 100`: false, `{x = a || b}`: false, `{s += $1} END {print s/NR}`: false,
		`/"/ {system("id")}`: true, `{print x /"/; system("id"); print "/"}`: true, "{x = \"a\\\nb\"; system(\"id\")}": true, "# \"\n{system(\"id\")}": true, `BEGIN {"id" | getline}`: true, `{print > "a"}`: true, `{print $1 | "sh"}`: true, `@load "x"`: true,
		`/a\/b"/ {system("id") } /"/`: true, `{f = "\"; system(\""; system("id")}`: true, `{printf("%s", $1) > $2}`: true,
	} {
		h := newScript("awk '" + program + "' f").danger(inRoot)
		if (h.why != "") != want {
			t.Errorf("%s: %q", program, h.why)
		}
	}
}

// builtIn commands of the shell run behind none of its wrappers.
func builtIn(name string) bool {
	switch name {
	case "export", "declare", "typeset", "local", "readonly":
		return true
	}
	return false
}

func BenchmarkDanger(b *testing.B) {
	for _, command := range benchmarked() {
		b.Run(strconv.Itoa(len(command)), func(b *testing.B) {
			s := newScript(command)
			for b.Loop() {
				s.finding = nil
				s.danger(inRoot)
			}
		})
	}
}

func BenchmarkAnalyzeAll(b *testing.B) {
	for _, command := range benchmarked() {
		b.Run(strconv.Itoa(len(command)), func(b *testing.B) {
			for b.Loop() {
				Analyze(command, inRoot)
			}
		})
	}
}

// benchmarked are commands of about 20, 80 and 200 bytes.
func benchmarked() []string {
	return []string{
		"git status --short",
		"cd src && go test -run TestThing -count=1 ./... 2>&1 | tail -n 40 | grep -v ok",
		"cd packages/server && npm run build -- --mode production && NODE_ENV=test npx vitest run src/permissions/*.test.ts --reporter=dot 2>&1 | " +
			"grep -E 'FAIL|Error' | sort -u | head -n 50 > out/failures.txt",
	}
}
