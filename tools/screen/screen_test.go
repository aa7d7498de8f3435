package screen

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/charmbracelet/x/vt"

	"codehand/filestate/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// open returns a screen and what it has answered so far.
func open(t testing.TB, columns, rows int) (*Screen, func() string) {
	t.Helper()
	var mu sync.Mutex
	var answered strings.Builder
	s := New(columns, rows, func(b []byte) {
		mu.Lock()
		defer mu.Unlock()
		answered.Write(b)
	})
	t.Cleanup(s.Close)
	return s, func() string {
		s.Close()
		mu.Lock()
		defer mu.Unlock()
		return answered.String()
	}
}

func TestScreenRows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		printed string
		rows    []string
		at      [2]int
	}{
		"nothing":          {"", nil, [2]int{1, 1}},
		"plain":            {"a\r\nb  \r\n\r\n", []string{"a", "b"}, [2]int{4, 1}},
		"colours":          {"\x1b[1;31mred\x1b[0m text", []string{"red text"}, [2]int{1, 9}},
		"moved":            {"\x1b[2;3Hx\x1b[1;1Hy", []string{"y", "  x"}, [2]int{1, 2}},
		"erased":           {"abc\r\x1b[K\r\nd", []string{"", "d"}, [2]int{2, 2}},
		"wide":             {"日本x", []string{"日本x"}, [2]int{1, 6}},
		"wide overwritten": {"日本\rab", []string{"ab本"}, [2]int{1, 3}},
		"combining":        {"e\u0301x", []string{"e\u0301x"}, [2]int{1, 3}},
		"insert mode":      {"ac\r\x1b[4hxb\x1b[4l\x1b[3GB", []string{"xbBc"}, [2]int{1, 4}},
		"insert, in parts": {"ac\r\x1b[4h\x1b[Cb", []string{"abc"}, [2]int{1, 3}},
		"alternate":        {"text\x1b[?1049h\x1b[Hfull", []string{"full"}, [2]int{1, 5}},
		"back":             {"text\x1b[?1049h\x1b[Hfull\x1b[?1049l!", []string{"text!"}, [2]int{1, 6}},
		"title":            {"\x1b]0;a title\x07x", []string{"x"}, [2]int{1, 2}},
		"wrapped":          {strings.Repeat("x", 12), []string{"xxxxxxxxxx", "xx"}, [2]int{2, 3}},
		"repeated":         {"x\x1b[99999999999999999999by\x1b[3b", []string{"xyyyy"}, [2]int{1, 6}},
		"large region":     {"a\r\n\x1b[;7rb\n\n\n\n\nc", []string{"", "", "", " c"}, [2]int{4, 3}},
		"tabs":             {"\x1b[99999999999999999999Ia", []string{"a"}, [2]int{1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole, _ := open(t, 10, 4)
			whole.Write([]byte(c.printed))
			bytewise, _ := open(t, 10, 4)
			for _, b := range []byte(c.printed) {
				bytewise.Write([]byte{b})
			}
			v := whole.Look(0)
			if !slices.Equal(v.Rows, c.rows) || v.Row != c.at[0] || v.Column != c.at[1] {
				t.Errorf("got %q, cursor %d, %d", v.Rows, v.Row, v.Column)
			}
			if name == "combining" { // the emulator joins characters of one write only
				return
			}
			if b := bytewise.Look(0); b.Sum != v.Sum || !reflect.DeepEqual(b, v) {
				t.Errorf("by bytes: %+v, whole: %+v", b, v)
			}
		})
	}
}

// A program that asks what the terminal is, or where the cursor is, gets an answer; without one the emulator stands still
// for ever.
func TestScreenAnswers(t *testing.T) {
	t.Parallel()
	s, answered := open(t, 20, 5)
	s.Write([]byte("ab\x1b[6n"))
	s.Write([]byte("\x1b[c\x1b[5n"))
	got := answered()
	if !strings.HasPrefix(got, "\x1b[1;3R\x1b[?") || !strings.HasSuffix(got, "\x1b[0n") && !strings.HasSuffix(got, "\x1b[?0n") {
		t.Errorf("got %q", got)
	}
}

func TestScreenGone(t *testing.T) {
	t.Parallel()
	s, _ := open(t, 20, 3)
	for i := range 10 {
		s.Write(fmt.Appendf(nil, "line %d\r\n", i))
	}
	v := s.Look(0)
	if want := []string{"line 8", "line 9"}; !slices.Equal(v.Rows, want) || len(v.Gone) != 8 || v.Gone[7] != "line 7" || v.Next != 8 {
		t.Fatalf("got %+v", v)
	}
	s.Write([]byte("more\r\n"))
	if v = s.Look(v.Next); !slices.Equal(v.Gone, []string{"line 8"}) || v.Next != 9 || v.Missed != 0 {
		t.Errorf("got %+v", v)
	}
	if w := s.Look(v.Next); w.Sum != v.Sum || len(w.Gone) > 0 {
		t.Errorf("two looks differ: %+v, %+v", v, w)
	}
	if w := s.Look(1 << 60); len(w.Gone) > 0 || w.Next != 9 {
		t.Errorf("a position that there is not: %+v", w)
	}
}

// 10 MB are drawn within the caps: what is kept of the lines is bounded, and so is what scrolls in a pager.
func TestScreenMuch(t *testing.T) {
	t.Parallel()
	s, _ := open(t, 80, 24)
	line := []byte(strings.Repeat("x", 78) + "\r\n")
	for range 20_000 {
		s.Write(line)
	}
	v := s.Look(0)
	if kept := len(v.Gone) * 94; kept > maxGone+94 || kept < maxGone/2 || v.Missed+int64(len(v.Gone)) != v.Next || v.Next != 19_977 {
		t.Errorf("%d lines are kept, %d missed, next %d", len(v.Gone), v.Missed, v.Next)
	}
	s.Write([]byte("\x1b[?1049h"))
	for range 20_000 {
		s.Write(line)
	}
	runtime.GC()
	back := reflect.ValueOf(s.vt).Elem().FieldByName("scrs").Index(1).Addr().UnsafePointer()
	if kept := (*vt.Screen)(back).Scrollback().Len(); kept != 0 {
		t.Errorf("%d lines of a pager are kept", kept)
	}
	if w := s.Look(v.Next); len(w.Gone) != 0 || !w.Alternate {
		t.Errorf("lines of a pager left the screen: %d", len(w.Gone))
	}
	s.Write([]byte("\x1b[?1049l"))
	if got := s.Look(v.Next).Rows[0]; got != string(line[:78]) {
		t.Errorf("the text is not back: %q", got)
	}
}

// What is not drawn sets modes all the same, and asks for nothing.
func TestScreenModes(t *testing.T) {
	t.Parallel()
	s, answered := open(t, 20, 5)
	s.Write(Modes([]byte("text\x1b[?1049h\x1b[?1h\x1b[6n\x1b[31mtext")))
	s.Write([]byte("x"))
	if up, _ := s.Key("Up"); up != "\x1bOA" {
		t.Errorf("Up is %q", up)
	}
	if v := s.Look(0); !v.Alternate || !slices.Equal(v.Rows, []string{"x"}) {
		t.Errorf("got %+v", v)
	}
	if got := answered(); got != "" {
		t.Errorf("answered %q", got)
	}
}

func TestScreenResize(t *testing.T) {
	t.Parallel()
	s, _ := open(t, 20, 5)
	s.Write([]byte("one\r\ntwo\r\nthree\r\nfour\r\nfive"))
	s.Resize(30, 3)
	v := s.Look(0)
	if !slices.Equal(v.Gone, []string{"one", "two"}) || !slices.Equal(v.Rows, []string{"three", "four", "five"}) ||
		v.Row != 3 || v.Column != 5 || v.Columns != 30 || v.Height != 3 {
		t.Errorf("smaller: %+v", v)
	}
	s.Resize(30, 6)
	s.Write([]byte("!"))
	if v = s.Look(v.Next); !slices.Equal(v.Rows, []string{"three", "four", "five!"}) || v.Height != 6 {
		t.Errorf("larger: %+v", v)
	}
}

func TestScreenKeys(t *testing.T) {
	t.Parallel()
	s, _ := open(t, 20, 5)
	for name, want := range map[string]string{
		"Enter": "\r", "enter": "\r", "Ctrl-C": "\x03", "ctrl+d": "\x04", "Ctrl-[": "\x1b", "Ctrl-_": "\x1f", "Up": "\x1b[A", "Esc": "\x1b",
		"Tab": "\t", "Shift-Tab": "\x1b[Z", "PageDown": "\x1b[6~", "F12": "\x1b[24~", "Alt-f": "\x1bf", "Alt-Enter": "\x1b\r",
		"Space": " ", "Backspace": "\x7f",
	} {
		if got, ok := s.Key(name); got != want || !ok {
			t.Errorf("%s is %q, %v", name, got, ok)
		}
	}
	for _, name := range []string{"", "a", "Ctrl-", "Ctrl-1", "Ctrl-AB", "Alt-", "Alt-xyz", "F13", "Enter ", "ctrl"} {
		if got, ok := s.Key(name); ok || KnownKey(name) {
			t.Errorf("%q is %q", name, got)
		}
	}
	s.Write([]byte("\x1b[?1h"))
	if got, _ := s.Key("Down"); got != "\x1bOB" {
		t.Errorf("Down is %q", got)
	}
}

// After Close the screen still shows what it did, and nothing changes it.
func TestScreenClosed(t *testing.T) {
	t.Parallel()
	s, _ := open(t, 20, 5)
	s.Write([]byte("last"))
	s.Close()
	s.Close()
	s.Write([]byte("more"))
	s.Resize(3, 3)
	if v := s.Look(0); !slices.Equal(v.Rows, []string{"last"}) || v.Columns != 20 {
		t.Errorf("got %+v", v)
	}
}

// No bytes end the server, stop it, or put a control character into a row.
func FuzzScreen(f *testing.F) {
	f.Add([]byte("\x1b[4hab\x1b[2;5r\x1b[9999999999b\x1b[?1049h\x1b[6n\xff\xf0\x9f\x91\xa9\xe2\x80\x8d"), 8)
	f.Add([]byte("\x1b]0;\x1b[5;5H\x1bP1$r\x1b\\\x1b[?69h\x1b[3;1s\x1b[10S\x1b[10T\x1bM\x1b[4L\x1b[4M\x1b(0qqq\x0e"), 3)
	f.Fuzz(func(t *testing.T, printed []byte, size int) {
		size = 1 + (size%20+20)%20
		s, _ := open(t, size, size)
		s.Write(printed)
		s.Resize(size+3, 1+size/2)
		s.Write(printed)
		s.Write(Modes(printed))
		v := s.Look(0)
		if len(v.Rows) > v.Height || v.Row < 1 || v.Row > v.Height || v.Column < 1 || v.Column > v.Columns {
			t.Errorf("out of the screen: %+v", v)
		}
		for _, row := range append(v.Rows, v.Gone...) {
			if strings.ContainsAny(row, "\n\r\x1b\x00") {
				t.Errorf("a row has control characters: %q", row)
			}
		}
	})
}

func BenchmarkScreen(b *testing.B) {
	s, _ := open(b, 80, 24)
	line := []byte(strings.Repeat("\x1b[32mword\x1b[0m ", 10) + "\r\n")
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		s.Write(line)
	}
}
