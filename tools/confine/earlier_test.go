package confine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/tools/guarded"
	"codehand/tools/sandbox"
)

// What was replaced while a command ran, and what appeared beside a job, may be a person's work or the command's: it
// stays, and the result names it.
func TestReplacedBeside(t *testing.T) {
	t.Parallel()
	names, err := guarded.ProtectedNames(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	const said = "[made or replaced while this "
	for name, c := range map[string]struct {
		background bool
		allowed    []string                  // below the root
		do         func(root *os.Root) error // what happens meanwhile
		want       string                    // names in the line; "": there is none
		stays      map[string]string         // files and what they hold
	}{
		"nothing happens": {background: true, do: func(*os.Root) error { return nil }},
		"replaced": {
			background: true, want: "job ran, which could write it: .mcp.json. ", stays: map[string]string{".mcp.json": "new"},
			do: func(root *os.Root) error { return root.Rename("new", ".mcp.json") },
		},
		"replaced beside a command": {
			want: "command ran, which could write it: .mcp.json. ", stays: map[string]string{".mcp.json": "new"},
			do: func(root *os.Root) error { return root.Rename("new", ".mcp.json") },
		},
		"replaced by the same": {background: true, do: func(root *os.Root) error { return root.Rename("same", ".mcp.json") }},
		"written in place": {background: true, do: func(root *os.Root) error {
			return root.WriteFile(".mcp.json", []byte("person"), 0o600)
		}},
		"written in a directory": {background: true, do: func(root *os.Root) error {
			return root.Rename("new", ".vscode/tasks.json")
		}},
		"directory replaced": {background: true, want: ": .vscode. ", do: func(root *os.Root) error {
			if err := root.Rename(".vscode", "old"); err != nil {
				return err
			}
			return root.Mkdir(".vscode", 0o700)
		}},
		"appeared": {
			background: true, want: ": .envrc, .npmrc. ", stays: map[string]string{".envrc": "new", ".npmrc": "kept"},
			do: func(root *os.Root) error {
				if err := root.Rename("new", ".envrc"); err != nil {
					return err
				}
				return root.Rename("same", ".npmrc")
			},
		},
		"appeared, and allowed": {background: true, allowed: []string{".envrc"}, do: func(root *os.Root) error {
			return root.Rename("new", ".envrc")
		}},
		"removed": {background: true, do: func(root *os.Root) error { return root.Remove(".mcp.json") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base, err := filepath.EvalSymlinks(leaktest.Dir(t))
			if err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(base, "w")
			if err := os.MkdirAll(filepath.Join(dir, ".vscode"), 0o700); err != nil {
				t.Fatal(err)
			}
			root, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			for file, text := range map[string]string{
				".mcp.json": "kept", "same": "kept", "new": "new", ".vscode/tasks.json": "kept",
			} {
				if err := root.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			s := &Session{Temp: filepath.Join(base, "temp"), Confiner: New(Options{
				Protected: names, Whose: Whose{Roots: []string{dir}},
				Proven: func() sandbox.Report { return sandbox.Report{Level: sandbox.LevelFull} },
				Needed: func() sandbox.Level { return sandbox.LevelNone },
			}, func() []string { return nil })}
			u := Use{Roots: []string{dir}, Configs: true, Background: c.background}
			for _, file := range c.allowed {
				u.Allowed = append(u.Allowed, filepath.Join(dir, file))
			}
			command, err := s.Command(u)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.do(root); err != nil {
				t.Fatal(err)
			}
			lines := strings.Join(command.Over(c.background), "\n")
			if told := strings.Contains(lines, said); told != (c.want != "") || !strings.Contains(lines, c.want) {
				t.Errorf("it says %q, want %q", lines, c.want)
			}
			for file, want := range c.stays {
				if text, err := root.ReadFile(file); err != nil || string(text) != want {
					t.Errorf("%s has %q, want %q, %v", file, text, want, err)
				}
			}
		})
	}
}
