package blackbox

import (
	"bytes"
	"image"
	"image/png"
	"strings"
	"syscall"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// readingCalls are the calls with which a file is found, opened and read.
const readingCalls = "openat,openat2,newfstatat,fstat,statx,read,pread64,getdents64,readlinkat"

// Every system call with which a tool looks at a file fails, with each of the errors that a disk, a network file system or a
// limit makes: the answer is the one that there is without a failure, or a refusal with the cause and the path, and never an
// internal error, nor one that says that nothing is there (SEC-12).
func TestSEC12FailedReads(t *testing.T) {
	t.Parallel()
	var picture bytes.Buffer
	must(t, png.Encode(&picture, image.NewGray(image.Rect(0, 0, 8, 8))))
	files := map[string]string{
		"a.txt": "one\ntwo\n", "p.png": picture.String(),
		"n.ipynb": `{"cells":[{"cell_type":"code","id":"a","metadata":{},"outputs":[],"source":[]}],"metadata":{},"nbformat":4,"nbformat_minor":5}`,
	}
	faults := []syscall.Errno{syscall.EIO, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EINVAL, syscall.ESTALE, syscall.ETIMEDOUT}
	if !leaktest.Long() {
		faults = faults[:2]
	}
	for _, c := range []struct {
		name, tool, file string
		args             []any
	}{
		{"text", "read_file", "a.txt", []any{"file_path", "a.txt"}},
		{"image", "read_file", "p.png", []any{"file_path", "p.png"}},
		{"notebook", "read_file", "n.ipynb", []any{"file_path", "n.ipynb"}},
		{"search", "grep_search", "a.txt", []any{"pattern", "two", "path", "a.txt", "output_mode", "content"}},
		{"edit", "edit_file", "a.txt", []any{"file_path", "a.txt", "old_string", "one", "new_string", "1"}},
		{"write", "write_file", "a.txt", []any{"file_path", "a.txt", "content", "1\n"}},
		{"cell", "notebook_edit", "n.ipynb", []any{"notebook_path", "n.ipynb", "cell_id", "a", "new_source", "1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPlot(t, "--read-dedup=off")
			for name, content := range files {
				p.lay(name, content)
			}
			s := p.start()
			tr := p.trace(s)
			call := func() string {
				text, err := s.Call(c.tool, []byte(replaytest.AsJSON(p.T, c.args...)))
				must(t, err)
				return text
			}
			usual, before := call(), tree(t, p.work)
			calls, refused := 0, 0
			for _, fault := range faults {
				for n := 1; ; n++ {
					var failed traced
					count := 0
					tr.watch(readingCalls, func(_ int, x traced) syscall.Errno {
						if !strings.HasPrefix(x.path, p.work) {
							return 0
						}
						if count++; count != n {
							return 0
						}
						failed = x
						return fault
					})
					text := call()
					tr.watch("", nil)
					if failed.name == "" {
						break // there are fewer calls
					}
					calls++
					if text == usual {
						continue
					}
					refused++
					told := p.path(c.file) + " failed: " + fault.Error() + ". "
					// A change opens the directory, too; and without a free handle it is not known whether there is a file to read.
					changes := c.tool != "read_file" && c.tool != "grep_search" && (failed.name == "openat" || fault == syscall.EMFILE || fault == syscall.ENFILE)
					if !strings.HasPrefix(text, "! READ_FAILED: Reading "+told) && !(changes && strings.HasPrefix(text, "! WRITE_FAILED: Writing "+told)) {
						t.Errorf("%v at %s: %s", fault, failed, text)
					}
				}
			}
			if tree(t, p.work) != before {
				t.Error("a call that failed has changed something")
			}
			t.Logf("%d failed calls: %d refused, the others without effect", calls, refused)
			if refused < 2*len(faults) {
				t.Errorf("%d refusals: the failures did not hit the reading", refused)
			}
		})
	}
}
