package sandbox

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"codehand/filestate/leaktest"
)

// confined starts text under bash at a level and returns it with the file that it prints to.
func confined(t *testing.T, level Level, p *Profile, dir, text string, env ...string) run {
	t.Helper()
	root, err := os.OpenRoot(dir)
	must(t, err)
	defer root.Close()
	f, err := os.CreateTemp(t.TempDir(), "output")
	must(t, err)
	defer f.Close()
	process, err := Start(t.Context(), Cmd{
		Path: bashPath(t), Args: []string{"--noprofile", "--norc", "-c", text}, Env: append([]string{"PATH=" + defaultPath}, env...),
		Dir: root, Stdout: f, Stderr: f, Profile: p, Level: level,
	})
	if errors.Is(err, ErrConfine) {
		cannot(t, err)
	}
	must(t, err)
	t.Cleanup(func() { process.End(0) })
	return run{process, f.Name()}
}

// cannot ends a test on a machine that cannot confine. In CI all can.
func cannot(t *testing.T, err error) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(err)
	}
	t.Skip("this machine cannot confine:", err)
}

func TestProfile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text, want string
	}{
		"writes in the root":   {`echo x > a && cat a`, "x\n"},
		"streams by name":      {`echo x > /dev/stdout`, "x\n"},
		"no other process":     {`set -- /proc/[0-9]*; echo $#`, "2\n"},
		"no capability":        {`grep -h ^Cap /proc/self/status | tr -d '\t0\n'`, "CapInh:CapPrm:CapEff:CapBnd:CapAmb:"},
		"no network":           {`cat /proc/net/dev | wc -l; (exec 3> /dev/tcp/127.0.0.1/1) 2>/dev/null || echo no`, "3\nno\n"},
		"no new namespaces":    {`unshare -U true 2>/dev/null || echo no`, "no\n"},
		"nothing outside":      {`ls /home /root /work 2>/dev/null; mkdir /new 2>/dev/null || echo no`, "no\n"},
		"system is read-only":  {`touch /usr/x 2>/dev/null || echo no; chmod 755 /etc 2>/dev/null || echo no`, "no\nno\n"},
		"temporary is its own": {`echo x > /tmp/x && cat /tmp/x /var/tmp/x; echo y > /dev/shm/y && cat /dev/shm/y`, "x\nx\ny\n"},
		"not endless files":    {`stat -f -c %c /tmp /dev/shm`, "65536\n65536\n"},
		"not all watches":      {`cat /proc/sys/user/max_inotify_instances`, "64\n"},
		"kernel's settings":    {`echo x 2>/dev/null > /proc/sys/kernel/core_pattern || echo no`, "no\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			r := confined(t, LevelFull, &Profile{Writable: []string{dir}}, dir, c.text)
			if got := r.text(t); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A set-user-ID program that a command leaves gives its rights to each user of the machine. Directories that hand on
// their group are everyday.
func TestSetUserID(t *testing.T) {
	t.Parallel()
	python := `python3 -c 'import os, sys; os.umask(0); %s' || echo no`
	for name, c := range map[string]struct{ text, want string }{
		"chmod":             {`chmod 4755 mine || echo no; stat -c %a mine`, "no\n755\n"},
		"chmod with others": {`chmod u+s,g+s mine || echo no; chmod 6755 mine || echo no; stat -c %a mine`, "no\nno\n755\n"},
		"install":           {`install -m 4755 mine new || echo no`, "no\n"},
		"tar":               {`tar -xpf tar || echo no`, "no\n"},
		"fchmod":            {fmt.Sprintf(python, `os.fchmod(os.open("mine", os.O_RDWR), 0o4755)`), "no\n"},
		"open":              {fmt.Sprintf(python, `os.open("new", os.O_CREAT | os.O_WRONLY, 0o4755)`), "no\n"},
		"mknod":             {fmt.Sprintf(python, `os.mknod("new", 0o104755)`), "no\n"},
		"no name yet": {fmt.Sprintf(python,
			`f = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o4755); os.link("/proc/self/fd/%d" % f, "new", src_dir_fd=f, follow_symlinks=True)`), "no\n"},
		"other bits": {`mkdir -m 2755 d && chmod 2775 d && chmod 2755 mine && chmod 1777 d && install -m 755 mine new && stat -c %a d mine new`,
			"3777\n2755\n755\n"},
		"mode of an open file": {fmt.Sprintf(python, `os.open("mine", os.O_RDWR, 0o4755)`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath("python3"); err != nil && strings.HasPrefix(c.text, "python3") {
				t.Skip(err)
			}
			dir := t.TempDir()
			must(t, os.WriteFile(dir+"/mine", nil, 0o755))
			must(t, os.Chmod(dir+"/mine", 0o755))
			archive, err := os.Create(dir + "/tar")
			must(t, err)
			w := tar.NewWriter(archive)
			must(t, w.WriteHeader(&tar.Header{Name: "new", Mode: 0o4755, Uid: os.Geteuid(), Gid: os.Getegid()}))
			must(t, w.Close())
			must(t, archive.Close())
			if got := confined(t, LevelFull, &Profile{Writable: []string{dir}}, dir, "exec 2>/dev/null; "+c.text).text(t); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
				if info, infoErr := os.Lstat(path); err != nil || infoErr != nil || info.Mode()&os.ModeSetuid != 0 {
					t.Errorf("%s: %v, %v, %v", path, info, err, infoErr)
				}
				return nil
			}))
		})
	}
}

// A codehand that runs in a command, as its own tests do, confines its commands at level 2 without openat2.
func TestNested(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	must(t, err)
	dir := t.TempDir()
	must(t, os.Symlink("/usr", dir+"/link"))
	p := &Profile{Writable: []string{dir}, Readable: []string{filepath.Dir(self)}}
	r := confined(t, LevelFull, p, dir, `"`+self+`"`, childMode+"=inside", "DIR="+dir)
	if got, want := r.text(t), "written\nno\n"; !strings.HasPrefix(got, want) || !strings.Contains(got, unix.ELOOP.Error()) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What is executed or obeyed by others stays as it is, by whatever way a command comes to it; git's own work goes on.
func TestProtected(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text, want string
		removed    []string
	}{
		"overwrite":         {text: `echo x > .git/config; cat .git/config`, want: "kept\n"},
		"replace":           {text: `echo x > y; mv -f y .git/config; cat .git/config`, want: "kept\n"},
		"remove":            {text: `rm -rf .git/config .git/hooks; ls .git`, want: "config\nhooks\n"},
		"rename the parent": {text: `mv .git x; mkdir .git; echo x > .git/config; cat .git/config`, want: "kept\n"},
		"rename a deep one": {text: `mv a b; mv a/b b; mkdir -p a/b; echo x > a/b/.git/config; cat a/b/.git/config`, want: "deep\n"},
		"add a hook":        {text: `touch .git/hooks/x; ls .git/hooks`, want: ""},
		"change the mode":   {text: `chmod 777 .git/hooks; stat -c %a .git/hooks`, want: "755\n"},
		"missing directory": {text: `mkdir y; touch y/x; mv y .vscode; echo done`, want: "done\n", removed: []string{".vscode"}},
		"missing parent":    {text: `mkdir -p .config/fish; cat`, want: "", removed: []string{".config/fish"}},
		"missing file":      {text: `echo x > .mcp.json; echo done`, want: "done\n", removed: []string{".mcp.json"}},
		"missing, by link":  {text: `echo x > y; ln y .mcp.json; echo done`, want: "done\n", removed: []string{".mcp.json"}},
		"missing, deep":     {text: `mkdir -p d/e; echo x > d/e/.mcp.json; echo done`, want: "done\n", removed: []string{"d/e/.mcp.json"}},
		"missing, shut":     {text: `mkdir -p d/x; echo x > d/x/.mcp.json; chmod 0555 d/x; mv d/x d/e; echo done`, want: "done\n", removed: []string{"d/e/.mcp.json"}},
		"missing, unseen":   {text: `mkdir -p d/x; echo x > d/x/.mcp.json; chmod 0111 d/x; mv d/x d/e; echo done`, want: "done\n", removed: []string{"d/e/.mcp.json"}},
		"work goes on":      {text: `echo x > .git/index; mv .git/index .git/HEAD; cat .git/HEAD`, want: "x\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			t.Cleanup(func() { _ = os.Chmod(filepath.Join(dir, "d/e"), 0o700) }) // if it was shut
			for _, sub := range []string{".git/hooks", "a/b/.git"} {
				must(t, os.MkdirAll(filepath.Join(dir, sub), 0o755))
			}
			must(t, os.WriteFile(filepath.Join(dir, ".git/config"), []byte("kept\n"), 0o600))
			must(t, os.WriteFile(filepath.Join(dir, "a/b/.git/config"), []byte("deep\n"), 0o600))
			profile := &Profile{Writable: []string{dir}}
			for _, below := range []string{
				".git/config", ".git/hooks", "a/b/.git/config", ".vscode", ".config/fish", ".mcp.json", "d/e/.mcp.json",
			} {
				profile.Protected = append(profile.Protected, dir+"/"+below)
			}
			r := confined(t, LevelFull, profile, dir, "exec 2>/dev/null\n"+c.text)
			if got := r.text(t); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			r.End(0)
			for i, path := range c.removed {
				c.removed[i] = filepath.Join(dir, path)
			}
			if got := r.Removed(); !slices.Equal(got, c.removed) {
				t.Errorf("removed %q, want %q", got, c.removed)
			}
			for _, path := range append(c.removed, filepath.Join(dir, ".vscode")) {
				if _, err := os.Lstat(path); err == nil {
					t.Errorf("%s is left", path)
				}
			}
		})
	}
}

// A command writes into a file of its own in place of one that stays as it is, also as git does, by renaming.
func TestLinked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want, own string }{
		"read":         {text: `cat .git/config`, want: "own\n", own: "own\n"},
		"write":        {text: `echo x > .git/config; cat .git/config`, want: "x\n", own: "x\n"},
		"rename":       {text: `t=$(readlink .git/config); echo x > "$t.lock"; mv "$t.lock" "$t"; cat .git/config`, want: "x\n", own: "x\n"},
		"replace":      {text: `echo x > y; mv -f y .git/config; cat .git/config`, want: "own\n", own: "own\n"},
		"remove":       {text: `rm -f .git/config; cat .git/config`, want: "own\n", own: "own\n"},
		"rename it":    {text: `mv .git/config x; cat .git/config`, want: "own\n", own: "own\n"},
		"move its dir": {text: `mv .git x; cat .git/config`, want: "own\n", own: "own\n"},
		"link it":      {text: `ln .git/config x; ls`, want: "", own: "own\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, temp := t.TempDir(), t.TempDir()
			must(t, os.Mkdir(filepath.Join(dir, ".git"), 0o755))
			file, own := filepath.Join(dir, ".git/config"), filepath.Join(temp, "config")
			must(t, os.WriteFile(file, []byte("kept\n"), 0o600))
			must(t, os.WriteFile(own, []byte("own\n"), 0o600))
			profile := &Profile{Writable: []string{dir}, Temp: temp, Linked: []Link{{Path: file, Target: own}}}
			r := confined(t, LevelFull, profile, dir, "exec 2>/dev/null\n"+c.text)
			if got := r.text(t); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			r.End(0)
			kept, err := os.ReadFile(file)
			must(t, err)
			info, err := os.Lstat(file)
			must(t, err)
			written, err := os.ReadFile(own)
			must(t, err)
			if string(kept) != "kept\n" || !info.Mode().IsRegular() || string(written) != c.own {
				t.Errorf("the file is %v and has %q, that of the command has %q", info.Mode(), kept, written)
			}
		})
	}
}

// A command finds one socket under the name of another, which it does not reach, wherever that name lies.
func TestLinkedSocket(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("perl"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("CI has no perl")
		}
		t.Skip("perl is not installed")
	}
	const connect = `socket(S, AF_UNIX, SOCK_STREAM, 0); connect(S, pack_sockaddr_un(@ARGV)) or die $!; print <S>`
	for name, profile := range map[string]func(dir string) Profile{
		"outside":  func(dir string) Profile { return Profile{Readable: []string{dir + "/given"}} },
		"readable": func(dir string) Profile { return Profile{Readable: []string{dir}} },
		"writable": func(dir string) Profile { return Profile{Writable: []string{dir}} },
		"masked": func(dir string) Profile {
			return Profile{Readable: []string{filepath.Dir(dir), dir + "/given"}, Masked: []string{dir}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, cwd := filepath.Join(leaktest.Dir(t), "in"), t.TempDir()
			must(t, os.Mkdir(dir, 0o755))
			for _, name := range []string{"given", "kept"} {
				l, err := net.Listen("unix", filepath.Join(dir, name))
				must(t, err)
				var serving sync.WaitGroup
				t.Cleanup(func() {
					_ = l.Close()
					serving.Wait()
				})
				serving.Go(func() {
					for c, err := l.Accept(); err == nil; c, err = l.Accept() {
						_, _ = c.Write([]byte(name + "\n"))
						_ = c.Close()
					}
				})
			}
			p := profile(dir)
			p.Writable, p.Sockets, p.Network = append(p.Writable, cwd), true, NetworkOn
			p.Linked = []Link{{Path: dir + "/kept", Target: dir + "/given"}}
			text := "perl -MSocket -e '" + connect + "' " + dir + "/kept"
			if name != "outside" { // there it is in the command's own temporary directory
				text = "mv " + dir + "/kept x; rm -f " + dir + "/kept; " + text
			}
			r := confined(t, LevelFull, &p, cwd, text)
			if got := r.text(t); !strings.HasSuffix(got, "given\n") || strings.Contains(got, "kept\n") {
				t.Errorf("got %q", got)
			}
		})
	}
}

// A mount cannot be put on a link: without more, a command could put a file of its own in its place.
func TestProtectedLink(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text    string
		want    string
		removed []string
	}{
		"written through": {text: `echo x >> .envrc; cat conf/envrc`, want: "kept\n"},
		"removed":         {text: `rm .envrc; echo done`, want: "done\n"},
		"renamed over":    {text: `echo x > y; mv y .envrc; echo done`, want: "done\n", removed: []string{".envrc"}},
		"led elsewhere":   {text: `ln -sfn y .envrc; echo done`, want: "done\n", removed: []string{".envrc"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			must(t, os.Mkdir(filepath.Join(dir, "conf"), 0o755))
			must(t, os.WriteFile(filepath.Join(dir, "conf/envrc"), []byte("kept\n"), 0o600))
			link := filepath.Join(dir, ".envrc")
			must(t, os.Symlink("conf/envrc", link))
			r := confined(t, LevelFull, &Profile{Writable: []string{dir}, Protected: []string{link}}, dir,
				"exec 2>/dev/null\n"+c.text)
			if got := r.text(t); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			r.End(0)
			for i, path := range c.removed {
				c.removed[i] = filepath.Join(dir, path)
			}
			if got := r.Removed(); !slices.Equal(got, c.removed) {
				t.Errorf("removed %q, want %q", got, c.removed)
			}
			if text, err := os.ReadFile(link); err != nil || string(text) != "kept\n" {
				t.Errorf("the link shows %q, %v", text, err)
			}
			if target, _ := os.Readlink(link); target != "conf/envrc" {
				t.Errorf("the link leads to %q", target)
			}
		})
	}
}

// What is writable below a protected directory stays so, and what is protected in there does not.
func TestWritableInProtected(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	inner := dir + "/.codehand/worktrees/x"
	if err := os.MkdirAll(inner+"/sub", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(inner+"/.git", []byte("gitdir: x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	profile := &Profile{Writable: []string{dir, inner}, Protected: []string{dir + "/.codehand", inner + "/.git"}}
	r := confined(t, LevelFull, profile, dir, "cd .codehand; touch a worktrees/b worktrees/x/c worktrees/x/sub/d; echo e > worktrees/x/.git; "+
		"mv worktrees/x/.git worktrees/x/f; mv worktrees/x worktrees/y; rm -rf worktrees/x/sub; rmdir worktrees/x; :")
	r.text(t)
	r.End(0)
	var found []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			text, _ := os.ReadFile(path)
			found = append(found, strings.TrimPrefix(path, dir)+"="+string(text))
		}
		return err
	})
	want := []string{"/.codehand/worktrees/x/.git=gitdir: x\n", "/.codehand/worktrees/x/c="}
	if err != nil || !slices.Equal(found, want) {
		t.Errorf("found %q, want %q, %v", found, want, err)
	}
}

// Of several links that lead to a protected file, or nowhere yet, a command could change what the first one shows.
func TestProtectedChain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		links     [][2]string // name and target
		protected string
		text      string
		removed   []string
		shows     string // by protected; "": nothing
	}{
		"dangling": {
			links: [][2]string{{".claude/settings.json", "../shared/missing.json"}}, protected: ".claude/settings.json",
			text: `echo x > .claude/settings.json`, removed: []string{"shared/missing.json"},
		},
		"dangling, its directory missing": {
			links: [][2]string{{".mcp.json", "new/./missing.json"}}, protected: ".mcp.json",
			text: `mkdir new; echo x > .mcp.json`, removed: []string{"new/missing.json"},
		},
		"one in the middle": {
			links: [][2]string{{".mcp.json", "conf/link"}, {"conf/link", "real.json"}}, protected: ".mcp.json",
			text: `ln -sfn ../evil.json conf/link`, removed: []string{"conf/link"}, shows: "kept\n",
		},
		"a directory": {
			links: [][2]string{{".config", "conf"}}, protected: ".config/real.json",
			text: `mkdir evil; echo x > evil/real.json; ln -sfn evil .config`, removed: []string{".config"}, shows: "kept\n",
		},
		"in a circle": {
			links: [][2]string{{".mcp.json", "conf/link"}, {"conf/link", "../.mcp.json"}}, protected: ".mcp.json",
			text: `ln -sfn ../evil.json conf/link`, removed: []string{"conf/link"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for _, sub := range []string{"conf", "shared", ".claude"} {
				must(t, os.Mkdir(filepath.Join(dir, sub), 0o755))
			}
			must(t, os.WriteFile(filepath.Join(dir, "conf/real.json"), []byte("kept\n"), 0o600))
			must(t, os.WriteFile(filepath.Join(dir, "evil.json"), []byte("evil\n"), 0o600))
			for _, l := range c.links {
				must(t, os.Symlink(l[1], filepath.Join(dir, l[0])))
			}
			path := filepath.Join(dir, c.protected)
			r := confined(t, LevelFull, &Profile{Writable: []string{dir}, Protected: []string{path}}, dir, c.text+"; :")
			r.text(t)
			r.End(0)
			for i, path := range c.removed {
				c.removed[i] = filepath.Join(dir, path)
			}
			if got := r.Removed(); !slices.Equal(got, c.removed) {
				t.Errorf("removed %q, want %q", got, c.removed)
			}
			if text, err := os.ReadFile(path); string(text) != c.shows {
				t.Errorf("%s shows %q, %v; want %q", c.protected, text, err, c.shows)
			}
		})
	}
}

// A protected or hidden name that is a link to `/`, to the root or above, as one of a cloned repository, refused every
// command for good, or made nothing writable.
func TestLinkToEverything(t *testing.T) {
	leaktest.Elsewhere(t)
	t.Parallel()
	for _, target := range []string{"/", ".", "..", "../..", "/usr", "/proc", "/dev", "/tmp", "sub/../.", "/etc",
		"/void", "/void/dir", "/void/file", "/dev/shm", "/dev/pts", "/var/tmp", "OTHER"} {
		for _, hidden := range []bool{false, true} {
			t.Run(fmt.Sprint(target, hidden), func(t *testing.T) {
				t.Parallel()
				dir, other := t.TempDir(), t.TempDir()
				must(t, os.Mkdir(filepath.Join(dir, "sub"), 0o755))
				must(t, os.WriteFile(filepath.Join(dir, "config"), []byte("kept\n"), 0o600))
				must(t, os.Symlink(strings.Replace(target, "OTHER", other, 1), filepath.Join(dir, ".vscode")))
				p := &Profile{Writable: []string{dir, other}, Protected: []string{dir + "/.vscode", dir + "/config"}}
				if hidden {
					p.Protected, p.Hidden = p.Protected[1:], []string{dir + "/.vscode"}
				}
				own := "touch /tmp/x /var/tmp/x /dev/shm/x && ls /dev/pts >/dev/null || echo closed; "
				if target != "OTHER" {
					own += "touch '" + other + "/x' || echo closed; "
				} else if !hidden {
					own += "touch .vscode/x || echo closed; "
				}
				r := confined(t, LevelFull, p, dir, own+`exec 2>/dev/null; echo x > a; cat a; echo x > config; cat config; :`)
				if got := r.text(t); got != "x\nkept\n" {
					t.Errorf("got %q", got)
				}
			})
		}
	}
}

// A person who led a link elsewhere while a job ran found it put back. What it leads to is still protected.
func TestUnwatched(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "one"), []byte("kept\n"), 0o600))
	link := filepath.Join(dir, ".envrc")
	must(t, os.Symlink("one", link))
	profile := &Profile{Writable: []string{dir}, Protected: []string{link, dir + "/.mcp.json"}, Unwatched: true}
	r := confined(t, LevelFull, profile, dir, `echo x >> .envrc; echo ready; until [ -e go ]; do :; done`)
	waitFor(t, "the job runs", func() bool { return strings.Contains(r.soFar(t), "ready") })
	must(t, os.Remove(link))
	must(t, os.Symlink("two", link))
	must(t, os.WriteFile(filepath.Join(dir, ".mcp.json"), []byte("mine\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	r.text(t)
	r.End(0)
	if target, err := os.Readlink(link); target != "two" || len(r.Removed()) > 0 {
		t.Errorf("the link leads to %q, %v; removed %q", target, err, r.Removed())
	}
	for name, want := range map[string]string{"one": "kept\n", ".mcp.json": "mine\n"} {
		if text, _ := os.ReadFile(filepath.Join(dir, name)); string(text) != want {
			t.Errorf("%s: %q", name, text)
		}
	}
}

// A command that made a protected name again and again left hundreds of files, none of which held anything.
func TestAsideStaysFew(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		kept int
	}{
		"links":       {`ln -s t .envrc`, 0},
		"empty":       {`: > .envrc`, maxEmpty},
		"directories": {`mkdir .envrc`, maxEmpty},
		"content":     {`echo x > .envrc`, 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			r := confined(t, LevelFull, &Profile{Writable: []string{dir}, Protected: []string{dir + "/.envrc"}}, dir,
				`for i in {1..20}; do `+c.text+`; while [ -e .envrc -o -L .envrc ]; do :; done; done`)
			r.text(t)
			r.End(0)
			if left, err := os.ReadDir(dir); err != nil || len(left) != c.kept {
				t.Errorf("left in the directory: %v, %v; want %d", left, err, c.kept)
			}
			if got := r.Removed(); len(got) != 1 {
				t.Errorf("removed %q", got)
			}
		})
	}
}

// A job that makes a file of settings and goes on would have it obeyed meanwhile.
func TestProtectedAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	profile := &Profile{Writable: []string{dir}, Protected: []string{dir + "/.mcp.json"}}
	r := confined(t, LevelFull, profile, dir, `echo x > .mcp.json; while [ -e .mcp.json ]; do :; done; echo gone; sleep 86400`)
	waitFor(t, "the file is gone", func() bool { return strings.Contains(r.soFar(t), "gone") })
	r.End(0)
	if got := r.Removed(); len(got) != 1 {
		t.Errorf("removed %q", got)
	}
}

// What lies in a directory that every command reads was read with it. A mask leaves what the profile names itself.
func TestMasked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"tool/lib/a", "tool/ws/alice/a", "tool/ws/bob/a", "tool/ws/bob/shown/a", "tool/state/a"} {
		must(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(name+"\n"), 0o600))
	}
	must(t, os.Symlink("tool/state", filepath.Join(dir, "link")))
	profile := &Profile{
		Readable: []string{dir + "/tool", dir + "/tool/ws/bob/shown"}, Writable: []string{dir + "/tool/ws/alice"},
		Masked: []string{dir + "/tool/ws", dir + "/tool/ws/bob", dir + "/link", dir + "/tool/ws/alice", dir + "/none",
			dir + "/tool/lib/a"},
	}
	r := confined(t, LevelFull, profile, dir+"/tool/ws/alice", `exec 2>/dev/null
		echo x > ../new; echo x > ../bob/new; mkdir ../eve; cd ../../..; find tool | sort; cat tool/lib/a tool/ws/alice/a`)
	want := strings.ReplaceAll("tool,lib,lib/a,state,ws,ws/alice,ws/alice/a,ws/bob,ws/bob/shown,ws/bob/shown/a", ",", "\ntool/") +
		"\ntool/lib/a\ntool/ws/alice/a\n"
	if got := r.text(t); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestHidden(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "a/keys"), 0o755))
	for _, name := range []string{"a/keys/one", "a/.env"} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte("secret\n"), 0o644))
	}
	must(t, os.Symlink("a/.env", filepath.Join(dir, "link")))
	profile := &Profile{Writable: []string{dir}, Hidden: []string{
		dir + "/a/keys", dir + "/link", dir + "/missing",
	}}
	r := confined(t, LevelFull, profile, dir, `cat a/.env link a/keys/one; ls a/keys; chmod 755 a/keys; chmod 644 a/.env
		mv a b; cat b/.env; cp -r a c; cat c/.env; cat /etc/shadow; rm -rf a; ln a/.env hard; cat hard; exit 0`)
	if got := r.text(t); strings.Contains(got, "secret") || strings.Contains(got, "root:") || strings.Contains(got, "one\n") {
		t.Errorf("printed %s", got)
	}
}

// The server accepts what the command connects to, though the command has no network but its own.
func TestNetworkList(t *testing.T) {
	t.Parallel()
	host, port, _ := strings.Cut(ProxyAddress, ":")
	r := confined(t, LevelFull, &Profile{Network: NetworkList}, "/usr",
		`exec 3<> /dev/tcp/`+host+"/"+port+`; echo hello >&3; read -r answer <&3; echo "$answer"; tail -n +3 /proc/net/dev | wc -l`)
	l := r.Listener()
	if l == nil {
		t.Fatal("there is no listener")
	}
	defer l.Close()
	conn, err := l.Accept()
	must(t, err)
	defer conn.Close()
	buffer := make([]byte, 6)
	_, err = io.ReadFull(conn, buffer)
	must(t, err)
	_, err = conn.Write([]byte("from outside\n"))
	must(t, err)
	if got := r.text(t); string(buffer) != "hello\n" || got != "from outside\n1\n" {
		t.Errorf("the server got %q, the command %q", buffer, got)
	}
}

// At LevelKernel a command has no namespaces, and still reads and writes only what its profile names.
func TestLevelKernel(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("secret\n"), 0o644))
	for name, c := range map[string]struct{ text, want string }{
		"writes in the root": {`echo x > k; mkdir -p d; mv k d/l; cat d/l`, "x\n"},
		"reads outside":      {`cat $OUT/secret || echo no`, "no\n"},
		"writes outside":     {`echo x > $OUT/new || echo no; rm -f $OUT/secret; echo x > $OUT/secret || echo no`, "no\nno\n"},
		"temporary":          {`echo x > /tmp/new-$$ || echo no`, "no\n"},
		"signals":            {`kill -0 $SERVER || echo no`, "no\n"},
		"environment":        {`cat /proc/$SERVER/environ || echo no`, "no\n"},
		"network":            {`(exec 3<> /dev/tcp/127.0.0.1/1) 2>&1 | grep -o 'not supported' | head -1`, "not supported\n"},
		"namespaces":         {`unshare -U true || echo no`, "no\n"},
	} {
		r := confined(t, LevelKernel, &Profile{Writable: []string{dir}}, dir, "{ "+c.text+"\n} 2>/dev/null",
			"OUT="+outside, "SERVER="+strconv.Itoa(os.Getpid()))
		if got := r.text(t); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
		r.End(0)
	}
}

// A command could put a link in the place of a directory that the next command may write: it would write what the link
// leads to.
func TestProfileExchangedForLink(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	link := filepath.Join(dir, "sub")
	must(t, os.Symlink(outside, link))
	for _, level := range []Level{LevelKernel, LevelFull} {
		for name, profile := range map[string]*Profile{
			"writable": {Writable: []string{link}}, "readable": {Readable: []string{link}}, "temporary": {Temp: link},
		} {
			p, err := Start(t.Context(), Cmd{Path: bashPath(t), Profile: profile, Level: level})
			if err == nil {
				p.End(0)
			}
			if !errors.Is(err, ErrConfine) {
				t.Errorf("%s, level %d: %v", name, level, err)
			}
		}
	}
}

// A hundred commands at once leave nothing of what each has of its own. leaktest looks for goroutines, processes and
// files.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	profile := &Profile{Writable: []string{dir}, Protected: []string{dir + "/.vscode", dir + "/.mcp.json"}}
	var all sync.WaitGroup
	for range leaktest.Rounds(25, 100) {
		r := confined(t, LevelFull, profile, dir, "(setsid sleep 86400 &); echo done")
		all.Go(func() {
			<-r.Done()
			r.End(0)
		})
	}
	all.Wait()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left in the directory: %v, %v", left, err)
	}
}

// A command put a link where the directory of a missing protected name would be. The server's handle follows none that
// is absolute or leads out of the root, so the name seemed to be missing, and stayed.
func TestLinkOnTheWay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text    string
		removed bool
	}{
		"absolute":        {`mkdir -p ev/git; echo x >ev/git/config; ln -s "$PWD/ev" .config`, true},
		"out of the root": {`mkdir -p "$OTHER/git"; echo x >"$OTHER/git/config"; ln -s "$OTHER" .config`, true},
		"up and down":     {`mkdir -p ev/git; echo x >ev/git/config; ln -s "../${PWD##*/}/ev" .config`, true},
		"by another":      {`mkdir -p ev/git; echo x >ev/git/config; ln -s "$PWD/ev" z; ln -s z .config`, true},
		"filled later":    {`mkdir ev; ln -s "$PWD/ev" .config; mkdir ev/git; echo x >ev/git/config`, true},
		"to something":    {`mkdir ev; echo x >ev/y; ln -s "$PWD/ev" .config`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, other := t.TempDir(), t.TempDir()
			file := filepath.Join(dir, ".config/git/config")
			r := confined(t, LevelFull, &Profile{Writable: []string{dir, other}, Protected: []string{file}}, dir, c.text+"; echo done", "OTHER="+other)
			if got := r.text(t); got != "done\n" {
				t.Errorf("got %q", got)
			}
			r.End(0)
			if _, err := os.Stat(file); err == nil {
				t.Errorf("%s stays", file)
			}
			var want []string
			if c.removed {
				want = []string{filepath.Join(dir, ".config")}
			}
			if got := r.Removed(); !slices.Equal(got, want) {
				t.Errorf("removed %q, want %q", got, want)
			}
		})
	}
}

// Another command may shut a directory between the look for what is denied and the start. The command that started then
// opened it again.
func TestShutMeanwhile(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root looks into every directory")
	}
	dir := t.TempDir()
	for _, file := range []string{"a/b/secret", "c/d/.envrc"} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o700))
		must(t, os.WriteFile(filepath.Join(dir, file), []byte("kept\n"), 0o600))
	}
	for _, shut := range []string{"a", "c"} {
		must(t, os.Chmod(filepath.Join(dir, shut), 0))
		t.Cleanup(func() { _ = os.Chmod(filepath.Join(dir, shut), 0o700) })
	}
	p := &Profile{Writable: []string{dir}, Hidden: []string{dir + "/a/b/secret"}, Protected: []string{dir + "/c/d/.envrc"}}
	r := confined(t, LevelFull, p, dir, `exec 2>/dev/null; chmod 700 a c; cat a/b/secret; echo x >>c/d/.envrc; mv a x; mv c y; echo done`)
	if got := r.text(t); got != "done\n" {
		t.Errorf("got %q", got)
	}
	r.End(0)
	for _, shut := range []string{"a", "c"} {
		must(t, os.Chmod(filepath.Join(dir, shut), 0o700))
	}
	for _, file := range []string{"a/b/secret", "c/d/.envrc"} {
		if text, err := os.ReadFile(filepath.Join(dir, file)); err != nil || string(text) != "kept\n" {
			t.Errorf("%s has %q, %v", file, text, err)
		}
	}
}
