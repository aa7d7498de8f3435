package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A git, an editor or a server outside replaces files by renaming others onto them. With that the kernel takes away what
// is mounted over the name for a command that runs, which could change, or read, the new file from then on.
func TestReplacedOutside(t *testing.T) {
	t.Parallel()
	write := func(path, text string) error { return os.WriteFile(path, []byte(text), 0o644) }
	for name, c := range map[string]struct {
		// replace does outside what a person's programs do in the directory.
		replace func(dir string) error
		file    string // below it, which the command tries to change and to read
		shows   string // what it reads there: person, own or nothing
		free    bool   // nothing was there when the command started, so it may change it
	}{
		"file": {file: ".mcp.json", shows: "person", replace: func(dir string) error {
			return os.Rename(dir+"/new", dir+"/.mcp.json")
		}},
		"file, written in place": {file: ".mcp.json", shows: "person", replace: func(dir string) error {
			return write(dir+"/.mcp.json", "person\n")
		}},
		"file, removed and made": {file: ".mcp.json", shows: "person", replace: func(dir string) error {
			if err := os.Remove(dir + "/.mcp.json"); err != nil {
				return err
			}
			return write(dir+"/.mcp.json", "person\n")
		}},
		"file, moved away and made": {file: ".mcp.json", shows: "person", replace: func(dir string) error {
			if err := os.Rename(dir+"/.mcp.json", dir+"/old"); err != nil {
				return err
			}
			return write(dir+"/.mcp.json", "person\n")
		}},
		"file, twice": {file: ".mcp.json", shows: "person", replace: func(dir string) error {
			if err := os.Rename(dir+"/other", dir+"/.mcp.json"); err != nil {
				return err
			}
			return os.Rename(dir+"/new", dir+"/.mcp.json")
		}},
		"what a link leads to": {file: "conf/envrc", shows: "person", replace: func(dir string) error {
			return os.Rename(dir+"/new", dir+"/conf/envrc")
		}},
		"file in a directory": {file: ".vscode/tasks", shows: "person", replace: func(dir string) error {
			return os.Rename(dir+"/new", dir+"/.vscode/tasks")
		}},
		"directory": {file: ".vscode/tasks", shows: "person", replace: func(dir string) error {
			if err := os.Rename(dir+"/.vscode", dir+"/old"); err != nil {
				return err
			}
			return os.Rename(dir+"/newdir", dir+"/.vscode")
		}},
		"directory, exchanged": {file: ".vscode/tasks", shows: "person", replace: func(dir string) error {
			return unix.Renameat2(unix.AT_FDCWD, dir+"/.vscode", unix.AT_FDCWD, dir+"/newdir", unix.RENAME_EXCHANGE)
		}},
		"parent": {file: "a/.vscode/tasks", shows: "person", replace: func(dir string) error {
			if err := os.Rename(dir+"/a", dir+"/old"); err != nil {
				return err
			}
			if err := os.Mkdir(dir+"/new-a", 0o755); err != nil {
				return err
			}
			if err := os.Rename(dir+"/newdir", dir+"/new-a/.vscode"); err != nil {
				return err
			}
			return os.Rename(dir+"/new-a", dir+"/a")
		}},
		"parent, piece by piece": {file: "a/.vscode/tasks", shows: "person", replace: func(dir string) error {
			if err := os.RemoveAll(dir + "/a"); err != nil {
				return err
			}
			if err := os.MkdirAll(dir+"/a/.vscode", 0o755); err != nil {
				return err
			}
			return write(dir+"/a/.vscode/tasks", "person\n")
		}},
		"parent, and back": {file: "a/.vscode/tasks", shows: "kept", replace: func(dir string) error {
			if err := os.Rename(dir+"/a", dir+"/b"); err != nil {
				return err
			}
			return os.Rename(dir+"/b", dir+"/a")
		}},
		"configuration": {file: ".git/config", shows: "own", replace: func(dir string) error {
			return os.Rename(dir+"/new", dir+"/.git/config")
		}},
		"configuration and its directory": {file: ".git/config", shows: "own", replace: func(dir string) error {
			if err := os.Rename(dir+"/.git", dir+"/old"); err != nil {
				return err
			}
			if err := os.Mkdir(dir+"/.git", 0o755); err != nil {
				return err
			}
			return os.Rename(dir+"/new", dir+"/.git/config")
		}},
		"hidden": {file: ".env", replace: func(dir string) error { return os.Rename(dir+"/new", dir+"/.env") }},
		"hidden, never there": {file: ".env.local", replace: func(dir string) error {
			return os.Rename(dir+"/new", dir+"/.env.local")
		}},
		"never there": {file: ".npmrc", shows: "person", free: true, replace: func(dir string) error {
			return os.Rename(dir+"/new", dir+"/.npmrc")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base, err := filepath.EvalSymlinks(t.TempDir())
			must(t, err)
			dir, temp := base+"/w", base+"/temp"
			for _, sub := range []string{"temp", "w/.git", "w/.vscode", "w/newdir", "w/a/.vscode", "w/conf"} {
				must(t, os.MkdirAll(base+"/"+sub, 0o755))
			}
			for file, text := range map[string]string{
				"w/.mcp.json": "kept\n", "w/.vscode/tasks": "kept\n", "w/a/.vscode/tasks": "kept\n", "w/.git/config": "kept\n",
				"w/conf/envrc": "kept\n", "w/.env": "kept\n", "w/new": "person\n", "w/newdir/tasks": "person\n",
				"w/other": "person\n", "temp/config": "own\n",
			} {
				must(t, write(base+"/"+file, text))
			}
			must(t, os.Symlink("conf/envrc", dir+"/.envrc"))
			for _, pipe := range []string{"ready", "go"} {
				must(t, unix.Mkfifo(temp+"/"+pipe, 0o600))
			}
			p := &Profile{
				Writable: []string{dir}, Temp: temp, Unwatched: true,
				Linked: []Link{{Path: dir + "/.git/config", Target: temp + "/config"}},
				Hidden: []string{dir + "/.env", dir + "/.env.local"},
			}
			for _, below := range []string{".mcp.json", ".vscode", "a/.vscode", ".envrc", ".npmrc"} {
				p.Protected = append(p.Protected, dir+"/"+below)
			}
			// It waits until the name is covered again. If it stays free, it gives up after many tries, and changes it.
			r := confined(t, LevelFull, p, dir, fmt.Sprintf(`exec 2>/dev/null
				echo > /tmp/ready; read < /tmp/go
				f=%s n=0
				until %t || [ -h $f ] || ! touch -c $f || [ $((n += 1)) = 20000 ]; do :; done
				cat $f; echo evil >> $f; mv -f other $f; rm -f $f; mkdir -p $(dirname $f); echo evil >> $f`, c.file, c.free))
			_, err = os.ReadFile(temp + "/ready")
			must(t, err)
			must(t, c.replace(dir))
			must(t, os.WriteFile(temp+"/go", []byte("\n"), 0))
			if got := strings.TrimSpace(r.text(t)); got != c.shows {
				t.Errorf("it reads %q, want %q", got, c.shows)
			}
			r.End(0)
			text, err := os.ReadFile(dir + "/" + c.file)
			if changed := string(text) != "person\n" && string(text) != "kept\n"; err != nil || changed != c.free {
				t.Errorf("there is %q, %v", text, err)
			}
		})
	}
}
