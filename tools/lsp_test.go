package tools

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"codehand/tools/confine"
	servers "codehand/tools/lsp"
	"codehand/tools/lsp/lsptest"
	"codehand/tools/sandbox"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/tooltest"
)

// asServer is set where this test binary stands for a language server; its value says how that behaves.
const asServer = "TOOLS_TEST_LSP"

// withToy gives the session of a rig a language server for .toy files.
func withToy(t *testing.T, r *rig, how lsptest.How) *rig {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	toy := servers.Server{Name: "toy", Argv: []string{self}, Languages: map[string]string{".toy": "toy"}, Marks: []string{"toy.mod"},
		Env: []string{asServer + "=" + how.Text(), "GOCOVERDIR=" + t.TempDir()}}
	gone := servers.Server{Name: "gone", Argv: []string{"no-such-program"}, Languages: map[string]string{".gone": "gone"}, Preset: true}
	broken := servers.Server{Name: "broken", Argv: []string{"/no/such/program"}, Languages: map[string]string{".broken": "broken"}}
	lame := servers.Server{Name: "lame", Argv: []string{self}, Languages: map[string]string{".lame": "lame"},
		Marks: []string{"lame.mod"}, Env: []string{asServer + "=" + lsptest.How{Crash: "workspace/symbol"}.Text(),
			"GOCOVERDIR=" + t.TempDir()}}
	pool := servers.New([]servers.Server{toy, gone, broken, lame}, servers.Limits{Soon: time.Minute},
		slog.New(slog.DiscardHandler))
	t.Cleanup(pool.Close)
	r.Languages = session.Languages{LSP: pool, ServerDir: t.TempDir()}
	return r
}

// Every operation answers in lines that a model can go on with, in either spelling.
func TestLsp(t *testing.T) {
	t.Parallel()
	r := withToy(t, newRig(t), lsptest.How{})
	r.write("a.toy", "\ufefffn a\r\n  call \U0001f600b\r\n  call gone\r\nimport LOUD\r\n")
	r.write("sub/b.toy", "fn \U0001f600b\n  call a\n")
	r.write("plain.txt", "text")
	for _, c := range []struct{ input, want string }{
		{`"operation":"goToDefinition","filePath":"a.toy","line":2,"character":8`, "sub/b.toy:1:4 fn \U0001f600b"},
		{`"operation":"go_to_definition","file_path":"$WORK/a.toy","line":2,"query":"\ud83d\ude00b"`, "sub/b.toy:1:4 fn \U0001f600b"},
		{`"operation":"findReferences","filePath":"a.toy","line":1,"query":"a"`, "a.toy:1:4 fn a\nsub/b.toy:2:8 call a"},
		{`"operation":"references","filePath":"a.toy","line":1,"query":"a"`, "a.toy:1:4 fn a\nsub/b.toy:2:8 call a"},
		{`"operation":"definition","filePath":"a.toy","line":2,"character":8`, "sub/b.toy:1:4 fn \U0001f600b"},
		{`"operation":"implementation","filePath":"a.toy","line":1,"query":"a"`, "a.toy:1:4 fn a"},
		{`"operation":"hover","filePath":"a.toy","line":1,"character":4`, "```toy\nfn a\n```"},
		{`"operation":"hover","filePath":"a.toy","line":1,"character":1`, "The server says nothing about this place."},
		{`"operation":"documentSymbol","filePath":"a.toy"`, "a.toy:1:4 function a"},
		{`"operation":"workspaceSymbol","query":"b"`, "sub/b.toy:1:4 function \U0001f600b"},
		{`"operation":"workspace_symbol","query":"zzz"`, "No symbols found."},
		{`"operation":"goToImplementation","filePath":"a.toy","line":1,"query":"a"`, "a.toy:1:4 fn a"},
		{`"operation":"prepareCallHierarchy","filePath":"a.toy","line":1,"query":"a"`, "a.toy:1:4 function a (a.toy)"},
		{`"operation":"incomingCalls","filePath":"a.toy","line":1,"query":"a"`, "sub/b.toy:1:4 function \U0001f600b (b.toy), calls at sub/b.toy:2"},
		{`"operation":"outgoingCalls","filePath":"a.toy","line":1,"query":"a"`, "sub/b.toy:1:4 function \U0001f600b (b.toy), calls at a.toy:2"},
		{`"operation":"diagnostics","filePath":"a.toy"`, "a.toy:3:8 error: undefined: gone (toy)\na.toy:4:8 warning: LOUD is loud (loud)"},
		{`"operation":"diagnostics","filePath":"sub/b.toy"`, "No problems found."},
	} {
		same(t, r.ok("lsp", "{"+c.input+"}"), c.want)
	}
	r.write("far.toy", "fn a\n"+strings.Repeat("\n", 19)+"fn far\n\n\n\nfn b\n"+strings.Repeat("\n", 20)+"fn end\n")
	for _, c := range []struct {
		code        tool.Code
		input, want string
	}{
		{tool.InputInvalid, `"operation":"explode","filePath":"a.toy"`, `"operation" must be one of diagnostics, documentSymbol,`},
		{tool.InputInvalid, `"operation":"hover"`, `"filePath" is required for hover`},
		{tool.InputInvalid, `"operation":"hover","filePath":"a.toy","line":1`, `"line", and "character" or "query", are required for hover`},
		{tool.InputInvalid, `"operation":"workspaceSymbol"`, `"query" is required for workspaceSymbol`},
		{tool.InputInvalid, `"operation":"hover","filePath":"a.toy","line":99,"character":1`, `"line" 99 is past the end of the file`},
		{tool.InputInvalid, `"operation":"hover","filePath":"a.toy","line":2,"character":99`, "which has 10; it is: call \U0001f600b"},
		{tool.InputInvalid, `"operation":"hover","filePath":"a.toy","line":1,"query":"x"`, `line 1 does not contain "x"; it is: fn a`},
		{tool.InputInvalid, `"operation":"hover","filePath":"a.toy","line":1,"query":"LOUD"`,
			`it is: fn a; the nearest line that does is line 4: import LOUD`},
		{tool.InputInvalid, `"operation":"hover","filePath":"far.toy","line":1,"query":"far"`,
			`line 1 does not contain "far"; it is: fn a; the nearest line that does is line 21: fn far`},
		{tool.InputInvalid, `"operation":"hover","filePath":"far.toy","line":24,"query":"far"`,
			`the nearest line that does is line 21: fn far`},
		{tool.FileNotFound, `"operation":"hover","filePath":"no.toy","line":1,"character":1`, "File does not exist"},
		{tool.LSPUnavailable, `"operation":"documentSymbol","filePath":"plain.txt"`,
			"No language server knows plain.txt. They know: .broken .lame .toy."},
		{tool.OutsideRoots, `"operation":"documentSymbol","filePath":"/etc/x.toy"`, "outside"},
	} {
		if got := r.fails(c.code, "lsp", "{"+c.input+"}"); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", c.input, got)
		}
	}
	if got := r.fails(tool.InputInvalid, "lsp",
		`{"operation":"hover","filePath":"far.toy","line":25,"query":"end"}`); strings.Contains(got, "nearest") {
		t.Errorf("more than 20 lines away: %s", got)
	}
	r.write("x.gone", "x")
	if got := r.fails(tool.LSPUnavailable, "lsp", `{"operation":"documentSymbol","filePath":"x.gone"}`); !strings.Contains(got, "No language server for .gone files is installed.") {
		t.Error(got)
	}
	r.write("x.broken", "x")
	if got := r.fails(tool.LSPUnavailable, "lsp", `{"operation":"documentSymbol","filePath":"x.broken"}`); !strings.Contains(got, "The language server broken is not running: ") {
		t.Error(got)
	}
}

// A server that ends or refuses costs its caller an answer, and is there again for the next.
func TestLspFails(t *testing.T) {
	t.Parallel()
	r := withToy(t, newRig(t), lsptest.How{Crash: "textDocument/hover"})
	r.write("a.toy", "fn a\n")
	if got := r.fails(tool.LSPFailed, "lsp", `{"operation":"hover","filePath":"a.toy","line":1,"query":"a"}`); !strings.Contains(got, "toy ended while it worked on this. Try again") {
		t.Error(got)
	}
	same(t, r.ok("lsp", `{"operation":"documentSymbol","filePath":"a.toy"}`), "a.toy:1:4 function a")
	if got := r.fails(tool.LSPFailed, "lsp_edit", `{"operation":"rename","filePath":"a.toy","line":1,"character":1,"newName":"b"}`); !strings.Contains(got, "toy says: no identifier here") {
		t.Error(got)
	}
	r.write("toy.mod", "")
	r.write("lame.mod", "")
	same(t, r.ok("lsp", `{"operation":"workspaceSymbol","query":"a"}`), "a.toy:1:4 function a\n"+
		"(Not all servers answered. LSP_FAILED: lame ended while it worked on this. Try again: it is started anew.)")
	if got := r.tool("lsp").Unavailable(&session.State{}); got != "the operator switched language servers off (lsp.enabled)." {
		t.Error(got)
	}
	pool := servers.New([]servers.Server{{Name: "x", Argv: []string{"no-such-program"}, Preset: true}}, servers.Limits{}, nil)
	defer pool.Close()
	if got := r.tool("lsp").Unavailable(&session.State{Languages: session.Languages{LSP: pool}}); !strings.HasPrefix(got, "no language server is installed.") {
		t.Error(got)
	}
}

// What rules keep from a session is in no answer: not as a place, not as a line, not by a link, not in a rename.
func TestLspDenied(t *testing.T) {
	t.Parallel()
	r := withToy(t, newRig(t, "Read(secret/**)"), lsptest.How{})
	r.write("a.toy", "fn a\n  call hidden\n")
	r.write("secret/s.toy", "fn hidden\n  call a\n")
	if err := os.Link(filepath.Join(r.dir, "secret", "s.toy"), filepath.Join(r.dir, "link.toy")); err != nil {
		t.Fatal(err)
	}
	left := "\n(Places in files that rules keep from this call are left out.)"
	for _, c := range []struct{ input, want string }{
		{`"operation":"goToDefinition","filePath":"a.toy","line":2,"query":"hidden"`, "No definition found." + left},
		{`"operation":"findReferences","filePath":"a.toy","line":1,"query":"a"`, "a.toy:1:4 fn a" + left},
		{`"operation":"hover","filePath":"a.toy","line":2,"query":"hidden"`, "The server says nothing about this place." + left},
		{`"operation":"workspaceSymbol","query":"hidden"`, "No symbols found." + left},
		{`"operation":"incomingCalls","filePath":"a.toy","line":1,"query":"a"`, "No calls found." + left},
		{`"operation":"outgoingCalls","filePath":"a.toy","line":1,"query":"a"`, "No calls found." + left},
	} {
		same(t, r.ok("lsp", "{"+c.input+"}"), c.want)
	}
	if got := r.fails(tool.PermissionDenied, "lsp_edit", `{"operation":"rename","filePath":"a.toy","line":1,"query":"a","newName":"b"}`); strings.Contains(got, "secret") || strings.Contains(got, "link") {
		t.Error(got)
	}
	r.holds("a.toy", "fn a\n  call hidden\n")
}

// A server that started before a rule denied a file is not asked any more: it may have read that. What it does not read
// starts no other one.
func TestLspDeniedLater(t *testing.T) {
	t.Parallel()
	r := withToy(t, newRig(t, "Read(**/secret/**)", "Read(**/*.key)"), lsptest.How{})
	r.Confine = &confine.Session{Confiner: confine.New(confine.Options{
		Proven: func() sandbox.Report { return sandbox.Report{Level: sandbox.LevelLimits} },
		Needed: func() sandbox.Level { return sandbox.LevelLimits },
	}, func() []string { return nil })}
	r.write("a.toy", "fn a\n  call b\n")
	root, err := filepath.EvalSymlinks(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	running := func() (n int) {
		for _, x := range r.LSP.Servers() {
			for _, denied := range []string{"", "/sub/secret"} {
				at := servers.Place{Owner: r.Key.Principal, Root: root, Roots: root, Confined: r.Confine.Confiner}
				if denied != "" {
					at.Denied = root + denied
				}
				if _, done, ok := r.LSP.Warm(at, x); ok {
					n++
					done()
				}
			}
		}
		return n
	}
	const symbols = `{"operation":"documentSymbol","filePath":"a.toy"}`
	for _, made := range []struct {
		path string
		want int
	}{{"b.toy", 1}, {"its.key", 1}, {"sub/secret/s.toy", 2}, {"sub/secret/t.toy", 2}} {
		r.write(made.path, "fn c\n")
		r.ok("lsp", symbols)
		if n := running(); n != made.want {
			t.Errorf("after %s %d servers run, not %d", made.path, n, made.want)
		}
	}
}

// The answer to an edit tells of the errors that it made, where a server runs; also that of an undo.
func TestLspAfterEdits(t *testing.T) {
	t.Parallel()
	r := withToy(t, newRig(t), lsptest.How{})
	r.write("a.toy", "fn a\n  call old\n")
	r.ok("read_file", `{"file_path":"a.toy"}`)
	same(t, r.ok("edit_file", `{"file_path":"a.toy","old_string":"call old","new_string":"call olds"}`), "Edited a.toy:2 (+1 -1)")
	r.ok("lsp", `{"operation":"documentSymbol","filePath":"a.toy"}`)
	same(t, r.ok("edit_file", `{"file_path":"a.toy","old_string":"fn a\n","new_string":"fn a\n  call new\n"}`),
		"Edited a.toy:2 (+1 -0)\n[new diagnostics: a.toy:2: undefined: new]")
	same(t, r.ok("edit_file", `{"file_path":"a.toy","old_string":"  call new\n","new_string":""}`), "Edited a.toy:2 (+0 -1)")
	got := r.ok("undo_change", `{"file_path":"a.toy"}`)
	if !strings.HasSuffix(got, "\n[new diagnostics: a.toy:2: undefined: new]") {
		t.Error(got)
	}
	many := "fn m\n" + strings.Repeat("  call x\n", 12)
	input, err := json.Marshal(map[string]string{"file_path": "m.toy", "content": many})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.ok("write_file", string(input)); strings.Count(got, "undefined: x") != 10 || !strings.HasSuffix(got, "; and 2 more]") {
		t.Error(got)
	}
	same(t, r.ok("multi_edit", `{"edits":[{"file_path":"b.toy","old_string":"","new_string":"fn b\n  call c\n"},{"file_path":"c.toy","old_string":"","new_string":"fn c\n  call b\n  call d\n"}]}`),
		"Created b.toy (2 lines)\nCreated c.toy (3 lines)\n[new diagnostics: c.toy:3: undefined: d]")
}

// While an edit waits for what its server says, the file is free: another edit of it does not wait for the first.
func TestLspEditHoldsNoLock(t *testing.T) {
	t.Parallel()
	r := withToy(t, newRig(t), lsptest.How{Hang: "textDocument/diagnostic"})
	r.write("a.toy", "fn a\n")
	r.ok("read_file", `{"file_path":"a.toy"}`)
	r.ok("lsp", `{"operation":"documentSymbol","filePath":"a.toy"}`)
	var edits sync.WaitGroup
	defer edits.Wait()
	defer r.LSP.Close() // ends what they wait for
	answered := make(chan string, 2)
	for _, words := range [][2]string{{"fn a", "fn b"}, {"fn b", "fn c"}} {
		edits.Go(func() {
			_, text := r.do("edit_file", fmt.Sprintf(`{"file_path":"a.toy","old_string":%q,"new_string":%q}`, words[0], words[1]))
			answered <- text
		})
		tooltest.Eventually(t, func() bool {
			text, err := os.ReadFile(filepath.Join(r.dir, "a.toy"))
			return err == nil && string(text) == words[1]+"\n"
		})
	}
	select {
	case text := <-answered:
		t.Errorf("an edit did not wait: %s", text)
	default:
	}
}

// TestLspEditChanges: a rename is a call that changes its files, so that plan mode refuses it; a dry run only reads.
func TestLspEditChanges(t *testing.T) {
	t.Parallel()
	r := withToy(t, newRig(t), lsptest.How{})
	r.write("a.toy", "fn a\n  call a\n")
	for args, reads := range map[string]bool{"": false, `,"dryRun":true`: true} {
		call, err := r.tool("lsp_edit").BindWithin(t.Context(), r.State,
			json.RawMessage(`{"operation":"rename","filePath":"a.toy","line":1,"query":"a","newName":"b"`+args+`}`))
		if err != nil {
			t.Fatal(err)
		}
		if call.Traits.ReadOnly != reads || call.Traits.Private {
			t.Errorf("%q: %+v", args, call.Traits)
		}
	}
}

// A rename over many files is one change with one undo; line ends and marks stay.
func TestLspRename(t *testing.T) {
	t.Parallel()
	r := withToy(t, newRig(t), lsptest.How{})
	r.write("a.toy", "\ufefffn a\r\n  call a\r\n")
	for i := range 60 {
		r.write(fmt.Sprintf("d/f%02d.toy", i), fmt.Sprintf("fn f%d\n  call a\n", i))
	}
	before := r.ok("lsp_edit", `{"operation":"rename","filePath":"a.toy","line":1,"query":"a","newName":"\ud83d\ude00x","dryRun":true}`)
	if !strings.HasPrefix(before, "Dry run: nothing was written. These files would change:\na.toy (+2 -2)\nd/f00.toy (+1 -1)\n") {
		t.Error(before)
	}
	r.holds("a.toy", "\ufefffn a\r\n  call a\r\n")
	got := r.ok("lsp_edit", `{"operation":"rename","filePath":"a.toy","line":1,"query":"a","newName":"\ud83d\ude00x"}`)
	if !strings.HasPrefix(got, "Renamed to \U0001f600x: 62 edits in 61 files\na.toy (+2 -2)\n") || strings.Contains(got, "[") {
		t.Error(got)
	}
	r.holds("a.toy", "\ufefffn \U0001f600x\r\n  call \U0001f600x\r\n")
	r.holds("d/f59.toy", "fn f59\n  call \U0001f600x\n")
	if got := r.ok("file_history", `{}`); strings.Count(got, "\n") != 0 {
		t.Errorf("more than one change: %s", got)
	}
	r.ok("undo_change", whole(r.lastChange("d/f30.toy")))
	r.holds("a.toy", "\ufefffn a\r\n  call a\r\n")
	r.holds("d/f59.toy", "fn f59\n  call a\n")
}

// A rename said nothing of places where the server does not know what the name means, and callers there broke.
func TestLspRenameTellsWhatIsLeft(t *testing.T) {
	t.Parallel()
	r := withToy(t, newRig(t, "Read(secret.toy)"), lsptest.How{})
	r.write("a.toy", "fn a\n")
	r.write("b.toy", "perhaps x.a here\n# a, and a again\nnot about ab\n")
	r.write("b.txt", "a\n")
	r.write("secret.toy", "# a\n")
	same(t, r.ok("lsp_edit", `{"operation":"rename","filePath":"a.toy","line":1,"query":"a","newName":"z"}`),
		"Renamed to z: 1 edit in 1 file\na.toy (+1 -1)\na still stands in 2 lines, such as b.toy:1, b.toy:2: not known to be the same symbol.")
}

// A dry run gives the edits as multi_edit takes them, and these do the same.
func TestLspDryRun(t *testing.T) {
	t.Parallel()
	r := withToy(t, newRig(t), lsptest.How{})
	r.write("a.toy", "fn a\r\n  call a\r\n  call a\r\nfn b\r\n  call a\r\n")
	r.write("b.toy", "fn c\n  call a")
	got := r.ok("lsp_edit", `{"operation":"rename","filePath":"b.toy","line":2,"query":"a","newName":"<z>","dryRun":true}`)
	_, edits, ok := strings.Cut(got, "multi_edit with:\n")
	if !ok {
		t.Fatal(got)
	}
	r.ok("read_file", `{"file_path":"a.toy"}`)
	r.ok("read_file", `{"file_path":"b.toy"}`)
	r.ok("multi_edit", edits)
	r.holds("a.toy", "fn <z>\r\n  call <z>\r\n  call <z>\r\nfn b\r\n  call <z>\r\n")
	r.holds("b.toy", "fn c\n  call <z>")
}

// Imports are put in order, and a second call finds nothing to do.
func TestLspOrganizeImports(t *testing.T) {
	t.Parallel()
	for _, how := range []lsptest.How{{}, {Command: true}} {
		r := withToy(t, newRig(t), how)
		r.write("a.toy", "import b\nimport a\nfn a\n")
		same(t, r.ok("lsp_edit", `{"operation":"organizeImports","filePath":"a.toy"}`), "Ordered the imports: 2 edits in 1 file\na.toy (+1 -1)")
		r.holds("a.toy", "import a\nimport b\nfn a\n")
	}
	r := withToy(t, newRig(t), lsptest.How{Files: true})
	r.write("a.toy", "fn a\n")
	if got := r.fails(tool.LSPFailed, "lsp_edit", `{"operation":"rename","filePath":"a.toy","line":1,"query":"a","newName":"b"}`); !strings.Contains(got, "create, rename or remove files") {
		t.Error(got)
	}
	for input, want := range map[string]string{
		`{"operation":"rename","filePath":"a.toy"}`:                        `"newName" is required for rename`,
		`{"operation":"organizeImports","filePath":"a.toy","newName":"x"}`: `"newName" is for rename alone`,
		`{"operation":"rename","filePath":"a.toy","newName":"x","line":1}`: `"line", and "character" or "query", are required`,
	} {
		if got := r.fails(tool.InputInvalid, "lsp_edit", input); !strings.Contains(got, want) {
			t.Error(got)
		}
	}
}
