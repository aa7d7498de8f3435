package shell

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"codehand/filestate/leaktest"
	"codehand/tools/secrets"
)

var seed = flag.Uint64("seed", 0, "seed of the random tests; 0: a new one")

// random returns a source whose seed is printed if the test fails.
func random(t *testing.T) *rand.Rand {
	t.Helper()
	n := *seed
	if n == 0 {
		n = rand.Uint64()
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("repeat with -seed=%d", n)
		}
	})
	return rand.New(rand.NewPCG(n, 0))
}

// An outputs is an output without a process, beside the slow and obviously right one: everything, in memory.
type outputs struct {
	*output
	allOut, allErr, merged []byte

	t *testing.T
}

func newOutputs(t *testing.T, l limits) *outputs {
	t.Helper()
	o := &outputs{output: &output{limits: l}, t: t}
	must(t, o.open(filepath.Join(t.TempDir(), "job"), nil))
	t.Cleanup(o.close)
	return o
}

// write prints text as the command would.
func (o *outputs) write(s *spool, all *[]byte, text []byte) {
	o.t.Helper()
	if _, err := s.file.Write(text); err != nil {
		o.t.Fatal(err)
	}
	*all, o.merged = append(*all, text...), append(o.merged, text...)
}

func smallLimits() limits {
	l := defaultLimits()
	l.keep, l.gap, l.most, l.pause = 256<<10, 64<<10, 16<<20, 0
	return l
}

// Whatever is printed when, each chunk is what a complete memory of the output would give, as far as it is kept.
func TestOutputAgainstModel(t *testing.T) {
	leaktest.Sequential(t)
	t.Parallel()
	r := random(t)
	for range 20 {
		o := newOutputs(t, smallLimits())
		for range r.IntN(40) {
			text := []byte(strings.Repeat(fmt.Sprintf("%d ü✓\n", r.IntN(1e6)), 1+r.IntN(6000)))
			if r.IntN(2) == 0 {
				o.write(&o.out, &o.allOut, text)
			} else {
				o.write(&o.err, &o.allErr, text)
			}
			if !o.take() {
				t.Fatal("ended below the limit")
			}
			o.check(r)
		}
		o.finish()
		for range 10 {
			o.check(r)
		}
		o.checkLog()
	}
}

// check compares a chunk from a random position of each file.
func (o *outputs) check(r *rand.Rand) {
	o.t.Helper()
	after, max := r.Int64N(int64(len(o.merged))+2), 1+r.Int64N(100_000)
	o.mu.Lock()
	defer o.mu.Unlock()
	c, err := logChunk(o.path, o.layout(), after, max, o.lines)
	must(o.t, err)
	o.compare("log", c, o.merged, after, max)
	c, err = o.out.chunk(o.limits, max)
	must(o.t, err)
	o.compare("stdout", c, o.allOut, 0, max)
	c, err = o.err.chunk(o.limits, max)
	must(o.t, err)
	o.compare("stderr", c, o.allErr, 0, max)
}

func (o *outputs) compare(name string, c Chunk, all []byte, after, max int64) {
	o.t.Helper()
	size := int64(len(all))
	after = min(after, size)
	rest := all[after:]
	where := fmt.Sprintf("%s of %d bytes from %d, at most %d", name, size, after, max)
	k := o.limits.kept(size)
	if c.Size != size-after || c.Next != size {
		o.t.Fatalf("%s: size %d, next %d", where, c.Size, c.Next)
	}
	if want := bytes.Count(rest, []byte("\n")); c.Lines != want && (after <= k.head || after >= k.tail) {
		o.t.Fatalf("%s: %d lines, want %d", where, c.Lines, want)
	}
	if !bytes.HasPrefix(rest, []byte(c.Head)) {
		o.t.Fatalf("%s: wrong head of %d bytes", where, len(c.Head))
	}
	if c.Tail == "" && (k.head == size || after >= k.tail) {
		if len(c.Head) != len(rest) {
			o.t.Fatalf("%s: %d bytes without a tail", where, len(c.Head))
		}
		return
	}
	if !bytes.HasSuffix(rest, []byte(c.Tail)) || int64(len(c.Tail)) > max || int64(len(c.Head)) > max {
		o.t.Fatalf("%s: wrong tail of %d bytes, head of %d", where, len(c.Tail), len(c.Head))
	}
	if after < k.head && int64(len(c.Head)) <= min(max, k.head-after)-utf8.UTFMax || int64(len(c.Tail)) <= min(max, size-k.tail)-utf8.UTFMax && k.tail > after {
		o.t.Fatalf("%s: only %d and %d bytes", where, len(c.Head), len(c.Tail))
	}
	if !utf8.ValidString(c.Tail) || after == 0 && !utf8.ValidString(c.Head) {
		o.t.Fatalf("%s: a character was cut", where)
	}
}

// checkLog reads the closed log as any program would.
func (o *outputs) checkLog() {
	o.t.Helper()
	log, err := os.ReadFile(o.path)
	must(o.t, err)
	if o.dropped == 0 {
		if !bytes.Equal(log, o.merged) {
			o.t.Fatalf("the log has %d bytes, not the %d that were printed", len(log), len(o.merged))
		}
		return
	}
	keep := int(o.limits.keep)
	want := slicesConcat(o.merged[:keep],
		[]byte(fmt.Sprintf("\n[... %d bytes of output were not kept ...]\n", len(o.merged)-2*keep)), o.merged[len(o.merged)-keep:])
	if !bytes.Equal(log, want) {
		o.t.Fatalf("the closed log has %d bytes, want %d with one gap", len(log), len(want))
	}
}

func slicesConcat(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// The middle of what is printed does not stay on the disk.
func TestMiddleIsReleased(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux can release the middle of a file")
	}
	o := newOutputs(t, smallLimits())
	for range 100 {
		o.write(&o.out, &o.allOut, bytes.Repeat([]byte("x"), 100_000))
		o.take()
	}
	for _, path := range []string{o.out.path, o.path} {
		// File systems release whole blocks, which may be large.
		if used := usedBytes(t, path); used > o.size/2 {
			t.Errorf("%s takes %d bytes of disk", filepath.Base(path), used)
		}
	}
}

// A disk that cannot release is not filled: the command is ended.
func TestReleaseThatFails(t *testing.T) {
	t.Parallel()
	o := newOutputs(t, smallLimits())
	o.write(&o.out, &o.allOut, bytes.Repeat([]byte("x"), int(2*o.limits.keep)))
	if !o.take() {
		t.Error("ended although nothing has to be released")
	}
	o.mu.Lock()
	must(t, o.log.Close())
	o.mu.Unlock()
	o.write(&o.out, &o.allOut, bytes.Repeat([]byte("x"), 1<<20))
	if o.take() {
		t.Error("went on although nothing can be written or released")
	}
}

// A file that becomes huge in one step, without its blocks, is not read as a whole.
func TestOutputWithAHole(t *testing.T) {
	t.Parallel()
	l := smallLimits()
	l.most = 1 << 41
	o := newOutputs(t, l)
	if err := o.out.file.Truncate(1 << 40); err != nil {
		t.Skip("needs a file system that can make a file of a terabyte:", err)
	}
	if !o.take() || o.size != 1<<40 {
		t.Errorf("%d bytes were taken", o.size)
	}
}

func TestOverflow(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.limits = smallLimits()
	j := s.start(t, Command{Text: "yes"})
	defer j.Release()
	i, err := j.Wait(t.Context(), never)
	must(t, err)
	if i.State != Overflow || i.Out <= s.limits.most {
		t.Errorf("%s after %d bytes", i.State, i.Out)
	}
	c, err := s.Output(t.Context(), i.ID, 0, 10)
	must(t, err)
	if c.Head != "y\ny\ny\ny\ny\n" || c.Tail == "" || c.Size != i.Out || i.Dropped != i.Out-2*s.limits.keep {
		t.Errorf("%q … %q, %d bytes, %d dropped", c.Head, c.Tail, c.Size, i.Dropped)
	}
}

// A hundred megabytes cost the server no memory.
func TestMemoryOfLargeOutput(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc/self/status")
	}
	s := newStage(t)
	before := residentBytes(t)
	j := s.start(t, Command{Text: `head -c 100000000 /dev/zero | tr '\0' 'x'`})
	defer j.Release()
	i, err := j.Wait(t.Context(), never)
	must(t, err)
	c, err := s.Output(t.Context(), i.ID, 0, 1000)
	must(t, err)
	if grown := residentBytes(t) - before; grown > 32<<20 {
		t.Errorf("memory grew by %d bytes", grown)
	}
	if i.State != Completed || i.Out != 100_000_000 || c.Head != strings.Repeat("x", 1000) || c.Tail != c.Head || c.Size != i.Out {
		t.Errorf("%+v, head %d, tail %d, size %d", i, len(c.Head), len(c.Tail), c.Size)
	}
	if info, err := os.Stat(i.Log); err != nil || info.Size() > 65<<20 || info.Size() < 64<<20 {
		t.Errorf("the log: %v, %v", info.Size(), err)
	}
}

func residentBytes(t *testing.T) int64 {
	t.Helper()
	runtime.GC()
	text, err := os.ReadFile("/proc/self/status")
	must(t, err)
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	var kb int64
	if _, err := fmt.Sscan(rest, &kb); err != nil {
		t.Fatal(err)
	}
	return kb << 10
}

// A log with a gap can be read by the next process, too.
func TestGapIsReadAgain(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.limits = smallLimits()
	j := s.start(t, Command{Text: "seq 1 300000", Background: true})
	i, err := s.Await(t.Context(), j.id, never)
	must(t, err)
	was, err := s.Output(t.Context(), i.ID, 0, 1000)
	must(t, err)
	late, err := s.Output(t.Context(), i.ID, i.Out-20, 1000)
	must(t, err)
	must(t, s.Close())
	next := stageOn(t, s.board, s.Shell.dir)
	next.limits = s.limits
	is, err := next.Output(t.Context(), i.ID, 0, 1000)
	must(t, err)
	if is.Head != was.Head || is.Tail != was.Tail || is.Size != was.Size || i.Dropped == 0 || was.Lines != 300_000 {
		t.Errorf("was %d lines, %d bytes, %q; is %d bytes, %q", was.Lines, was.Size, was.Tail, is.Size, is.Tail)
	}
	if again, err := next.Output(t.Context(), i.ID, i.Out-20, 1000); err != nil || again.Head != late.Head || again.Size != 20 {
		t.Errorf("the end was %q, is %q, %v", late.Head, again.Head, err)
	}
}

// A character that is printed in two pieces is not shown in two pieces.
func TestHalfACharacter(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	j := s.start(t, Command{Text: `printf 'a\xe2\x9c'; until [ -e go ]; do :; done; printf '\x93b'`, Background: true})
	waitFor(t, "both halves", func() bool { return j.Info().Out == 3 })
	first, err := s.Output(t.Context(), j.id, 0, 100)
	must(t, err)
	if first.Head != "a" || first.Next != 1 || first.Size != 1 {
		t.Errorf("first %q, next %d", first.Head, first.Next)
	}
	s.file(t, "go")
	_, err = s.Await(t.Context(), j.id, never)
	must(t, err)
	second, err := s.Output(t.Context(), j.id, first.Next, 100)
	must(t, err)
	if second.Head != "✓b" {
		t.Errorf("second %q", second.Head)
	}
}

func TestCutRune(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]int{
		"": 0, "a": 0, "ü": 0, "\xc3": 1, "a\xe2\x9c": 2, "\xf0\x9f\x98": 3, "😀": 0, "\xff": 0, "\x80": 0, "\x80\x80\x80\x80": 0, "a\xe2\x9c\x93": 0,
	} {
		if got := cutRune(s); got != want {
			t.Errorf("cutRune(%q) = %d, want %d", s, got, want)
		}
	}
	for s, want := range map[string]int{"": 0, "a": 0, "\x93b": 1, "\x9c\x93b": 2, "\x80\x80\x80b": 0, "ü": 0} {
		if got := restOfRune(s); got != want && s != "\x80\x80\x80b" {
			t.Errorf("restOfRune(%q) = %d, want %d", s, got, want)
		}
	}
}

func TestLastLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "a\nb\n": "b", "a\nb": "b", "a\n\n  \n": "a", "10%\r20%\r30%": "30%", "10%\r20%\r": "20%",
		strings.Repeat("x", 5000) + "\nend\n": "end",
	} {
		o := newOutputs(t, defaultLimits())
		o.write(&o.out, &o.allOut, []byte(text))
		o.write(&o.err, &o.allErr, []byte("bad\n"+text))
		o.take()
		wantErr := cmp.Or(want, "bad")
		if got, errs := o.lastLines(); got != want || errs != wantErr {
			t.Errorf("%.20q: %q and %q, want %q and %q", text, got, errs, want, wantErr)
		}
	}
}

// Everything that is asked while a command runs comes from other goroutines than the one that follows it.
func TestAskedFromEverywhere(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.limits = smallLimits()
	s.limits.tick = time.Millisecond
	j := s.start(t, Command{Text: "seq 1 200000; seq 1 200000 >&2", Background: true})
	done := make(chan struct{})
	for range 4 {
		go func() {
			defer func() { done <- struct{}{} }()
			for after := int64(0); ; {
				c, err := s.Output(t.Context(), j.id, after, 5000)
				if err != nil || c.Next < after || c.Size < 0 {
					t.Errorf("%+v, %v", c.Size, err)
					return
				}
				after = c.Next
				_, _, _ = s.Streams(t.Context(), j.id, 100)
				_, _ = s.List(t.Context())
				j.Last()
				if c.Info.State != Running {
					return
				}
			}
		}()
	}
	for range 4 {
		<-done
	}
}

// A secret is hidden wherever a look cuts it, also if the other stream prints between, in the log and in the streams,
// and what a program prints and goes on is seen at once.
func TestOutputMasksSecrets(t *testing.T) {
	t.Parallel()
	secret := "gh" + "p_" + strings.Repeat("a1B2c3", 6)
	key := "-----BEG" + "IN RSA PRIVATE KEY-----\n" + strings.Repeat("aB1+", 16) + "\n"
	for _, masked := range []bool{true, false} {
		for cut := range len(secret) {
			l := smallLimits()
			l.masked = masked
			o := newOutputs(t, l)
			var all []byte
			o.write(&o.out, &all, []byte(key+"token: "+secret[:cut]))
			o.take()
			o.write(&o.err, &all, []byte("warning\n"))
			o.take()
			o.write(&o.out, &all, []byte(secret[cut:]+"\nPassword: "))
			o.take()
			if out, _ := o.lastLines(); out != "Password:" {
				t.Errorf("cut at %d: the last line is %q", cut, out)
			}
			o.finish()
			raw, err := os.ReadFile(o.path)
			must(t, err)
			text := strings.Replace(string(raw), "warning\n", "", 1)
			want := key + "token: " + secret + "\nPassword: "
			if masked {
				want = secrets.Masked(want)
			}
			if text != want {
				t.Errorf("masked %v, cut at %d: %q, want %q", masked, cut, text, want)
			}
			if c, err := o.out.chunk(l, 1<<20); err != nil || c.Head != want {
				t.Errorf("masked %v, cut at %d: the stream is %q, %v, want %q", masked, cut, c.Head, err, want)
			}
		}
	}
}

// What may be the beginning of a secret is not held back for ever.
func TestOutputGoesOn(t *testing.T) {
	t.Parallel()
	for text, most := range map[string]int{
		"Server is ready": 7, "press any key": 7, "Listening on http://localhost:3000": 60, "\r100% done, press": 7,
	} {
		l := smallLimits()
		l.masked = true
		o := newOutputs(t, l)
		var all []byte
		o.write(&o.out, &all, []byte(text))
		looks := 0
		for o.take(); o.printed().Out < int64(len(text)) && looks < 1000; looks++ {
			o.take()
		}
		if looks > most {
			t.Errorf("%q was shown after %d looks", text, looks)
		}
	}
}
