package blackbox

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// stateCalls leave in the state directory what there is to leave: an entry of the journal, a lock, a job, a kept result,
// the copy of a PDF.
var stateCalls = []string{
	`{"name":"write_file","arguments":{"file_path":"made.txt","content":"one\n"}}`,
	`{"name":"edit_file","arguments":{"file_path":"made.txt","old_string":"one","new_string":"two"}}`,
	`{"name":"run_shell","arguments":{"command":"seq 1 100000; mktemp","timeout":20000}}`,
	`{"name":"run_shell","arguments":{"command":"echo job","run_in_background":true}}`,
	`{"name":"read_file","arguments":{"file_path":"short.pdf"}}`,
	`{"name":"write_file","arguments":{"file_path":"broken.pdf","content":"x"}}`,
}

// A stateRun is a run of the program with a state directory and a directory for temporary files.
type stateRun struct {
	home, state, temp, work string
	answers                 []string
	stderr                  bytes.Buffer
	code                    int
}

func newStateRun(t *testing.T) *stateRun {
	t.Helper()
	base := leaktest.Dir(t)
	r := &stateRun{home: filepath.Join(base, "home"), temp: filepath.Join(base, "temp"), work: filepath.Join(base, "work")}
	r.state = filepath.Join(r.home, "codehand")
	for _, dir := range []string{r.home, r.temp, r.work} {
		must(t, os.Mkdir(dir, 0o700))
	}
	f, err := os.Create(filepath.Join(r.work, "short.pdf"))
	must(t, err)
	must(t, pdfBomb(1, "/Kids[3 0 R]/Count 1")(f))
	must(t, f.Close())
	return r
}

func (r *stateRun) command(ctx context.Context, t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	path := replaytest.Program(t)
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Stderr = r.work, &r.stderr
	cmd.Env = []string{"HOME=" + r.home, "PATH=" + os.Getenv("PATH"), "XDG_STATE_HOME=" + r.home, "TMPDIR=" + r.temp, "CODEHAND_SESSION=" + replaytest.Handle}
	return cmd
}

// talk makes the calls over stdio, each after the answer to the one before, until the program ends.
func (r *stateRun) talk(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := r.command(ctx, t, "stdio", r.work)
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, leaktest.Start(cmd))
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	ask := func(id int, method, params string) {
		_, _ = fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", id, method, params) // it may have ended
		for lines.Scan() {
			if strings.Contains(lines.Text(), fmt.Sprintf(`"id":%d,`, id)) {
				r.answers = append(r.answers, lines.Text())
				return
			}
		}
	}
	ask(0, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"state-test","version":"1"}}`)
	_, _ = io.WriteString(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	for i, call := range stateCalls {
		ask(i+1, "tools/call", call)
	}
	_ = in.Close()
	for lines.Scan() { // to its end
	}
	_ = cmd.Wait() // the code says it
	r.code = cmd.ProcessState.ExitCode()
}

// under lists what is below dir.
func under(t *testing.T, dir string) (all []string) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if path != dir {
			all = append(all, strings.TrimPrefix(path, dir+"/"))
		}
		return err
	}))
	return all
}

// stdio and serve refuse a state directory that another user could read or replace, before they write anything, and the
// refusal names it (SEC-46).
func TestSEC46StateDirectory(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(t *testing.T, r *stateRun, other string){
		"pre-planted link": func(t *testing.T, r *stateRun, other string) { must(t, os.Symlink(other, r.state)) },
		"link to a file": func(t *testing.T, r *stateRun, other string) {
			must(t, os.Symlink(filepath.Join(other, "new"), r.state))
		},
		"mode 0777": func(t *testing.T, r *stateRun, _ string) {
			must(t, errors.Join(os.Mkdir(r.state, 0o700), os.Chmod(r.state, 0o777)))
		},
		"mode 0750": func(t *testing.T, r *stateRun, _ string) {
			must(t, errors.Join(os.Mkdir(r.state, 0o700), os.Chmod(r.state, 0o750)))
		},
		"group-writable parent": func(t *testing.T, r *stateRun, _ string) { must(t, os.Chmod(r.home, 0o770)) },
		"parent for everybody":  func(t *testing.T, r *stateRun, _ string) { must(t, os.Chmod(r.home, 0o707)) },
		"a file":                func(t *testing.T, r *stateRun, _ string) { must(t, os.WriteFile(r.state, nil, 0o600)) },
		"foreign owner": func(t *testing.T, r *stateRun, _ string) {
			if os.Geteuid() != 0 {
				t.Skip("only root can give a directory away")
			}
			must(t, errors.Join(os.Mkdir(r.state, 0o700), os.Chown(r.state, 12345, 12345)))
		},
	} {
		for _, mode := range []string{"stdio", "serve"} {
			t.Run(name+" "+mode, func(t *testing.T) {
				t.Parallel()
				r, other := newStateRun(t), t.TempDir()
				prepare(t, r, other)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				args := []string{mode, r.work}
				if mode == "serve" {
					args = append(args, "--listen", "127.0.0.1:0", "--auth-mode", "token", "--sandbox-policy", "off")
				}
				err := r.command(ctx, t, args...).Run()
				if text := r.stderr.String(); err == nil || ctx.Err() != nil || !strings.Contains(text, r.home) {
					t.Errorf("%v, %q: want an end that names %s", err, text, r.state)
				}
				if left := under(t, other); len(left) > 0 {
					t.Errorf("written behind the link: %v", left)
				}
			})
		}
	}
}

// Links that wait inside of the state directory, under each name that a run leaves and the next one uses again, lead
// nothing out of it: neither is anything made or changed behind them, nor read from there (SEC-46).
func TestSEC46LinksInside(t *testing.T) {
	t.Parallel()
	first := newStateRun(t)
	first.talk(t)
	if first.code != 0 || len(first.answers) != len(stateCalls)+1 {
		t.Fatalf("code %d, %d answers\n%s", first.code, len(first.answers), &first.stderr)
	}
	again := newStateRun(t)
	again.work = first.work // names are made of the path
	must(t, os.Remove(filepath.Join(first.work, "made.txt")))
	again.talk(t)
	names := slices.DeleteFunc(under(t, first.state), func(name string) bool {
		_, err := os.Lstat(filepath.Join(again.state, name))
		return err != nil
	})
	t.Logf("names used again: %q", names)
	for _, name := range names {
		info, err := os.Lstat(filepath.Join(first.state, name))
		must(t, err)
		for _, dangling := range []bool{false, true} {
			r, other := newStateRun(t), t.TempDir()
			r.work = first.work
			for _, file := range []string{"made.txt", "broken.pdf"} {
				must(t, os.RemoveAll(filepath.Join(r.work, file)))
			}
			must(t, os.MkdirAll(filepath.Dir(filepath.Join(r.state, name)), 0o700))
			target := filepath.Join(other, "target")
			switch {
			case dangling:
			case info.IsDir():
				must(t, os.Mkdir(target, 0o755))
			default:
				must(t, os.WriteFile(target, []byte("precious\n"), 0o644))
			}
			must(t, os.Symlink(target, filepath.Join(r.state, name)))
			r.talk(t)
			want := []string{"target"}
			if dangling {
				want = nil
			}
			if left := under(t, other); !slices.Equal(left, want) {
				t.Errorf("link %s (dangling: %v): there is now %q behind it", name, dangling, left)
			}
			if text, err := os.ReadFile(target); err == nil && string(text) != "precious\n" {
				t.Errorf("link %s: the file behind it is now %q", name, text)
			}
			if info, err := os.Stat(target); err == nil && info.Mode().Perm()&0o044 == 0 {
				t.Errorf("link %s: the mode of what is behind it is now %v", name, info.Mode())
			}
		}
	}
}

// After a run nothing of ours is among the temporary files, and what the state directory keeps has unpredictable names,
// or is for the owner alone (SEC-46).
func TestSEC46NothingInTemp(t *testing.T) {
	t.Parallel()
	r := newStateRun(t)
	before, err := filepath.Glob("/tmp/*codehand*")
	must(t, err)
	r.talk(t)
	if r.code != 0 {
		t.Fatalf("code %d\n%s", r.code, &r.stderr)
	}
	// What the command made is the command's.
	left := slices.DeleteFunc(under(t, r.temp), func(name string) bool { return strings.HasPrefix(name, "tmp.") })
	if len(left) > 0 {
		t.Errorf("left in TMPDIR: %q", left)
	}
	after, err := filepath.Glob("/tmp/*codehand*")
	must(t, err)
	for _, name := range after {
		// Other tests run at the same time; what this server makes would be new, and not of go test or theirs.
		if !slices.Contains(before, name) && !regexp.MustCompile(`/Test|codehand-(test|rights|conformance|bench)`).MatchString(name) {
			t.Errorf("new in /tmp: %s", name)
		}
	}
	must(t, filepath.WalkDir(r.state, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %04o, want no rights for others", path, info.Mode().Perm())
		}
		return err
	}))
}
