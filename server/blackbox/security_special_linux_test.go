package blackbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// parallelFIFOs is how many reads of FIFOs are under way at once: another server dies of 7.
const parallelFIFOs = 50

// special makes what is no regular file, at names that end with suffix, and returns their names.
func special(t *testing.T, dir, suffix string) (names []string) {
	t.Helper()
	path := func(name string) string {
		names = append(names, name+suffix)
		return filepath.Join(dir, name+suffix)
	}
	must(t, replaytest.Mkfifo(path("fifo")))
	must(t, os.Symlink("fifo"+suffix, path("link-to-fifo")))
	leaktest.Socket(t, path("socket"))
	if os.Getuid() != 0 {
		t.Log("no device without root")
		return names
	}
	switch err := syscall.Mknod(filepath.Join(dir, "device"+suffix), syscall.S_IFCHR|0o666, 1<<8|5); { // /dev/zero
	case err == nil:
		names = append(names, "device"+suffix)
	case os.Getenv("CI") == "true":
		t.Fatal(err)
	default:
		t.Log("no device: ", err)
	}
	return names
}

// FIFOs without a writer, sockets and devices are refused at once by every tool, 50 reads at a time as well, and a
// normal read goes on; walkers pass over them (SEC-05).
func TestSEC05SpecialFiles(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]racedBy{"stdio": racedStdio, "http": racedHTTP} {
		t.Run(name, func(t *testing.T) {
			work, connect := begin(t)
			x := &specials{T: t, work: work, call: connect()}
			must(t, os.WriteFile(filepath.Join(work, "plain.txt"), []byte("a plain word\n"), 0o644))
			x.together()
			text, book := special(t, work, ".txt"), special(t, work, ".ipynb")
			x.everyTool(text, book)
			x.walks()
			t.Logf("%d refusals, the slowest of one call %v, of %d reads at once %v", x.refused, x.slowest, parallelFIFOs, x.crowded)
		})
	}
}

// A specials is a client whose calls are timed. The times are told, and only a hang is a failure: other tests run, too.
type specials struct {
	*testing.T
	work             string
	call             func(tool, args string) (string, error)
	refused          int
	slowest, crowded time.Duration
}

// say makes a call that must be answered.
func (x *specials) say(tool string, args ...any) string {
	x.Helper()
	begun := time.Now()
	answer := make(chan string, 1)
	go func() {
		text, err := x.call(tool, replaytest.AsJSON(x.T, args...))
		if err != nil {
			text = "!! " + err.Error()
		}
		answer <- text
	}()
	select {
	case text := <-answer:
		x.slowest = max(x.slowest, time.Since(begun))
		return text
	case <-time.After(replaytest.HangAfter):
		x.Fatalf("%s %v hangs", tool, args)
		return ""
	}
}

// together reads many FIFOs at once, and then a file.
func (x *specials) together() {
	x.Helper()
	for i := range parallelFIFOs {
		must(x, replaytest.Mkfifo(filepath.Join(x.work, fmt.Sprint("many", i))))
	}
	begun := time.Now()
	var all sync.WaitGroup
	answers := make([]string, parallelFIFOs)
	for i := range answers {
		all.Go(func() {
			var err error
			if answers[i], err = x.call("read_file", replaytest.AsJSON(x.T, "file_path", fmt.Sprint("many", i))); err != nil {
				answers[i] = err.Error()
			}
		})
	}
	all.Wait()
	x.crowded = time.Since(begun)
	for i, text := range answers {
		if !strings.HasPrefix(text, "! NOT_REGULAR: ") {
			x.Errorf("FIFO %d: %s", i, text)
		}
		x.refused++
	}
	if text := x.say("read_file", "file_path", "plain.txt"); !strings.Contains(text, "a plain word") {
		x.Errorf("the read after them: %s", text)
	}
}

// everyTool tries special files with all tools that take a path.
func (x *specials) everyTool(text, book []string) {
	x.Helper()
	refused := func(code, tool string, args ...any) {
		x.Helper()
		if text := x.say(tool, args...); !strings.HasPrefix(text, "! "+code+": ") {
			x.Errorf("%s %v: %s, want %s", tool, args, text, code)
		}
		x.refused++
	}
	for _, name := range slices.Concat(text, book) {
		path := filepath.Join(x.work, name)
		refused("NOT_REGULAR", "read_file", "file_path", path)
		refused("NOT_REGULAR", "grep_search", "pattern", "word", "path", path)
		refused("NOT_DIRECTORY", "list_files", "pattern", "*", "path", path)
		for _, c := range slices.Concat(fileCalls, makingCalls) {
			if c.suffix() == filepath.Ext(name) {
				refused("NOT_REGULAR", c.tool, c.args(path)...)
				refused("NOT_DIRECTORY", c.tool, c.args(path+"/below"+c.suffix())...)
			}
		}
		refused("NOT_DIRECTORY", "read_file", "file_path", path+"/below")
		refused("CHANGE_UNKNOWN", "undo_change", "file_path", path)
		if text := x.say("file_history", "file_path", path); strings.HasPrefix(text, "! ") {
			x.Errorf("file_history %s: %s", path, text)
		}
	}
}

// walks searches a tree with special files in it, also where settings are looked for.
func (x *specials) walks() {
	x.Helper()
	for _, name := range []string{".gitignore", ".ignore", ".git/info/exclude", ".git/config", "sub/.gitignore"} {
		must(x, os.MkdirAll(filepath.Dir(filepath.Join(x.work, name)), 0o755))
		must(x, replaytest.Mkfifo(filepath.Join(x.work, name)))
	}
	must(x, os.WriteFile(filepath.Join(x.work, "sub/deep.txt"), []byte("a deep word\n"), 0o644))
	for _, c := range []struct {
		tool string
		args []any
	}{
		{"grep_search", []any{"pattern", "word", "output_mode", "content"}}, {"grep_search", []any{"pattern", "word", "path", "sub"}}, {"grep_search", []any{"pattern", "word", "glob", "*.txt"}},
		{"list_files", []any{"pattern", "**/*.txt"}}, {"list_files", []any{"pattern", "*", "path", "sub"}}, {"run_shell", []any{"command", "ls sub; echo word plain.txt"}},
	} {
		text := x.say(c.tool, c.args...)
		if strings.HasPrefix(text, "! ") || !strings.Contains(text, "deep") {
			x.Errorf("%s %v: %s", c.tool, c.args, text)
		}
	}
}
