package sandbox

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
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

// Where a command, or the programs of a person, took all watches that the user may have, what is replaced outside is
// covered all the same, and what appears is set aside.
func TestReplacedUnwatched(t *testing.T) {
	t.Parallel()
	for _, limit := range []string{"max_inotify_instances", "max_inotify_watches"} {
		t.Run(limit, func(t *testing.T) {
			t.Parallel()
			dir, err := filepath.EvalSymlinks(t.TempDir())
			must(t, err)
			for _, file := range []string{".mcp.json", ".env"} {
				must(t, os.WriteFile(dir+"/"+file, []byte("kept\n"), 0o644))
			}
			c := exec.CommandContext(t.Context(), "/proc/self/exe")
			// The helper looks once in any case, so both are replaced twice. Each loop gives up after many tries.
			c.Env = append(os.Environ(), childMode+"=blind", "LIMIT="+limit, "DIR="+dir, `TEXT=exec 2>/dev/null
				for i in 1 2; do
					echo ready; read
					n=0; while cat .env > /dev/null && [ $((n += 1)) -lt 5000 ]; do :; done
					n=0; while touch -c .mcp.json && [ $((n += 1)) -lt 5000 ]; do :; done
				done
				touch .npmrc; n=0; while [ -e .npmrc ] && [ $((n += 1)) -lt 5000 ]; do touch -c x; done
				cat .env .mcp.json .npmrc; echo evil >> .mcp.json; rm -f .mcp.json; ls -A`)
			c.SysProcAttr = &syscall.SysProcAttr{
				Cloneflags:  unix.CLONE_NEWUSER,
				UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}},
				GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}},
				AmbientCaps: []uintptr{unix.CAP_SYS_RESOURCE},
			}
			in, err := c.StdinPipe()
			must(t, err)
			out, err := c.StdoutPipe()
			must(t, err)
			var errors bytes.Buffer
			c.Stderr = &errors
			if err := c.Start(); err != nil {
				cannot(t, err)
			}
			printed := bufio.NewReader(out)
			for range 2 {
				_, _ = printed.ReadString('\n') // ready, or it has failed
				for _, file := range []string{".mcp.json", ".env"} {
					must(t, os.WriteFile(dir+"/new", []byte("person\n"), 0o644))
					must(t, os.Rename(dir+"/new", dir+"/"+file))
				}
				_, _ = in.Write([]byte("\n"))
			}
			must(t, in.Close())
			rest, err := io.ReadAll(printed)
			must(t, err)
			if err := c.Wait(); err != nil {
				cannot(t, fmt.Errorf("%w: %s", err, errors.String()))
			}
			got, aside, _ := strings.Cut(string(rest), ".npmrc"+Aside)
			if want := "person\n.env\n.mcp.json\n"; got != want || aside == "" {
				t.Errorf("got %q, want %q and a file set aside", rest, want)
			}
		})
	}
}
