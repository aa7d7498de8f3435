//go:build score

package main

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestCases: the cases can be read, are as many as they claim to be, and have each a name and a sentence.
func TestCases(t *testing.T) {
	all, err := readCases("../../testdata/score")
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 150 {
		t.Errorf("%d cases", len(all))
	}
	seen := map[string]bool{}
	for _, c := range all {
		id := c.area + "/" + c.name
		if seen[id] || c.about == "" || strings.ContainsAny(c.name, " /|") {
			t.Errorf("%s is there twice, has no sentence or no plain name", id)
		}
		seen[id] = true
		asks := false
		for _, s := range c.steps {
			asks = asks || s.kind == '>' || s.kind == '&'
			if len(s.args) == 0 && strings.IndexByte(">&=~", s.kind) >= 0 {
				t.Errorf("%s: line %d says nothing", id, s.line)
			}
		}
		if !asks {
			t.Errorf("%s asks for nothing", id)
		}
	}
}

// fake answers each call with a text, and writes it into the file a.txt of the case.
const fake = `while read -r line; do
	id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
	[ -n "$id" ] || continue
	case $line in
	*'"silent"'*) exit ;;
	*'"broken"'*) echo 'no JSON'; printf '{"jsonrpc":"2.0","id":%s,"error":{"code":1,"message":"broken"}}\n' "$id" ;;
	*tools/call*) printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"hello\\nworld"}]}}\n' "$id" ;;
	*) printf '{"jsonrpc":"2.0","id":%s,"result":{}}\n' "$id" ;;
	esac
done`

// TestJudged: what holds passes, what does not fails with its expectation, a server that ends is started again.
func TestJudged(t *testing.T) {
	cases, err := parse("area", `
## passes: it does
$ echo there > a.txt
> read a.txt
= hello "lo\nwor"
~ bye
o
< 100
? grep -q there a.txt
## text: a text is missing
> read a.txt
= bye
## absent: a text is there
> read a.txt
~ hello
## error: no error
> read a.txt
!
## broken: an error
> broken
!
## check: a command fails
> read a.txt
? echo because; false
## silent: the server ends
> silent
## again: and is there again
> read a.txt
= hello
## chance: it holds at a later try
$ [ -e ../chance.was ] || { touch ../chance.was; echo no > no; }
> read a.txt
? ! [ -e no ]
## lacks: no tool
> write a.txt b
## together: two at once
& read a.txt
& read b.txt
= hello
`)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{
		name:    "fake",
		command: func(string) *exec.Cmd { return exec.Command("sh", "-c", fake) },
		calls: func(a []string, dir string) []call {
			if a[0] == "write" {
				return nil
			}
			return []call{{a[0], args{"path": dir}}}
		},
	}
	want := map[string]string{
		"text": "= bye", "absent": "~ hello", "error": "! ", "check": "echo because; false because", "silent": "an answer within 60 s",
	}
	results := play(t.Context(), s, cases, filepath.Join(t.TempDir(), "scratch"))
	for i, c := range cases {
		r := results[i]
		if r.lacks != (c.name == "lacks") {
			t.Errorf("%s: lacks a tool: %v", c.name, r.lacks)
		}
		if expected := want[c.name]; r.expected != expected || r.passed != (expected == "" && !r.lacks) {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
	var b strings.Builder
	if err := page(&b, []*server{s}, cases, [][]result{results}, "- 1 token"); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"| area | 5 of 10 |", "| **all** | 5 of 10 |",
		"| area/text: a text is missing | `= bye` |", "- 1 token"} {
		if !strings.Contains(b.String(), text) {
			t.Errorf("the page lacks %q:\n%s", text, &b)
		}
	}
	if got := play(cancelled(), s, cases, t.TempDir()); got[0].passed {
		t.Error("played after the end")
	}
}

func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func TestBadCases(t *testing.T) {
	for _, text := range []string{"> read a", "## a: b\nread a", "## a: b\n> read \"a"} {
		if _, err := parse("x", text); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

// TestTaskRows: a server that the task could not be done with has no row.
func TestTaskRows(t *testing.T) {
	log := `    task_peers_test.go:337: list_files       215    808
    task_peers_test.go:339: filesystem: 30 of 34 calls, 40284 tokens, ours 14026; its list 1842; 0 answers were errors; no tool for 4 calls
    task_peers_test.go:292: hello: no line within 1m0s; stderr:
`
	if got, want := taskRows(log), "| filesystem | 30 of 34 | 40284 | 14026 |\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
