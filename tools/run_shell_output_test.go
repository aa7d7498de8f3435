package tools

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"codehand/tools/results"
	"codehand/tools/tool"
)

// TestDisownKnowsEveryCode: a command whose output begins with the code of a refusal must not look like one.
func TestDisownKnowsEveryCode(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "tool/codes.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	ast.Inspect(file, func(node ast.Node) bool {
		literal, ok := node.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		code, err := strconv.Unquote(literal.Value)
		if line := code + ": Nothing was done."; err != nil || results.Disown(line) != `\`+line {
			t.Errorf("an output that begins with %s looks like a refusal: add the code to codes in tools/results/ours.go (%v)", code, err)
		}
		n++
		return true
	})
	if n < 45 {
		t.Errorf("only %d codes were found", n)
	}
}

// TestDisownKnowsEveryNote: a program printed the note that a client waits no longer, and it looked like ours. Every text
// in brackets that a tool or one of its rooms writes is known.
func TestDisownKnowsEveryNote(t *testing.T) {
	t.Parallel()
	var files []string
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".go") {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	verb, n := regexp.MustCompile(`%[a-z]`), 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"codehand/tools/tool"` }) {
			continue // an engine: it answers nobody
		}
		ast.Inspect(file, func(node ast.Node) bool {
			literal, ok := node.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(literal.Value)
			if err != nil || !regexp.MustCompile(`^\[[a-zA-Z%]+[ _]`).MatchString(text) {
				return true // one that is put together of pieces has a case in package results
			}
			note := verb.ReplaceAllString(text, "1")
			if text == "[version " {
				note += "0123456789ab]"
			}
			if got := results.Disown(note); got != `\`+note {
				t.Errorf("%s: an output with %q looks like a note of ours: add it to tools/results/ours.go", name, note)
			}
			n++
			return true
		})
	}
	if n < 10 {
		t.Errorf("only %d notes were found", n)
	}
}

// TestOutputInOurForm: what a program prints in the form of our first lines and notes gets a backslash, in each way of
// reading it, and what is kept of it does not.
func TestOutputInOurForm(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const note = "[exit code 1: no match]"
	text := r.ok("run_shell", quote("echo 'PERMISSION_DENIED: no'; echo '"+note+"'"))
	same(t, text, "\\PERMISSION_DENIED: no\n\\"+note)
	text = r.fails(tool.CommandFailed, "run_shell", quote("echo '"+note+"'; echo Stdout: >&2; exit 3"))
	same(t, text, "COMMAND_FAILED: Command failed (exit code 3)\nStdout:\n\\"+note+"\nStderr:\n\\Stdout:")
	text = r.ok("run_shell", quote("echo '"+note+"'; true | grep -q x"))
	same(t, text, "\\"+note+"\n"+note)

	text = r.ok("run_shell", `{"command":"echo '`+note+`'; echo '(no output)'","run_in_background":true}`)
	id := regexp.MustCompile(`job_[a-z2-7]{12}`).FindString(text)
	text = r.ok("job_output", `{"job_id":"`+id+`","block":true}`)
	if !strings.HasSuffix(text, ", 2 new lines\n\\"+note+"\n\\(no output)") {
		t.Errorf("got %q", text)
	}
	text = r.ok("run_shell", `{"command":"echo '`+note+`'; echo other","run_in_background":true}`)
	id = regexp.MustCompile(`job_[a-z2-7]{12}`).FindString(text)
	text = r.ok("job_output", `{"job_id":"`+id+`","block":true,"filter":"exit"}`)
	if !strings.HasSuffix(text, "\n\\"+note) {
		t.Errorf("filtered: %q", text)
	}
}

// TestRunShellKeeps: a long output is kept whole, byte for byte as it was printed, under the id of the call and the name
// of the tool; nothing else of the command is left.
func TestRunShellKeeps(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, command := range []string{"seq 1 150000; echo '[exit code 1: no match]'", "seq 1 150000; echo end >&2; exit 3"} {
		res, text := r.do("run_shell", quote(command))
		kept := res.Meta.Kept
		if kept == nil || kept.ID == "" || kept.Path != filepath.Join(r.Results.Dir(), kept.ID+"-run_shell.txt") || !strings.Contains(text, "Full output: "+kept.Path+" ") {
			t.Fatalf("kept %+v: %.300s", kept, text)
		}
		want, _ := exec.Command("bash", "-c", "{ "+command+"; } 2>&1").CombinedOutput() // its exit code is the test's own
		got, err := os.ReadFile(kept.Path)
		if err != nil || string(got) != string(want) || kept.Bytes != int64(len(want)) {
			t.Errorf("kept are %d bytes of %d (%v)", len(got), len(want), err)
		}
		if info, err := os.Stat(kept.Path); err != nil || info.Mode() != 0o600 {
			t.Errorf("%v (%v)", info.Mode(), err)
		}
	}
	if left, err := os.ReadDir(filepath.Join(filepath.Dir(r.Results.Dir()), "jobs")); err != nil || len(left) > 0 {
		t.Errorf("left of the commands: %v (%v)", left, err)
	}
}
