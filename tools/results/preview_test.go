package results

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"
)

// numberedLines is n lines, of which those in marked have a text of their own.
func numberedLines(n int, marked map[int]string) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		text, ok := marked[i]
		if !ok {
			text = fmt.Sprintf("line %d", i)
		}
		b.WriteString(text + "\n")
	}
	return b.String()
}

func TestPreview(t *testing.T) {
	t.Parallel()
	file := Spool{Path: "/log", Bytes: 5000, Lines: 1000}
	const first = "Output too large (4.9 KB, 1,000 lines). Full output: /log Read it with read_file offset/limit or grep_search.\n"
	head, tail := numberedLines(20, nil), strings.TrimSuffix(strings.TrimPrefix(numberedLines(1000, nil), numberedLines(960, nil)), "\n")
	many := map[int]string{}
	for i := range 30 {
		many[100+10*i] = "warning: w"
	}
	for i := range 25 {
		many[500+i] = "--- FAIL: x"
	}
	fails := ""
	for i := range 20 {
		fails += fmt.Sprintf("%d: --- FAIL: x\n", 500+i)
	}
	for _, c := range []struct {
		name   string
		marked map[int]string
		want   string
	}{
		{"nothing to see", nil, head + "[lines 21-960 are left out]\n" + tail},
		{"what looks like a failure", map[int]string{50: "panic: boom", 51: "0 errors, no failures", 52: "goroutine 1 [running]:", 900: "W: warning: old", 901: "details of what they want", 902: "f_test.go:3: got 1, want 2"},
			head + "[lines 21-960 are left out, but for these that look like failures]\n50: panic: boom\n52: goroutine 1 [running]:\n900: W: warning: old\n902: f_test.go:3: got 1, want 2\n[lines 961-1,000]\n" + tail},
		{"failures before warnings", many, head + "[lines 21-960 are left out, but for 20 of 55 that look like failures]\n" + fails + "[lines 961-1,000]\n" + tail},
		{"like one of ours", map[int]string{50: "FILE_NOT_FOUND: error"}, head + "[lines 21-960 are left out, but for these that look like failures]\n50: \\FILE_NOT_FOUND: error\n[lines 961-1,000]\n" + tail},
		{"ends twice", map[int]string{5: "error", 990: "error"},
			strings.Replace(head, "line 5\n", "error\n", 1) + "[lines 21-960 are left out]\n" + strings.Replace(tail, "line 990\n", "error\n", 1)},
	} {
		for _, end := range []string{"\n", ""} { // also without an end of the last line
			text := strings.TrimSuffix(numberedLines(1000, c.marked), "\n") + end
			got, ok := Preview(file, iotest.HalfReader(strings.NewReader(text)), Form{Runes: 10_000})
			if !ok || got != first+c.want {
				t.Errorf("%s: got %v\n%s\nwant\n%s", c.name, ok, got, first+c.want)
			}
		}
	}
}

// Long lines are cut until a preview fits, and what has too few lines has none.
func TestPreviewFits(t *testing.T) {
	t.Parallel()
	file := Spool{Path: "/log"}
	wide := strings.Repeat(strings.Repeat("é", 3000)+"\n", 100)
	for _, runes := range []int{50_000, 20_000, 12_000} {
		got, ok := Preview(file, strings.NewReader(wide), Form{Runes: runes})
		if !ok || len([]rune(got)) > runes || len([]rune(got)) < runes/2 {
			t.Errorf("%d: %v, %d characters", runes, ok, len([]rune(got)))
		}
	}
	for name, c := range map[string]struct {
		text string
		form Form
	}{
		"80 lines": {numberedLines(80, nil), Form{}},
		"no room":  {wide, Form{Runes: 3000}},
		"one line": {strings.Repeat("x", 1<<20), Form{Runes: 10_000}},
	} {
		if got, ok := Preview(file, strings.NewReader(c.text), c.form); ok {
			t.Errorf("%s: %s", name, got)
		}
	}
	if _, ok := Preview(file, iotest.ErrReader(errors.New("broken")), Form{}); ok {
		t.Error("a log that cannot be read has a preview")
	}
}

func BenchmarkPreview(b *testing.B) {
	text := strings.Repeat("2026-01-02 12:00:00 INFO handled a request in 12 ms, details follow\n", 1<<20)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, ok := Preview(Spool{}, strings.NewReader(text), Form{}); !ok {
			b.Fatal("no preview")
		}
	}
}
