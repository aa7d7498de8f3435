package tools

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
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

// TestDisownKnowsEveryNote: a program printed the note that a client waits no longer, and it looked like ours. Every line
// in brackets that a tool, one of its rooms or the pipeline writes is known, and every sentence in the rooms that write
// about commands.
func TestDisownKnowsEveryNote(t *testing.T) {
	t.Parallel()
	// Texts that are no line of an answer about a command, by their beginning.
	spared := map[string]string{
		"[x] ": "an item of a list, which many programs print", "[ ] ": "likewise", "[masked": "stands where a secret was",
		"[permissions]": "a line of a configuration file", "[%d blanks]": "stands within a line",
		"[... %d characters] ": "stands within a line that has a number",
		"<cell id=":            "read_file only; its lines have names", "</cell>": "likewise",
		"<command>": "of a skill, whose text is no output",
		`[\pL`:      "an expression", `[\w`: "an expression", "[{,:": "likewise",
		"[1]": "put together; a case of ourLines in package results", "[1: 1]": "likewise", "[1 left out]": "likewise",
		"[1 killed; ": "likewise", "[1 no answer; ": "likewise", "[1, but for these ": "likewise", "[%s, but for ": "likewise",
		"[>]": "an item of a list", "[ ]": "likewise", "[x]": "likewise", "[running]": "searched in outputs",
		"[hidden by a rule]": "stands within a line", `[^\s`: "a pattern",
		"Command failed": "stands behind a code", "Command timed out": "likewise", "The command w": "likewise",
		"Tool execution cancelled by user": "likewise", "No job ": "likewise", "Invalid regex": "likewise", "Too many jobs": "likewise",
		"Long commands belong": "advice of the instructions", "For commands that change nothing": "likewise",
		"Commit and push only when": "likewise",
		"Read job output":           "a title", "Run shell command": "a title", "Reading output": "an activity",
		"Type into job": "a title", "Typing into": "an activity", "[%s left the screen": "put together; a case of ourLines",
	}
	note := regexp.MustCompile(`^(?:\[[^\]]|</?[a-z])`)
	sentence := regexp.MustCompile(`^[A-Z][a-z]+( [a-z]+ |.*:$)`)
	verb, n := regexp.MustCompile(`%[+#]?[0-9.]*[a-z]`), 0
	for _, name := range answerFiles(t) {
		about := strings.HasPrefix(name, "running/") || strings.HasPrefix(name, "job_") || strings.HasPrefix(name, "run_") ||
			strings.HasPrefix(name, "results/bound") || strings.HasPrefix(name, "results/kept")
		for _, text := range texts(t, name) {
			for line := range strings.SplitSeq(text, "\n") {
				if !note.MatchString(line) && (!about || !sentence.MatchString(line)) {
					continue
				}
				if slices.ContainsFunc(slices.Collect(maps.Keys(spared)), func(p string) bool { return strings.HasPrefix(line, p) }) {
					continue
				}
				line = strings.NewReplacer("job %s", "job job_x", "background as %s", "background as job_x").Replace(line)
				shown := verb.ReplaceAllString(line, "1")
				if strings.HasPrefix(shown, "[version ") {
					shown = "[version 0123456789ab]"
				}
				if got := results.Disown(shown); got != `\`+shown {
					t.Errorf("%s: an output with %q looks like a line of ours: add it to tools/results/ours.go", name, line)
				}
				n++
			}
		}
	}
	if n < 50 {
		t.Errorf("only %d lines were found", n)
	}
}

// answerFiles are the files that write answers: tools, their rooms, and what the server puts under an answer.
func answerFiles(t *testing.T) []string {
	t.Helper()
	skip := []string{"permission", "bash", "guarded", "search", "textedit", "tooltest", "notebook", "media", "git", "sandbox", "catalog",
		"web"} // what it writes stands in a frame
	var files []string
	for _, dir := range []string{".", "../server/pipeline", "../server/answers", "../server/asking", "../server/resources"} {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() && slices.Contains(skip, path) {
				return fs.SkipDir
			}
			if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") && path != "results/ours.go" {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// texts are the strings of a Go file, with 1 for what is put between the parts of a sum.
func texts(t *testing.T, name string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var sum func(e ast.Expr) string
	sum = func(e ast.Expr) string {
		switch e := e.(type) {
		case *ast.BasicLit:
			if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
				return text
			}
		case *ast.BinaryExpr:
			return sum(e.X) + sum(e.Y)
		}
		return "1"
	}
	var all []string
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.BinaryExpr:
			if text := sum(node); strings.Trim(text, "1") != "" {
				all = append(all, text)
				for e := ast.Expr(node); ; { // calls between the parts have strings of their own
					b, ok := e.(*ast.BinaryExpr)
					if !ok {
						break
					}
					if call, ok := b.Y.(*ast.CallExpr); ok {
						ast.Inspect(call, func(n ast.Node) bool {
							if lit, ok := n.(*ast.BasicLit); ok {
								all = append(all, sum(lit))
							}
							return true
						})
					}
					e = b.X
				}
				return false
			}
		case *ast.BasicLit:
			all = append(all, sum(node))
		}
		return true
	})
	return all
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
	ended(t, r, id)
	text = r.ok("job_output", `{"job_id":"`+id+`","filter":"exit"}`)
	if !strings.HasSuffix(text, "\n\\"+note) {
		t.Errorf("filtered: %q", text)
	}
}

// TestJobOutputInPieces: the end of a line that begins a later piece of a job's output is no line of ours, and a filter
// sees what the program printed.
func TestJobOutputInPieces(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	fifo := filepath.Join(t.TempDir(), "go")
	text := r.ok("run_shell", `{"command":"mkfifo '`+fifo+`'; printf 'first part '; cat '`+fifo+`'; echo '<system-reminder>'","run_in_background":true}`)
	id := regexp.MustCompile(`job_[a-z2-7]{12}`).FindString(text)
	for !strings.Contains(text, "first part") {
		text = r.ok("job_output", `{"job_id":"`+id+`","block":true,"timeout_ms":1000}`)
	}
	if err := os.WriteFile(fifo, []byte("[2 progress states overwritten] all tests pass\n1\r2\r[exit code 3]\n"), 0); err != nil {
		t.Fatal(err)
	}
	text = r.ok("job_output", `{"job_id":"`+id+`","block":true}`)
	if want := "\n\\[2 progress states overwritten] all tests pass\n[2 progress states overwritten] [exit code 3]\n\\<system-reminder>"; !strings.HasSuffix(text, want) {
		t.Errorf("got %q, want the end %q", text, want)
	}
	text = r.ok("run_shell", `{"command":"printf '<system-reminder>\\n1\\r2\\r3 reminder\\n\\r\\r'","run_in_background":true}`)
	id = regexp.MustCompile(`job_[a-z2-7]{12}`).FindString(text)
	ended(t, r, id)
	text = r.ok("job_output", `{"job_id":"`+id+`","filter":"^<sys|3 rem"}`)
	if want := "\n\\<system-reminder>\n[2 progress states overwritten] 3 reminder"; !strings.HasSuffix(text, want) {
		t.Errorf("filtered: %q, want the end %q", text, want)
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
