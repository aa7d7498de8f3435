package blackbox

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"codehand/server/replaytest"
)

// inspector finds the MCP Inspector that .ci/run installs. Without it the test is skipped, but never in CI.
func inspector(t *testing.T) (node, launcher string) {
	t.Helper()
	base, err := filepath.Abs("../../.ci/conformance/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	node = filepath.Join(base, "node", "bin", "node")
	launcher = filepath.Join(base, "@modelcontextprotocol", "inspector", "clients", "launcher", "build", "index.js")
	for _, p := range []string{node, launcher} {
		if _, err := os.Stat(p); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatalf("%v: (cd .ci/conformance && npm ci)", err)
			}
			t.Skip("the MCP Inspector is not installed: (cd .ci/conformance && npm ci)")
		}
	}
	return node, launcher
}

// An inspected is what the Inspector prints for a call.
type inspected struct {
	Content []struct {
		Type, Text string
	} `json:"content"`
	IsError bool           `json:"isError"`
	Meta    map[string]any `json:"_meta"`
}

// goRoot is where Go's own sources are.
func goRoot(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// TestInspector drives the built program with the MCP Inspector, a client of another project, on Go's own source tree,
// in both protocol eras, and compares the answers with sed, grep and find.
func TestInspector(t *testing.T) {
	t.Parallel()
	node, launcher := inspector(t)
	path := replaytest.Program(t)
	src, err := filepath.EvalSymlinks(filepath.Join(goRoot(t), "src"))
	if err != nil {
		t.Fatal(err)
	}
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			run := func(root string, args ...string) []byte {
				t.Helper()
				all := append([]string{launcher, "--cli", "-q", "--protocol-era", era}, args...)
				cmd := exec.Command(node, append(all, path, "stdio", root)...)
				cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir()}, "HOME="+home, "XDG_STATE_HOME="+home, "CODEHAND_READ_VERSION=always", "CODEHAND_PERMISSIONS_MODE=acceptEdits")
				cmd.Dir = home // as a client that starts servers where it likes
				var stderr bytes.Buffer
				cmd.Stderr = &stderr
				out, err := cmd.Output()
				if err != nil && !bytes.Contains(out, []byte(`"isError": true`)) {
					t.Fatalf("%v: %v\n%s%s", args, err, out, &stderr)
				}
				return out
			}
			call := func(root, tool string, args ...string) inspected {
				t.Helper()
				words := []string{"--tool-name", tool}
				for _, a := range args {
					words = append(words, "--tool-arg", a)
				}
				out := run(root, append(words, "--method", "tools/call")...) // what follows an argument counts as one, too
				var r inspected
				if err := json.Unmarshal(out, &r); err != nil || len(r.Content) != 1 {
					t.Fatalf("%s %v: %v\n%s", tool, args, err, out)
				}
				return r
			}
			want := func(name, got, want string) {
				t.Helper()
				if strings.TrimSpace(got) != strings.TrimSpace(want) {
					t.Errorf("%s:\ngot\n%.2000s\nwant\n%.2000s", name, got, want)
				}
			}
			sh := func(dir, command string) string {
				t.Helper()
				cmd := exec.Command("bash", "-c", command)
				cmd.Dir = dir
				out, err := cmd.Output()
				if err != nil {
					t.Fatalf("%s: %v", command, err)
				}
				return string(out)
			}

			run(src, "--method", "tools/list", "--strict") // a schema error is exit code 6

			read := call(src, "read_file", "file_path="+src+"/fmt/print.go", "offset=10", "limit=20")
			body, _, _ := strings.Cut(read.Content[0].Text, "\n[")
			want("read_file", body, sh(src, `awk 'NR>=10 && NR<30 {printf "%d\t%s\n", NR, $0}' fmt/print.go`))

			list := call(src, "list_files", "pattern=net/http/*.go")
			var found []string
			dir := ""
			for line := range strings.Lines(strings.Split(list.Content[0].Text, "(Results")[0]) {
				name := strings.TrimSpace(line)
				switch {
				case name == "":
				case strings.HasSuffix(name, "/"): // of the files below it
					dir = name
				case line[0] == ' ':
					found = append(found, dir+name)
				default:
					found = append(found, name)
				}
			}
			for _, f := range found {
				if _, err := os.Stat(filepath.Join(src, f)); err != nil {
					t.Error(err)
				}
			}
			n, err := strconv.Atoi(strings.TrimSpace(sh(src, `find net/http -maxdepth 1 -name '*.go' | wc -l`)))
			if err != nil || len(found) != min(n, 100) {
				t.Errorf("list_files: %d files, find has %d (%v)", len(found), n, err)
			}

			grep := call(src, "grep_search", "pattern=func Test.*Deadline", "path="+src+"/net", "output_mode=content", "head_limit=0")
			want("grep_search", grep.Content[0].Text, sh(src, `grep -rn 'func Test.*Deadline' net | LC_ALL=C sort -t: -k1,1 -k2,2n`))

			// Writers work on a copy.
			work := t.TempDir()
			sh(work, `cp `+src+`/strings/builder.go . && chmod 0640 builder.go`)
			version := func(file string) string {
				t.Helper()
				r := call(work, "read_file", "file_path="+file)
				v, _ := r.Meta["codehand/version"].(string)
				if v == "" {
					t.Fatalf("read_file gave no version: %+v", r)
				}
				return v
			}
			wrote := call(work, "write_file", "file_path="+work+"/new.txt", "content=one two")
			if wrote.IsError {
				t.Errorf("write_file: %s", wrote.Content[0].Text)
			}
			want("write_file", sh(work, "cat new.txt"), "one two")

			refused := call(work, "edit_file", "file_path=builder.go", "old_string=package strings", "new_string=package words")
			if !refused.IsError || !strings.HasPrefix(refused.Content[0].Text, "FILE_NOT_READ: ") {
				t.Errorf("edit_file of an unread file: %s", refused.Content[0].Text)
			}
			edited := call(work, "edit_file", "file_path=builder.go", "old_string=package strings", "new_string=package words", "version="+version("builder.go"))
			if edited.IsError {
				t.Errorf("edit_file: %s", edited.Content[0].Text)
			}
			want("edit_file", sh(work, "cat builder.go"), sh(src, "sed 's/^package strings$/package words/' strings/builder.go"))
			want("mode after edit_file", sh(work, "stat -c %a builder.go"), "640")

			edits := `edits=[{"file_path":"builder.go","old_string":"package words","new_string":"package text","version":"` + version("builder.go") +
				`"},{"file_path":"new.txt","old_string":"two","new_string":"three","version":"` + version("new.txt") + `"}]`
			if multi := call(work, "multi_edit", edits); multi.IsError {
				t.Errorf("multi_edit: %s", multi.Content[0].Text)
			}
			want("multi_edit", sh(work, "head -5 builder.go | tail -1; cat new.txt"), "package text\none three")

			shell := call(work, "run_shell", "command=ls | sort; echo to stderr >&2")
			said, _, _ := strings.Cut(shell.Content[0].Text, "\n[commands here are confined to your directories]")
			want("run_shell", said, "builder.go\nnew.txt\nto stderr")
			for _, tool := range []string{"job_output", "job_stop"} {
				r := call(work, tool, "job_id=job_aaaaaaaaaaaa")
				if !r.IsError || !strings.HasPrefix(r.Content[0].Text, "JOB_UNKNOWN: ") {
					t.Errorf("%s: %s", tool, r.Content[0].Text)
				}
			}

			load := run(work, "--method", "tools/call", "--tool-name", "list_files", "--tool-arg", "pattern=*", "--load", "--load-concurrency", "8", "--load-requests", "500")
			var summary struct{ Errors, ToolErrors int }
			if err := json.Unmarshal(load, &summary); err != nil || summary.Errors+summary.ToolErrors != 0 {
				t.Errorf("load: %v\n%s", err, load)
			}
		})
	}
}
