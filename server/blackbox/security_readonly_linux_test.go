package blackbox

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// eachReader runs a test with run_readonly on stdio and in serve. set are settings.
func eachReader(t *testing.T, deny string, test func(t *testing.T, work string, connect func() func(command string) string)) {
	t.Run("stdio", func(t *testing.T) {
		t.Parallel()
		p := newPlot(t, "--permissions-deny="+deny)
		test(t, p.work, func() func(string) string {
			call := p.start().Calls()
			return func(command string) string {
				text, err := call("run_readonly", replaytest.AsJSON(t, "command", command))
				must(t, err)
				return text
			}
		})
	})
	t.Run("serve", func(t *testing.T) {
		t.Parallel()
		d := deploy(t, "CODEHAND_PERMISSIONS_DENY="+deny, "CODEHAND_SANDBOX_POLICY=required", "CODEHAND_SANDBOX_MIN_LEVEL=3")
		d.token = d.mint("--quota", "calls_per_minute=0", "--quota", "requests_per_minute=0")
		test(t, d.work, func() func(string) string {
			url := d.serve().url + "/mcp"
			free := make(chan *replaytest.HTTPClient, racers)
			for range racers {
				free <- (&replaytest.HTTPClient{T: t, URL: url, Token: d.token}).Hello()
			}
			var ids atomic.Int64
			return func(command string) string {
				c := <-free
				defer func() { free <- c }()
				text, failed := c.Call(fmt.Sprint(ids.Add(1)), "run_readonly", replaytest.AsJSON(t, "command", command), "").Text()
				if failed {
					text = "! " + text
				}
				return text
			}
		})
	})
}

// layReaders makes a workspace of which links lead out, to the kernel and to what a rule denies.
func layReaders(t *testing.T, work string) (outside string) {
	t.Helper()
	outside = leaktest.Dir(t)
	mark := outsideMark + "\n"
	for name, text := range map[string]string{
		"in/a.txt": "inside\n", "in/b.txt": "inside\n", "d/y.txt": "inside\n", "secrets/known": mark, "secrets/" + outsideMark: "x\n", "allowed/known": "inside\n", "a.md": "inside\n", "n/f.txt": "inside\n",
	} {
		must(t, os.MkdirAll(filepath.Join(work, filepath.Dir(name)), 0o755))
		must(t, os.WriteFile(filepath.Join(work, name), []byte(text), 0o644))
	}
	must(t, os.WriteFile(filepath.Join(outside, "private.txt"), []byte(mark), 0o644))
	must(t, os.WriteFile(filepath.Join(outside, outsideMark), []byte(mark), 0o644))
	must(t, os.Mkdir(filepath.Join(outside, "bob"), 0o755))
	must(t, os.WriteFile(filepath.Join(outside, "bob", outsideMark), []byte(mark), 0o644))
	for name, to := range map[string]string{
		"s": "secrets", "o": outside, "d/link": "../secrets", "e/out": outside, "e/file.txt": filepath.Join(outside, "private.txt"), "file": filepath.Join(outside, "private.txt"), "l": "in", "n/up": "../in",
		"fil1": "secrets/known",
	} {
		must(t, os.MkdirAll(filepath.Join(work, filepath.Dir(name)), 0o755))
		must(t, os.Symlink(to, filepath.Join(work, name)))
	}
	return outside
}

// Globs, recursive readers and links in commands reached what read_file refuses: files outside the roots, files that a
// rule denies; and `echo ../*` or `test -f /x` told names outside. Where they run, nothing of that is there, and what
// lies inside is read as it stands.
func TestReadonlyReadsWhatReadFileMay(t *testing.T) {
	t.Parallel()
	eachReader(t, "Read(secrets/**)", func(t *testing.T, work string, connect func() func(string) string) {
		outside := layReaders(t, work)
		call := connect()
		up := filepath.Base(outside)
		for _, command := range leaktest.Some(11, []string{
			// files that a rule denies
			"cat s/*", "cat s/known", "cat */known", "head -n 1 s/k*", "cd s && cat *", "cd s && cat known", "cat fil?", "cat fil1", "grep -R . d", "grep -nR . d", "grep -r . s", "grep --dereference-recursive . d", "rg -L . d",
			"rg --follow . d", "rg . s", "fmt s/known", "expand s/*", "sha256sum s/known", "cat < s/known", "cat < s/k*", "wc -l s/*", "sort s/known | head", "diff -r d allowed", "diff -r secrets allowed", "diff secrets allowed", "gofmt -d secrets", "grep -r . s*/", "grep -r . */", "rg . -- */", "cd d && grep -r . link/", "sed -n p s/*",
			"echo s/*", "printf '%s\\n' s/*", "grep . *", "grep -h fi* a.md", "head -n 1 *1", "cat secret[s]/known", "cat secret?/*", "od -c s/known", "strings s/known", "cd s; cd .; cat known", "true && cd s && cat k*", "cd missing || cd s && cat known", "cd missing; grep -r . .", "cd . || cd allowed; grep -r . .", "grep -r . secrets/..",
			// files outside, without a rule
			"cat o/private.txt", "cat o/*", "grep -h a* f*e", "grep file* a.md", "grep f* a.md", "head -n 1 *le", "cat file", "cat fil*", "cd o && grep -r .", "cd o && ls", "cd o; cat private.txt", "cd o | cat o/private.txt", "grep -r . o", "grep -r . o/", "grep -R . e", "grep -R . .", "rg -L . e", "cat e/*", "cat e/f*",
			"ls o", "ls o/", "ls -l o/", "ls -L e", "ls -LR .", "ls e/*", "find o/", "find -L .", "find -H o", "find -L e -name '*.txt'", "du -aL .", "du -a o/", "tree o", "tree -l", "stat -L file", "file -L file", "file o/private.txt",
			"head < o/private.txt", "wc -c < file", "cat /proc/1/environ", "diff file a.md", "diff in e/out", "cmp file a.md", "realpath o/private.txt", "readlink -f o/private.txt",
			"git -C o status", "git -C o log", "git diff --stat o/private.txt a.md", "go list ./o/...", "go doc ./o", "date -r file", "find -L . -newer file", "find . -samefile o/private.txt",
			// names outside
			"echo ../*", "echo ../*/*", "echo " + outside + "/*", "printf %s " + outside + "/*/*", "printf '%s\\n' ../" + up + "/*", "test -f " + outside + "/private.txt && echo " + outsideMark, "test -e o/private.txt && echo " + outsideMark,
			"[ -d " + outside + "/bob ] && echo " + outsideMark, "[ -e ../" + up + " ] && echo " + outsideMark, "which " + outside + "/private.txt; echo", "echo /et[c]",
			"command -v " + outside + "/private.txt && echo " + outsideMark, "type " + outside + "/private.txt && echo " + outsideMark, "echo o/*", "echo */private.txt", "echo o/*/", "echo e/*/*", "basename -a o/*", "seq 1 o/*", "git tag -l o/*",
			"ls " + outside, "cat " + outside + "/private.txt",
		}) {
			if text := call(command); strings.Contains(strings.ReplaceAll(text, command, ""), outsideMark) || strings.HasPrefix(text, "! INTERNAL") {
				t.Errorf("%s: %s", command, text)
			}
		}
		for command, want := range map[string]string{
			"cat l/*": "inside\ninside", "cd l && cat a.txt": "inside", "grep -r inside in | sort": "in/a.txt:inside\nin/b.txt:inside", "grep -R inside n | sort": "n/f.txt:inside\nn/up/a.txt:inside\nn/up/b.txt:inside",
			"ls -d l": "l", "readlink o": outside, "test -L o && echo link": "link", "ls l": "a.txt\nb.txt", "test -f nothing || echo no": "no", "cat a.md nothing 2>/dev/null": "! COMMAND_FAILED: Command failed (exit code 1)\nStdout:\ninside",
			"find e -type l | sort": "e/file.txt\ne/out", "grep -c inside *.md ?n/a.txt": "a.md:1\nin/a.txt:1", "echo *.md": "a.md", "echo nothing*": "nothing*", "git --version | wc -l": "1",
		} {
			if text := call(command); text != want {
				t.Errorf("%s: %s, want %s", command, text, want)
			}
		}
	})
}

// A link is swapped between a directory that may be read and one that a rule denies, or that is outside, while commands
// read through it, 8 at a time: the rules were asked about the one, and bash opened the other.
func TestReadonlyRaces(t *testing.T) {
	t.Parallel()
	commands := []string{"cat l/known", "cat l/*", "cat l/k*", "grep -r . l", "grep -r . l/", "cd l && cat known", "cd l; cat *", "cat < l/known", "head -n 1 l/known a.txt", "grep -R . down", "cd down && cat in/known", "cat up/known", "cat file",
		"sort file | head -n 1", "cat fil?", "cd up && grep -r .", "rg -L . down", "cat gap/known", "cat gap/*", "cd gap && cat known", "cat < gap/known", "cd gap; grep -r . .", "test -f gap/known && cat gap/known"}
	eachReader(t, "Read(secrets/**)", func(t *testing.T, work string, connect func() func(string) string) {
		outside := leaktest.Dir(t)
		lay := func(dir, text string) {
			must(t, os.MkdirAll(dir, 0o755))
			must(t, os.WriteFile(filepath.Join(dir, "known"), []byte(text+"\n"), 0o644))
		}
		lay(filepath.Join(work, "allowed"), "inside")
		lay(filepath.Join(work, "secrets"), outsideMark)
		lay(outside, outsideMark)
		must(t, os.Mkdir(filepath.Join(work, "down"), 0o755))
		must(t, os.WriteFile(filepath.Join(work, "a.txt"), []byte("inside\n"), 0o644))
		for name, to := range map[string]string{
			"l": "allowed", "l.other": "secrets", "up": "allowed", "up.other": outside, "down/in": "../allowed", "down.other": "../secrets", "file": "allowed/known", "file.other": "secrets/known",
		} {
			must(t, os.Symlink(to, filepath.Join(work, name)))
		}
		call := connect()
		stop := startSwapper(t, work, [2]string{"l", "l.other"}, [2]string{"up", "up.other"}, [2]string{"down/in", "down.other"}, [2]string{"file", "file.other"})
		ended := make(chan struct{})
		var gap, all sync.WaitGroup
		gap.Go(func() { // one that is missing in between
			for i := 0; ; i++ {
				select {
				case <-ended:
					return
				default:
					_ = os.Remove(filepath.Join(work, "gap"))
					_ = os.Symlink([]string{"allowed", "secrets", outside}[i%3], filepath.Join(work, "gap"))
				}
			}
		})
		var next atomic.Int64
		var mu sync.Mutex
		seen := map[string]int{}
		rounds := int64(leaktest.Rounds(400, 10_000))
		for range racers {
			all.Go(func() {
				for n := next.Add(1); n <= rounds && !t.Failed(); n = next.Add(1) {
					command := commands[int(n)%len(commands)]
					text := call(command)
					code, _, refused := strings.Cut(strings.TrimPrefix(text, "! "), ": ")
					if strings.Contains(text, outsideMark) || strings.HasPrefix(text, "!!") || code == "INTERNAL" {
						t.Errorf("%s: %s", command, text)
					}
					if !refused || !strings.HasPrefix(text, "! ") {
						code = "done"
					}
					mu.Lock()
					seen[code]++
					mu.Unlock()
				}
			})
		}
		all.Wait()
		close(ended)
		gap.Wait()
		swaps := stop()
		for _, code := range slices.Sorted(maps.Keys(seen)) {
			t.Logf("%7d %s", seen[code], code)
		}
		if seen["done"] == 0 || seen["COMMAND_FAILED"] == 0 || swaps < 1_000 {
			t.Errorf("they hardly met: %v, %d exchanges", seen, swaps)
		}
	})
}
