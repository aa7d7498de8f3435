package sandbox

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"codehand/filestate/leaktest"
)

// shamReaders are commands that read, or look as if they did, and write, connect, or print what a rule denies. Files
// that are denied, hidden or outside hold token-of-others; MARK and MARK2 are files in the root and outside; PORT and
// SOCKET have listeners. A line that begins with a word and a colon needs that program.
var shamReaders = []string{
	// links, globs behind links
	"cat outside/private.txt", "cat outside/*", "cat file", "cat fil?", "cd outside && cat *", "cd outside; grep -r .", "grep -R . e", "cat s/known", "cat s/*",
	"cat */known", "ls -R outside/ | grep . && cat outside/p*", "find -L e -type f -exec cat {} +", "cat < file", "head -n 1 ../*/private.txt", "test -f $OUTSIDE/private.txt && echo token-of-others",
	"[ -d $OUTSIDE ] && echo token-of-others", "cat $HIDDEN/known", "cd secrets && cat known",
	// readers that no table knows, and values that no text tells
	"fmt secrets/known", "expand secrets/known", "unexpand file", "sha256sum secrets/known && echo token-of-others", "f=secrets/known; cat $f", "for f in secret*/*; do cat $f; done", "cat ${X:-secrets/known}", "xargs cat <<< secrets/known", "cat secre[t]s/known",
	"bash -c 'cat secrets/known'", "eval 'cat file'", "python3: python3 -c 'print(open(\"secrets/known\").read())'", "perl: perl -ne print file", "base64 -w0 secrets/known | base64 -d", "paste file /dev/null", "od -An -c secrets/known >/dev/null && echo token-of-others",
	"ln secrets/known h && cat h", "cp secrets/known h2 && cat h2", "tar: tar -cO file | cat -v; tar -chO secrets/known | cat -v", "dd if=secrets/known 2>/dev/null", "source secrets/known 2>&1", "mapfile -t x < secrets/known; echo ${x[0]}", "read x < file; echo $x",
	"git: git diff --no-index /dev/null secrets/known", "git: git hash-object secrets/known && echo token-of-others", "git: git --no-pager grep --no-index . secrets", "diff: diff a.txt file",
	// processes
	"cat /proc/$VICTIM/environ | tr '\\0' '\\n'", "cat p/$VICTIM/environ | tr '\\0' '\\n'", "ps eww -p $VICTIM", "cat p/*/environ 2>/dev/null | tr '\\0' '\\n'",
	// programs that write under the name of reading
	"xxd: xxd -ac a.txt $MARK", "xxd: xxd a.txt $MARK2", "sort -o $MARK a.txt", "uniq a.txt $MARK", "sed -n \"w $MARK\" a.txt", "sed -i s/one/two/ a.txt", "sed \"1e touch $MARK2\" a.txt", "awk: awk '{ print > ENVIRON[\"MARK\"] }' a.txt", "find . -maxdepth 1 -fprint $MARK",
	"find . -name b.txt -delete", "find . -name a.txt -exec touch {} +", "tee $MARK2 < a.txt", "dd if=a.txt of=$MARK2 2>/dev/null", "cat a.txt > $MARK", "cat a.txt >> $MARK2", "tar: tar -cf $MARK a.txt", "split -b 1 a.txt $MARK", "csplit: csplit -f $MARK a.txt 2", "shuf -o $MARK a.txt",
	"git: git diff --output=$MARK", "git: git log --output=$MARK2", "git: touch -d 2001-01-01 a.txt; git diff", "git: git update-index --refresh; git stash", "git: git config x.y z", "git: git branch new", "git: git archive -o $MARK HEAD", "git: git bundle create $MARK2 HEAD",
	"git: git describe --dirty --always; git status; git gc", "git: git format-patch -1", "touch a.txt", "chmod 600 a.txt", "truncate -s 0 data.csv", "mkfifo $MARK", "ln -s x $MARK", "mkdir $MARK2", "rm x.json", "mv data2.csv c.txt", "install -m 600 a.txt $MARK", "python3: python3 -m py_compile tool.py",
	"exec 5<> a.txt; echo x >&5", ": > data.json", "echo x | tee -a a.txt",
	// programs that the repository makes run others
	"git: git -c core.fsmonitor=\"$PWD/tool\" status", "git: git -c filter.f.clean=\"$PWD/tool; cat\" diff", "git: git -c diff.f.textconv=\"$PWD/tool; cat\" log -p", "git: git -c diff.external=\"$PWD/tool\" diff", "git: git -c core.pager=\"$PWD/tool\" -p log; GIT_SEQUENCE_EDITOR=./tool git rebase -i HEAD~1", "git: git -c alias.x=\"!$PWD/tool\" x",
	"git: git -c core.hooksPath=\"$PWD/hooks\" hook run pre-commit", "git: git -c core.sshCommand=\"$PWD/tool\" ls-remote ssh://x/y", "git: GIT_EXTERNAL_DIFF=\"$PWD/tool\" git diff", "make: make", "npm: npm run --silent pwn", "PATH=$PWD/bin:$PATH ls", "BASH_ENV=$PWD/tool bash -c :", "gcc: LD_PRELOAD=$PWD/library.so ls",
	// hidden code
	"test -v 'a[$(./tool)]'", "printf -v 'a[$(./tool)]' x", "x='a[$(./tool)]'; : $((x))", "x='$(./tool)'; : ${x@P}", "[[ 'a[$(./tool)]' -eq 0 ]]", "let 'a[$(./tool)]'", "declare 'a[$(./tool)]=1'", "read 'a[$(./tool)]' <<< x", "a=(1); unset 'a[$(./tool)]'", "xargs ./tool < /dev/null",
	"env ./tool", "nice ./tool", "timeout 9 ./tool", "setsid -w ./tool", "nohup ./tool", "stdbuf -o0 ./tool", "xargs -I{} sh -c ./tool <<< x", "for l in /lib64/ld-linux-x86-64.so.2 /lib/ld-linux-aarch64.so.1; do [ ! -x $l ] || $l /bin/sh -c ./tool; done", "trap ./tool EXIT", "coproc ./tool; wait",
	"sort --compress-program=./tool -S 1k a.txt big.txt > /dev/null", "find . -maxdepth 0 -exec ./tool \\;", "less: LESSOPEN='|./tool %s' less a.txt", "awk: awk 'BEGIN { system(\"./tool\") }'", "perl: perl -e 'system \"./tool\"'", "python3: python3 -c 'import os; os.system(\"./tool\")'", "node: node -e 'require(\"child_process\").execSync(\"./tool\")'",
	// connections
	"exec 3<> /dev/tcp/127.0.0.1/$PORT", "cat < /dev/tcp/127.0.0.1/$PORT", "curl: curl -sm 2 http://127.0.0.1:$PORT/", "wget: wget -qT 2 -t 1 -O - http://127.0.0.1:$PORT/", "git: git ls-remote http://127.0.0.1:$PORT/x", "python3: python3 -c 'import socket, os; socket.create_connection((\"127.0.0.1\", int(os.environ[\"PORT\"])))'",
	"python3: python3 -c 'import socket, os; socket.socket(socket.AF_UNIX).connect(os.environ[\"SOCKET\"])'", "perl: perl -MIO::Socket::INET -e 'IO::Socket::INET->new(PeerAddr => \"127.0.0.1:$ENV{PORT}\") or die'", "node: node -e 'require(\"net\").connect(+process.env.PORT, \"127.0.0.1\").on(\"connect\", () => process.exit())'",
}

// A shamGround is where those commands run.
type shamGround struct {
	root, outside, hidden string
	token                 string
	victim                *Process
	env                   []string
	heard                 atomic.Int64 // connections
	listeners             []net.Listener
}

// connections returns how many others have come. A listener takes them in their order, so whoever came before has been
// counted when one of ours is closed.
func (g *shamGround) connections(t *testing.T) int64 {
	t.Helper()
	for _, l := range g.listeners {
		c, err := net.Dial(l.Addr().Network(), l.Addr().String())
		must(t, err)
		_, _ = c.Read(make([]byte, 1)) // until it is closed
		_ = c.Close()
		g.heard.Add(-1)
	}
	return g.heard.Load()
}

func newShamGround(t *testing.T) *shamGround {
	t.Helper()
	dir := leaktest.Public(t) // short, since it is part of the address of a socket
	g := &shamGround{root: dir + "/root", outside: dir + "/outside", hidden: dir + "/root/secrets", token: "token-of-others"}
	for path, text := range map[string]string{
		"root/secrets/known": g.token + "\n", "outside/private.txt": g.token + "\n", "root/tool": "#!/bin/sh\n: > \"$MARK\"; : > \"$MARK2\"\n",
		"root/tool.py": "x = 1\n", "root/big.txt": strings.Repeat("line\n", 20000), "root/.gitattributes": "* filter=f diff=f\n", "root/.gitignore": "secrets\n",
		"root/Makefile": "all:\n\t@./tool\n", "root/hooks/pre-commit": "#!/bin/sh\n./tool\n", "root/bin/ls": "#!/bin/sh\n./tool\n", "root/library.c": library,
	} {
		must(t, os.MkdirAll(filepath.Dir(dir+"/"+path), 0o700))
		must(t, os.WriteFile(dir+"/"+path, []byte(text), 0o700))
	}
	layRows(t, g.root)
	must(t, os.WriteFile(g.root+"/package.json", []byte(`{"name":"x","version":"1.0.0","scripts":{"pwn":"./tool"}}`), 0o600))
	for name, to := range map[string]string{"outside": g.outside, "e/out": g.outside, "file": g.outside + "/private.txt", "s": "secrets", "p": "/proc", "fil1": "secrets/known"} {
		must(t, os.MkdirAll(filepath.Dir(g.root+"/"+name), 0o700))
		must(t, os.Symlink(to, g.root+"/"+name))
	}
	if _, err := exec.LookPath("gcc"); err == nil {
		c := exec.Command("gcc", "-shared", "-fPIC", "-o", "library.so", "library.c")
		c.Dir = g.root
		must(t, c.Run())
	}
	tcp, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	path, err := net.Listen("unix", g.root+"/socket")
	must(t, err)
	g.listeners = []net.Listener{tcp, path}
	for _, l := range g.listeners {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for c, err := l.Accept(); err == nil; c, err = l.Accept() {
				g.heard.Add(1)
				_ = c.Close()
			}
		}()
		t.Cleanup(func() { _ = l.Close(); <-ended })
	}
	g.victim = bash(t, g.outside, "sleep 86400; :", "CANARY="+g.token).Process
	g.env = []string{
		"HOME=" + g.root, "PORT=" + strconv.Itoa(tcp.Addr().(*net.TCPAddr).Port), "SOCKET=" + g.root + "/socket", "VICTIM=" + strconv.Itoa(g.victim.tree.child.pid),
		"OUTSIDE=" + g.outside, "HIDDEN=" + g.hidden, "MARK=" + g.root + "/mark", "MARK2=" + g.outside + "/mark", "TMPDIR=/tmp", "npm_config_update_notifier=false",
	}
	return g
}

// effect runs a command and says what it did that no reader does; "": nothing.
func (g *shamGround) effect(t *testing.T, level Level, p *Profile, command string) string {
	t.Helper()
	before, heard := treeOf(t, g.root)+treeOf(t, g.outside), g.connections(t)
	r := confined(t, level, p, g.root, command, g.env...)
	out := r.text(t)
	r.End(0)
	switch {
	case strings.Contains(out, g.token):
		return "printed what others have: " + out
	case treeOf(t, g.root)+treeOf(t, g.outside) != before:
		must(t, os.RemoveAll(g.root+"/mark"))
		must(t, os.RemoveAll(g.outside+"/mark"))
		return "changed files"
	case g.connections(t) != heard:
		return "connected"
	}
	return ""
}

// The profile for commands that only read is enough alone: without any reader of the text that runs, no command writes,
// connects, runs something that does, or reads what is outside, hidden or another process's.
func TestReadonlyProfileAlone(t *testing.T) {
	leaktest.Elsewhere(t)
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("needs git: apt-get install git")
		}
		t.Skip("needs git: apt-get install git")
	}
	confinedGround, free := newShamGround(t), newShamGround(t)
	p := &Profile{Readable: []string{confinedGround.root}, Hidden: []string{confinedGround.hidden}}
	tried, missing := 0, 0
	for _, command := range leaktest.Some(10, shamReaders) {
		if program, rest, ok := strings.Cut(command, ": "); ok && !strings.ContainsAny(program, " '\"$") && program != "" {
			command = rest
			if _, err := exec.LookPath(program); err != nil {
				missing++
				continue
			}
		}
		if effect := confinedGround.effect(t, LevelFull, p, command); effect != "" {
			t.Errorf("%s: %s", command, effect)
		}
		if free.effect(t, LevelLimits, nil, command) == "" {
			t.Errorf("%s: has no effect without a profile, so it proves nothing", command)
		}
		tried++
	}
	t.Logf("%d commands, %d need a program that is not here", tried, missing)
}
