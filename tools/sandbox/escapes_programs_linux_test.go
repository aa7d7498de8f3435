package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"codehand/tools/sandbox/probe"
)

// programEscapes are programs that run what a repository holds. They may, but what they run writes nothing outside: the
// mark is judged after they have ended.
func programEscapes() []escape {
	var list []escape
	add := func(name, script string) {
		mark := slug(name) + "-mark"
		e := escape{Attempt: probe.Attempt{Name: name, Level: 2, Gap: probe.WritesOutside, Try: func(s *probe.Scene) error {
			err := shell(s, `MARK="$SEEN/`+mark+`"; export MARK; `+script)
			if errors.Is(err, probe.ErrAbsent) {
				return err
			}
			return errOutside
		}}}
		e.done = func(s *probe.Scene) bool { return appeared(s.Seen + "/" + mark) }
		list = append(list, e)
	}
	needs := func(program, script string) string {
		return "command -v " + program + " >/dev/null || exit 127; " + script
	}
	add("start a program by the loader", `for l in /lib64/ld-linux-x86-64.so.2 /lib/ld-linux-aarch64.so.1; do
		[ ! -x $l ] || exec $l /bin/sh -c ': > "$MARK"'; done; exit 127`)
	add("load a library of the workspace", `[ -f library.so ] || exit 127; LD_PRELOAD=$PWD/library.so /bin/true`)
	add("find a program of the workspace in PATH", `PATH=$PWD/bin:$PATH; tool`)
	add("run the startup file of a shell", needs("bash", `BASH_ENV=$PWD/bin/tool bash -c :`))
	add("run git's monitor of files", needs("git", `git -C repo -c core.fsmonitor="$PWD/bin/tool" status`))
	add("run git's filter of a file", needs("git", `git -C repo -c filter.f.clean="$PWD/bin/tool; cat" diff --stat`))
	add("run git's converter of a file", needs("git", `git -C repo -c diff.f.textconv="$PWD/bin/tool; cat" log -p`))
	add("run a hook of git", needs("git", `git -C repo -c core.hooksPath="$PWD/hooks" hook run pre-commit`))
	add("run an alias of git", needs("git", `git -C repo -c alias.x='!: > "$MARK"' x`))
	add("run a script of npm", needs("npm", `npm_config_cache=$TMPDIR npm_config_update_notifier=false npm run --silent pwn`))
	add("run a rule of make", needs("make", `make -s -f Makefile`))
	add("write by Python", needs("python3", `python3 -c 'import os; open(os.environ["MARK"], "w")'`))
	add("write by Perl", needs("perl", `perl -e 'open F, ">", $ENV{MARK}'`))
	add("write in the background", `(setsid sh -c ': > "$MARK"' &); for i in 1 2 3 4 5 6 7 8 9; do [ -e "$MARK" ] && break; sleep 0.1; done`)
	add("run a program from memory", `exit 127`)
	list[len(list)-1] = escape{
		Attempt: probe.Attempt{Name: "run a program from memory", Level: 2, Gap: probe.WritesOutside, Try: fromMemory},
		done:    func(s *probe.Scene) bool { return appeared(s.Seen + "/from-memory") },
	}
	return list
}

// fromMemory runs a shell that is no file. It may run, and can do what any other can.
func fromMemory(s *probe.Scene) error {
	program, err := os.ReadFile("/bin/sh")
	if err != nil {
		return err
	}
	fd, err := unix.MemfdCreate("shell", 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if _, err := unix.Write(fd, program); err != nil {
		return err
	}
	_ = shell(s, `exec /proc/self/fd/9 -c ': > "$SEEN/from-memory"'`, fd) // the file tells
	return errOutside
}

// stagePrograms makes a repository, and what the programs above find in the root.
func stagePrograms(t *testing.T, s *probe.Scene) {
	t.Helper()
	run := func(name string, args ...string) error {
		c := exec.Command(name, args...)
		c.Dir, c.Env = s.Root, []string{"PATH=" + defaultPath, "HOME=" + s.Root, "GIT_CONFIG_NOSYSTEM=1"}
		return c.Run()
	}
	tool := "#!/bin/sh\n: > \"$MARK\"\n"
	for path, text := range map[string]string{
		"bin/tool": tool, "hooks/pre-commit": tool, "repo/.gitattributes": "f filter=f diff=f\n", "repo/f": "one\n",
		"Makefile": "all:\n\t@: > \"$$MARK\"\n", "package.json": `{"name":"x","version":"1.0.0","scripts":{"pwn":": > \"$MARK\""}}`,
	} {
		must(t, os.MkdirAll(s.Root+"/"+path[:max(0, lastSlash(path))], 0o700))
		must(t, os.WriteFile(s.Root+"/"+path, []byte(text), 0o700))
	}
	if _, err := exec.LookPath("git"); err == nil {
		for _, args := range [][]string{
			{"init", "-q"}, {"add", "."}, {"-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-qm", "one"},
		} {
			must(t, run("git", append([]string{"-C", "repo"}, args...)...))
		}
		must(t, os.WriteFile(s.Root+"/repo/f", []byte("two\n"), 0o700))
	}
	if _, err := exec.LookPath("gcc"); err == nil {
		must(t, os.WriteFile(s.Root+"/library.c", []byte(library), 0o600))
		must(t, run("gcc", "-shared", "-fPIC", "-o", "library.so", "library.c"))
	}
	must(t, os.WriteFile(s.Unlisted+"/program", []byte("#!/bin/sh\nexit 0\n"), 0o700))
	stageSetuid(t, s)
}

const library = `
#include <stdio.h>
#include <stdlib.h>
__attribute__((constructor)) static void load(void) { FILE *f = fopen(getenv("MARK"), "w"); if (f) fclose(f); }
`

func lastSlash(path string) int {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' {
			return i
		}
	}
	return -1
}

// stageSetuid makes a program, and one that belongs to another user and runs as him. Only root can give files away.
func stageSetuid(t *testing.T, s *probe.Scene) {
	t.Helper()
	text, err := os.ReadFile("/bin/sleep")
	must(t, err)
	for _, name := range []string{"/sleep", "/setuid"} {
		must(t, os.WriteFile(s.Seen+name, text, 0o755))
	}
	if os.Geteuid() == 0 {
		const nobody = 65534
		must(t, os.Chown(s.Seen+"/setuid", nobody, nobody))
		must(t, os.Chmod(s.Seen+"/setuid", 0o755|os.ModeSetuid))
	}
}
