package page

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"
)

// slowPage is the obvious way to a page: all lines first.
func slowPage(text string, q Query) Page {
	var p Page
	pos, n := 0, 0
	var used int64
	for pos < len(text) {
		n++
		end := strings.IndexByte(text[pos:], '\n')
		line, to := text[pos:], len(text)
		if end >= 0 {
			line, to = strings.TrimSuffix(text[pos:pos+end], "\r"), pos+end+1
		}
		ends := to - pos - len(line)
		if n == 1 {
			line = strings.TrimPrefix(line, utf8Mark)
		}
		if n >= max(q.First, 1) && !p.More {
			out := Line{From: int64(pos), To: int64(to), End: ends}
			out.Text, out.Cut = slowCut(line, q)
			fits := q.MaxBytes == 0 || used+int64(len(out.Text)) <= q.MaxBytes && (len(p.Lines) == 0 || !slowLacks(line, q))
			if len(p.Lines) < q.Lines && fits {
				used += int64(len(out.Text))
				p.Lines = append(p.Lines, out)
			} else {
				p.More = q.Lines > 0
			}
		}
		pos = to
	}
	p.Total, p.Exact = n, true
	return p
}

func slowCut(line string, q Query) (string, int) {
	runes, bytes := 0, 0
	for bytes < len(line) {
		_, n := utf8.DecodeRuneInString(line[bytes:])
		if q.MaxRunesReached(runes) || q.MaxBytes > 0 && int64(bytes+n) > q.MaxBytes {
			break
		}
		runes++
		bytes += n
	}
	return line[:bytes], utf8.RuneCountInString(line[bytes:])
}

// MaxRunesReached is only for the slow version.
func (q Query) MaxRunesReached(n int) bool { return q.MaxLine > 0 && n == q.MaxLine }

// slowLacks says that the bytes allowed cut the line, not the runes allowed.
func slowLacks(line string, q Query) bool {
	byRunes, _ := slowCut(line, Query{MaxLine: q.MaxLine})
	return int64(len(byRunes)) > q.MaxBytes
}

func checkPage(t *testing.T, text string, q Query) {
	t.Helper()
	got, err := Read(t.Context(), strings.NewReader(text), int64(len(text)), q)
	if err != nil {
		t.Fatal(err)
	}
	want := slowPage(text, q)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q with %+v:\n got %+v\nwant %+v", shorten(text), q, got, want)
	}
}

func shorten(s string) string {
	if len(s) > 300 {
		return s[:300] + "…"
	}
	return s
}

func TestPage(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "a", "a\n", "a\nb", "a\nb\n", "\n", "\n\n", "a\r\nb\r\n", "a\r", "a\r\r\n", "\r\n", utf8Mark, utf8Mark + "a\n", utf8Mark + "\n" + utf8Mark,
		"ééé\nxxxx\n", "é\xc3\n\xff\xe6\x97\n", strings.Repeat("日", 10) + "\r\n", "1\n2\n3\n4\n5\n6",
	} {
		for first := range 8 {
			for lines := range 4 {
				for _, runes := range []int{0, 1, 3} {
					for _, max := range []int64{0, 2, 7} {
						checkPage(t, text, Query{First: first, Lines: lines, MaxLine: runes, MaxBytes: max})
					}
				}
			}
		}
	}
}

// Lines and runes lie across the borders of chunks, and lines are longer than several chunks.
func TestPageAcrossChunks(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"é", "日", "a", "\r\n", "\n", "\r", "\xff", strings.Repeat("日x", chunkSize/3), strings.Repeat("y", chunkSize-1), "\n"}
	for range 20 {
		var b strings.Builder
		for range 12 {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		for range 6 {
			checkPage(t, b.String(), Query{First: r.IntN(6), Lines: r.IntN(5), MaxLine: r.IntN(3) * 1000, MaxBytes: int64(r.IntN(3)) * 5000})
		}
	}
}

// zeros is a text of lines without end that costs no memory.
type zeros struct{ size int64 }

func (z zeros) ReadAt(p []byte, at int64) (int, error) {
	n := int(min(int64(len(p)), max(z.size-at, 0)))
	for i := range p[:n] {
		p[i] = 'x'
		if (at+int64(i))%100 == 99 {
			p[i] = '\n'
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func TestPageTotalOfLargeText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		size  int64
		first int
		exact bool
	}{
		{countedSize, 1, true},
		{countedSize + 100, 1, false},
		{countedSize + 100, 1 << 30, true}, // read to its end anyway
	} {
		p, err := Read(t.Context(), zeros{c.size}, c.size, Query{First: c.first, Lines: 10})
		if err != nil {
			t.Fatal(err)
		}
		lines := int((c.size + 99) / 100)
		if p.Exact != c.exact || p.Exact && p.Total != lines || p.Total > lines {
			t.Errorf("size %d from line %d: total %d, exact %v; want %d, exact %v", c.size, c.first, p.Total, p.Exact, lines, c.exact)
		}
		if !p.Exact && p.Total < 11 {
			t.Errorf("size %d: lower bound %d; want at least the lines shown and one that follows", c.size, p.Total)
		}
	}
}

// slow is a text of one line, of which each chunk takes a tenth of a second. It runs in a bubble.
type slow struct{ size int64 }

func (s slow) ReadAt(p []byte, at int64) (int, error) {
	time.Sleep(100 * time.Millisecond)
	if at == 0 {
		return copy(p, "head\n"+strings.Repeat("x", len(p)-5)), nil
	}
	return copy(p, strings.Repeat("x", int(min(int64(len(p)), s.size-at)))), nil
}

// A sparse file of 50 GB is answered, and so is one on a slow disk; a text that can be hashed is read to its end.
func TestPageTimeOfHugeText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		size         int64
		first, lines int
		exact        bool
	}{
		{50 << 30, 1, 2, false},
		{50 << 30, 3, 0, false},
		{20 << 20, 1, 2, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			p, err := Read(t.Context(), slow{c.size}, c.size, Query{First: c.first, Lines: 10, MaxLine: 2000})
			if err != nil || len(p.Lines) != c.lines || p.Exact != c.exact || p.More == c.exact || p.Total != 2 {
				t.Errorf("%+v: got %d lines, %v", c, len(p.Lines), err)
			}
			if took := time.Since(start); !c.exact && took > MaxTime+200*time.Millisecond {
				t.Errorf("%+v took %v", c, took)
			}
		})
	}
}

// A file may be cut while it is read: what is there is returned.
func TestPageOfShrunkFile(t *testing.T) {
	t.Parallel()
	p, err := Read(t.Context(), strings.NewReader("a\nb"), 1000, Query{First: 1, Lines: 5})
	if err != nil || len(p.Lines) != 2 || p.Total != 2 || !p.Exact {
		t.Errorf("got %+v, %v; want both lines", p, err)
	}
}

func TestPageErrors(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken disk")
	_, err := Read(t.Context(), failing{broken}, 10, Query{First: 1, Lines: 1})
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want the error of the reader", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Read(ctx, strings.NewReader("a"), 1, Query{First: 1, Lines: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

type failing struct{ err error }

func (f failing) ReadAt([]byte, int64) (int, error) { return 0, f.err }

func FuzzPage(f *testing.F) {
	f.Add([]byte("a\r\nb\n\xff"), 1, 2, 3, int64(4))
	f.Add([]byte(utf8Mark+"日本\n"), 0, 1, 0, int64(0))
	f.Fuzz(func(t *testing.T, text []byte, first, lines, runes int, max int64) {
		q := Query{First: first % 100, Lines: lines & 63, MaxLine: runes & 15, MaxBytes: max & 63}
		checkPage(t, string(text), q)
		whole, err := Read(t.Context(), bytes.NewReader(text), int64(len(text)), Query{Lines: len(text) + 1})
		if err != nil {
			t.Fatal(err)
		}
		var joined []byte
		for _, l := range whole.Lines {
			part := text[l.From:l.To]
			joined = append(joined, part...)
			if !bytes.Contains(part, []byte(l.Text)) {
				t.Fatalf("line %+v is not what stands there: %q", l, part)
			}
		}
		if !bytes.Equal(joined, text) {
			t.Fatalf("the lines joined give %q, want %q", joined, text)
		}
	})
}

func BenchmarkPage(b *testing.B) {
	for _, size := range []int64{1 << 20, 100 << 20} {
		for _, first := range []int{1, int(size / 100 * 9 / 10)} {
			b.Run(fmt.Sprintf("%dMB/from%d", size>>20, first), func(b *testing.B) {
				data := make([]byte, size)
				if _, err := (zeros{size}).ReadAt(data, 0); err != nil {
					b.Fatal(err)
				}
				r := bytes.NewReader(data)
				b.ReportAllocs()
				for b.Loop() {
					if _, err := Read(b.Context(), r, size, Query{First: first, Lines: 2000, MaxLine: 2000}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// Pages with marks are those without, in any order.
func TestPageMarks(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	var b strings.Builder
	b.WriteString(utf8Mark)
	for b.Len() < 18<<20 {
		switch r.IntN(40) {
		case 0:
			b.WriteString("\r\n\n")
		case 1:
			if r.IntN(500) == 0 {
				b.WriteString(strings.Repeat("long ", 1<<19)) // no line begins in this MiB
			}
		default:
			b.WriteString(strings.Repeat("é", r.IntN(90)) + "\n")
		}
	}
	b.WriteString("end")
	text := b.String()
	total := strings.Count(text, "\n") + 1
	marks, known := &Marks{}, false
	for i := range 60 {
		q := Query{First: 1 + r.IntN(total+5), Lines: r.IntN(4) * 10, MaxLine: 2000, MaxBytes: int64(r.IntN(2)) * 300, Marks: marks}
		if i == 30 {
			q.First = total - 2
		}
		got, err := Read(t.Context(), strings.NewReader(text), int64(len(text)), q)
		if err != nil {
			t.Fatal(err)
		}
		q.Marks = nil
		want, err := Read(t.Context(), strings.NewReader(text), int64(len(text)), q)
		if err != nil {
			t.Fatal(err)
		}
		known = known || got.Exact
		if !reflect.DeepEqual(got.Lines, want.Lines) || got.More != want.More {
			t.Fatalf("%+v: %d lines, more %v; want %d, %v", q, len(got.Lines), got.More, len(want.Lines), want.More)
		}
		if known && (!got.Exact || got.Total != total) || got.Total > total || got.Total < min(q.First-1, total)*min(len(got.Lines), 1)+len(got.Lines) {
			t.Fatalf("%+v: total %d, exact %v; want %d", q, got.Total, got.Exact, total)
		}
	}
	if n := len(marks.list); !known || n < 5 || n > 20 {
		t.Errorf("%d marks, the end was reached: %v", n, known)
	}
}
