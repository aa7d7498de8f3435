package bash

import (
	"bytes"
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"codehand/filestate/leaktest"
	"codehand/tools/bash/programs"
	"codehand/tools/sandbox"
)

var update = flag.Bool("update", false, "write testdata/traced.txt for the rows that were run whole")

// tracedFile says which rows were run whole: names, a tab, a hash of what was tried.
const tracedFile = "testdata/traced.txt"

// sampled is how many pairs of options run each time.
const sampled = 120

// TestTraced asks the kernel what the commands do that are proved: they open no file for writing, start nothing but
// themselves, connect to nothing, change nothing, and read no file outside. With CODEHAND_LONG=1 every option and every
// pair of options of every row is run (`-run TestTraced/xxd` runs one row); else a sample of pairs, and rows must not
// differ from those that were run whole.
func TestTraced(t *testing.T) {
	t.Parallel()
	strace, err := exec.LookPath("strace")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("strace is not installed: it says what commands ask the kernel for")
		}
		t.Skip("strace is not installed: it says what commands ask the kernel for (apt install strace)")
	}
	tracers := make(chan *tracer, 2)
	for range cap(tracers) {
		tracers <- newTracer(t, strace, needBash(t))
	}
	all := triedPrograms()
	if !leaktest.Long() {
		comparesRows(t, all)
		seed := uint64(20261122)
		traceAll(t, tracers, samplePairs(rand.New(rand.NewPCG(seed, seed)), all))
		return
	}
	for i := range all {
		t.Run(all[i].name, func(t *testing.T) {
			if !all[i].installed() {
				t.Skipf("%s is not installed", all[i].name)
			}
			lines := all[i].single()
			all[i].pairs(func(a, b *programs.Option) { lines = append(lines, all[i].pair(a, b)...) })
			slices.Sort(lines)
			lines = slices.Compact(lines)
			traceAll(t, tracers, lines)
			t.Logf("%d commands", len(lines))
			if *update && !t.Failed() {
				writeRow(t, &all[i])
			}
		})
	}
}

// comparesRows fails for rows that were changed and not run whole.
func comparesRows(t *testing.T, all []tried) {
	t.Helper()
	known := readRows(t)
	for i := range all {
		switch p := &all[i]; {
		case known[p.name] == p.hash():
		case p.installed() && !slices.Contains(untraced, p.name):
			t.Errorf("the row of %s was not run whole since it changed: CODEHAND_LONG=1 go test ./tools/bash -run 'TestTraced/^%s$' -update",
				p.name, strings.ReplaceAll(p.name, " ", "_"))
		case os.Getenv("CI") != "" && !p.installed() && !slices.Contains(untraced, p.name):
			t.Errorf("%s is not installed, and its row was not run whole: install it in .ci/run", p.name)
		}
	}
}

// untraced are proved to print their version and nothing else, and are large to install for that: a machine that happens
// to have one is not told to run it whole.
var untraced = strings.Fields("clang cmake php python ruby")

func readRows(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(tracedFile)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, hash, _ := strings.Cut(strings.TrimSpace(line), "\t")
		rows[name] = hash
	}
	return rows
}

func writeRow(t *testing.T, p *tried) {
	t.Helper()
	rows := readRows(t)
	rows[p.name] = p.hash()
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		text.WriteString(name + "\t" + rows[name] + "\n")
	}
	if err := os.WriteFile(tracedFile, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (t *tried) hash() string { return fmt.Sprintf("%x", sha256.Sum256([]byte(t.text())))[:16] }

// installed says whether the program is a shell's own or stands in PATH.
func (t *tried) installed() bool {
	name, _, _ := strings.Cut(t.name, " ")
	for _, dir := range filepath.SplitList(tracedPath()) {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && !info.IsDir() {
			return true
		}
	}
	return slices.Contains(strings.Fields("cd type command"), name)
}

// tracedPath is PATH without what stands below the home directory: python may be a script there that looks for one.
func tracedPath() string {
	home, _ := os.UserHomeDir()
	dirs := slices.DeleteFunc(filepath.SplitList(os.Getenv("PATH")), func(dir string) bool {
		return home != "" && strings.HasPrefix(dir, home+"/")
	})
	return strings.Join(dirs, string(filepath.ListSeparator))
}

// samplePairs returns commands with two options, each of programs in their turn.
func samplePairs(random *rand.Rand, all []tried) []string {
	var lines []string
	with := slices.DeleteFunc(slices.Clone(all), func(p tried) bool { return len(p.options) < 2 || !p.installed() })
	for i := 0; len(lines) < sampled; i++ {
		p := with[i%len(with)]
		pick := random.Perm(len(p.options))
		if more := p.pair(p.options[pick[0]], p.options[pick[1]]); len(more) > 0 {
			lines = append(lines, more[random.IntN(len(more))])
		}
	}
	return lines
}

// traceAll runs commands in batches and reports what each does that it must not do.
func traceAll(t *testing.T, tracers chan *tracer, lines []string) {
	t.Helper()
	var workers sync.WaitGroup
	for batch := range slices.Chunk(lines, 250) {
		tr := <-tracers
		workers.Go(func() {
			defer func() { tracers <- tr }()
			before := tr.ws.sum(t)
			found := tr.run(t.Context(), t, batch)
			for i, line := range slices.Sorted(maps.Keys(found)) {
				if i < 10 {
					t.Errorf("%q is proved, but: %s", line, strings.TrimSpace(found[line]))
				}
			}
			if tr.ws.sum(t) != before && len(found) == 0 {
				t.Errorf("one of the commands from %q to %q changed the repository", batch[0], batch[len(batch)-1])
			}
		})
	}
	workers.Wait()
}

// A tracer runs commands in a scratch repository and has strace report what they ask the kernel for.
type tracer struct {
	ws     *runWorkspace
	strace string
	dir    string // for what is outside the repository
}

// outside is the name of a file outside; hidden stands in it and in the environment. Nothing may open or show them.
const (
	outside = "outside-5b1e"
	hidden  = "hidden-9c40"
)

func newTracer(t *testing.T, strace, bash string) *tracer {
	t.Helper()
	tr := &tracer{ws: newRunWorkspace(t, bash), strace: strace, dir: leaktest.Dir(t)}
	path := filepath.Join(tr.dir, outside)
	names := "4 " + path + "\n" + path + "\na b\n" // options, names and checksums for what reads such
	for _, digits := range []int{32, 40, 56, 64, 96, 128} {
		names += strings.Repeat("0", digits) + "  " + path + "\n"
	}
	for name, text := range map[string]string{filepath.Join(tr.ws.dir, "names.txt"): names, path: hidden + "\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return tr
}

// markPath is what the shell asks the kernel for before each command, so that what follows is known to belong to it.
const markPath = "/codehand-mark/"

// run runs commands, each in a subshell of one bash, and returns what each did that a command which only reads does not
// do.
func (tr *tracer) run(ctx context.Context, t *testing.T, lines []string) map[string]string {
	t.Helper()
	var script strings.Builder
	for i := range len(lines) + 1 {
		fmt.Fprintf(&script, "[ -e %s%d ]; printf '\\n@@%d\\n'\n", markPath, i, i)
		if i < len(lines) {
			fmt.Fprintf(&script, "(%s\n)\n", lines[i])
		}
	}
	file, report := filepath.Join(tr.dir, "commands.sh"), filepath.Join(tr.dir, "strace.txt")
	if err := os.WriteFile(file, []byte(script.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, tr.strace, "-f", "-qq", "-o", report, "--seccomp-bpf", "-s", "200", "-e", "signal=none", "-e",
		"trace=%file,%network,%process,ftruncate,fchmod,fchown,fsetxattr,fremovexattr", tr.ws.bash, "--noprofile", "--norc", file)
	cmd.Dir = tr.ws.dir
	cmd.Env = sandbox.Neutral([]string{"PATH=" + tracedPath(), "HOME=" + tr.ws.home, "TMPDIR=" + tr.dir, "LANG=C.UTF-8", "PAGER=cat",
		"TERM=dumb", "NO_COLOR=1", "HIDDEN=" + hidden})
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	found := map[string]string{}
	at := -1
	for line := range bytes.Lines(out) {
		if n, ok := bytes.CutPrefix(line, []byte("@@")); ok {
			at, _ = strconv.Atoi(string(bytes.TrimSpace(n)))
		} else if at >= 0 && bytes.Contains(line, []byte(hidden)) {
			found[lines[at]] = "it shows " + string(line)
		}
	}
	if at != len(lines) {
		t.Errorf("%d of %d commands ran, the last is %q: %v", at, len(lines), lines[max(at, 0)], err)
		return found
	}
	calls, err := os.ReadFile(report)
	if err != nil {
		t.Error(err)
		return found
	}
	at = -1
	for call := range bytes.Lines(calls) {
		if m := marked.FindSubmatch(call); m != nil {
			at, _ = strconv.Atoi(string(m[1]))
		} else if at >= 0 && at < len(lines) && found[lines[at]] == "" && harms(lines[at], string(call)) {
			found[lines[at]] = string(call)
		}
	}
	return found
}

var (
	marked = regexp.MustCompile(`"` + markPath + `(\d+)"`)
	called = regexp.MustCompile(`^\d+ +(\w+)\((.*)`)
	shown  = regexp.MustCompile(`"([^"]*)"`)
)

// harms says whether a line of strace is a system call that changes something, starts another program, goes out, or
// reads the file outside.
func harms(command, line string) bool {
	m := called.FindStringSubmatch(line)
	if m == nil {
		return false // it goes on, or ends
	}
	name, args, path := m[1], m[2], ""
	if q := shown.FindStringSubmatch(args); q != nil {
		path = q[1]
	}
	switch name {
	case "open", "openat", "openat2", "creat":
		if strings.HasSuffix(path, outside) && !strings.Contains(args, "= -1") {
			return true
		}
		writes := name == "creat" || writeFlags.MatchString(args)
		return writes && path != "/dev/null" && path != "/dev/tty" && !strings.Contains(args, "EISDIR")
	case "execve", "execveat":
		return !mayStart(command, filepath.Base(path))
	case "connect": // names of users, from the machine's own service
		return !strings.Contains(args, `run/nscd/socket"`)
	case "bind", "listen", "sendto", "sendmsg", "sendmmsg": // but what the kernel is asked about its interfaces
		return !strings.Contains(args, "AF_NETLINK")
	}
	return changing.MatchString(name)
}

var (
	writeFlags = regexp.MustCompile(`O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND`)
	changing   = regexp.MustCompile(`^(rename|unlink|rmdir|mkdir|mknod|link|symlink|f?truncate|f?chmod|[fl]?chown|utime|futimesat|` +
		`[fl]?(set|remove)xattr|u?mount|chroot|pivot_root|swapo|acct)`)
)

// mayStart says whether a command may start a program: itself, and what its row says.
func mayStart(command, program string) bool {
	name, _, _ := strings.Cut(command, " ")
	row := programs.Of(name)
	return program == name || row != nil && slices.Contains(row.Starts, program)
}
