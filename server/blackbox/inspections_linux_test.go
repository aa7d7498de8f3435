package blackbox

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"codehand/server/replaytest"
)

// An inspection is a row of testdata/everyday/inspections.tsv.
type inspection struct {
	want    string // "runs", "told" (it fails and says why) or "nothing" (whatever it says, it does nothing)
	command string
	told    *regexp.Regexp // of "told": what the answer says
}

func inspections(t *testing.T) (rows []inspection) {
	t.Helper()
	data, err := os.ReadFile("../../testdata/everyday/inspections.tsv")
	must(t, err)
	for line := range strings.Lines(string(data)) {
		c := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 3)
		if c[0] == "want" {
			continue
		}
		row := inspection{want: c[0]}
		must(t, json.Unmarshal([]byte(c[1]), &row.command))
		row.told = regexp.MustCompile(c[2])
		rows = append(rows, row)
	}
	return rows
}

// A watcher sees what commands do besides answering.
type watcher struct {
	*monday
	count  atomic.Int64 // connections and datagrams
	port   string
	number string // of seconds, in the command line of what may not outlive a command
	mark   string // the name of files outside of the project and its home
	words  *strings.Replacer
}

// watch begins to listen on loopback, and on sockets in the project and without a file.
func watch(t *testing.T, d *monday) *watcher {
	t.Helper()
	w := &watcher{monday: d, number: strconv.Itoa(100_000_000 + rand.IntN(800_000_000))}
	w.mark = "codehand-" + w.number
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	_, w.port, _ = net.SplitHostPort(tcp.Addr().String())
	udp, err := net.ListenPacket("udp", "127.0.0.1:"+w.port)
	must(t, err)
	socket := filepath.Join(filepath.Dir(d.work), "s")
	inside := filepath.Join(d.work, "socket")
	for _, l := range []net.Listener{tcp, listenUnix(t, socket), listenUnix(t, inside), listenUnix(t, "\x00"+w.mark)} {
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				w.count.Add(1)
				_ = c.Close()
			}
		}()
	}
	t.Cleanup(func() { _ = udp.Close() })
	go func() {
		for b := make([]byte, 10); ; {
			if _, _, err := udp.ReadFrom(b); err != nil {
				return
			}
			w.count.Add(1)
		}
	}()
	w.words = strings.NewReplacer("PORT", w.port, "NUMBER", w.number, "MARK", w.mark, "SOCKET", inside, "DAEMON", socket)
	return w
}

func listenUnix(t *testing.T, name string) net.Listener {
	t.Helper()
	l, err := net.Listen("unix", name)
	must(t, err)
	return l
}

// left are the files with the mark and the processes with the number.
func (w *watcher) left() (all []string) {
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm", "/usr/local/bin", "/etc", filepath.Dir(w.work)} {
		path := filepath.Join(dir, w.mark)
		if _, err := os.Lstat(path); err == nil {
			all = append(all, path)
		}
	}
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), w.number) {
			all = append(all, fmt.Sprintf("%s: %q", path, text))
		}
	}
	return all
}

// TestInspections: in plan mode run_readonly runs what only looks at a project, whatever program does, and of what
// writes, connects or would go on after its answer nothing comes. Nobody is asked.
func TestInspections(t *testing.T) {
	long(t)
	needs(t, "git", "go", "node", "npm", "python3", "jq", "gcc", "make", "perl", "curl", "docker")
	d := newMonday(t, "mixed")
	w := watch(t, d)
	c := d.connect("declines", "--permissions-mode=plan")
	if out := c.Call("run_readonly", replaytest.AsJSON(t, "command", "awk 'BEGIN { print 1 }'"), replaytest.Never(t)); out.Failed {
		t.Skipf("needs a machine that proves sandbox level 3: %s", out.Text)
	}
	w.sees()
	counted := map[string]int{}
	for _, r := range inspections(t) {
		command := w.words.Replace(r.command)
		said, works := "", false
		if r.want == "runs" {
			if said, works = d.terminal(command); !works {
				t.Logf("NOT HERE %q: %.300s", command, said)
			}
			w.clean()
		}
		before, count := d.files(), w.count.Load()
		var a replaytest.ElicitAnswer
		for range 10 { // a client waits for 45 s, in which a busy machine compiles a part of the standard library
			a = c.Call("run_readonly", replaytest.AsJSON(t, "command", command, "timeout", 120_000), replaytest.Never(t))
			if r.want != "runs" || !a.Failed || !strings.HasPrefix(a.Text, "TIMEOUT: ") {
				break
			}
		}
		if after := d.files(); !maps.Equal(before, after) {
			t.Errorf("CHANGED by %q: %s", command, a.Text)
		}
		if now := w.count.Load(); now != count {
			t.Errorf("CONNECTED by %q: %s", command, a.Text)
		}
		if left := w.left(); len(left) > 0 {
			t.Errorf("LEFT by %q: %q, %s", command, left, a.Text)
		}
		counted[r.want]++
		switch {
		case r.want == "runs" && works && a.Failed:
			t.Errorf("FAILS %q: %.1500s, in a terminal %.300s", command, a.Text, said)
		case r.want == "told" && (!a.Failed || !r.told.MatchString(a.Text) || !strings.Contains(a.Text, "[read-only here: ")):
			t.Errorf("NOT TOLD %q: %.1500s", command, a.Text)
		}
	}
	if counted["runs"] < 60 || counted["nothing"] < 60 {
		t.Errorf("the table has %v", counted)
	}
	t.Logf("%v", counted)
}

// clean takes away what a terminal leaves of a look at the project.
func (w *watcher) clean() {
	w.t.Helper()
	if out, err := w.run("git", "clean", "-qfdx", "-e", "socket").CombinedOutput(); err != nil {
		w.t.Fatalf("%v\n%s", err, out)
	}
	if out, err := w.run("git", "status").CombinedOutput(); err != nil { // the index knows times
		w.t.Fatalf("%v\n%s", err, out)
	}
}

// sees shows that a write, a connection and what goes on would be seen.
func (w *watcher) sees() {
	t := w.t
	t.Helper()
	before := w.files()
	w.terminal(w.words.Replace("touch made.txt; bash -c 'exec 3<>/dev/tcp/127.0.0.1/PORT'; cat <socket"))
	stays := exec.Command("sleep", w.number)
	must(t, stays.Start())
	if maps.Equal(before, w.files()) || len(w.left()) == 0 {
		t.Error("what is done is not seen")
	}
	_ = stays.Process.Kill()
	_ = stays.Wait() // it was killed
	for w.count.Load() == 0 {
		if err := t.Context().Err(); err != nil {
			t.Fatal("no connection is seen")
		}
	}
	w.clean()
}
