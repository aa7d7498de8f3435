package workspace

import (
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// SEC-09: at least 20 spellings of shares and devices, none of which may reach the disk on any system. The Windows
// column holds what is refused there besides.
func TestDeviceSpellings(t *testing.T) {
	everywhere := []string{
		`\\host\share`, `\\host\share\x.txt`, `\\`, `\\?\C:\x`, `\\?\UNC\host\x`, `\\.\PhysicalDrive0`, `\\.\pipe\x`, `\\.\COM1`,
		`\\127.0.0.1\c$\x`, `\\host@SSL@443\dav`, `\??\C:\x`, `\??\UNC\host\x`, `/??/C:/x`, `/??/UNC/host/x`, `/??`, `\\;lanman\x`,
	}
	windows := []string{
		`//host/share`, `\/host\share`, `/\host/share`, `//?/C:/x`, `//./pipe/x`, `/??/x`, `C:rel`, `c:`, `C:\x:stream`, `x.txt::$DATA`, `a:b`,
		`CON`, `nul`, `NUL.txt`, `dir\aux`, `dir/PRN.tar.gz`, `COM1`, `lpt9.txt`, `COM¹`, `CONIN$`, `nul .x`,
	}
	for _, path := range everywhere {
		for _, onWindows := range []bool{false, true} {
			if err := checkText(path, onWindows); !errors.Is(err, ErrSpelling) {
				t.Errorf("%q, windows %v: %v, want ErrSpelling", path, onWindows, err)
			}
		}
	}
	for _, path := range windows {
		if err := checkText(path, true); !errors.Is(err, ErrSpelling) {
			t.Errorf("%q on Windows: %v, want ErrSpelling", path, err)
		}
	}
	for _, path := range []string{`C:\x\y.txt`, `c:/x`, `x.txt`, `..\x`, `\x`, `console`, `com10`, `com`, `dir\nullable.go`, `file:///C:/x`} {
		if err := checkText(path, true); err != nil {
			t.Errorf("%q on Windows: %v", path, err)
		}
	}
	for _, path := range []string{`CON`, `a:b`, `//host/share`, `C:rel`, `a\b`, `x\\y`, `??/x`} {
		if err := checkText(path, false); err != nil {
			t.Errorf("%q elsewhere: %v", path, err)
		}
	}
}

func TestDecodeURL(t *testing.T) {
	for _, c := range []struct {
		text    string
		windows bool
		want    string
		kind    string
	}{
		{"file:///w/a.txt", false, "/w/a.txt", "ok"},
		{"FILE:///w/a.txt", false, "/w/a.txt", "ok"},
		{"file://localhost/w/a", false, "/w/a", "ok"},
		{"file://LOCALHOST/w/a", false, "/w/a", "ok"},
		{"file:///w/a%20b%25", false, "/w/a b%", "ok"},
		{"file:///w/a#b?c", false, "/w/a#b?c", "ok"},
		{"file:///", false, "/", "ok"},
		{"file:///C:/x", true, "C:/x", "ok"},
		{"file:///c%3A/x", true, "c:/x", "ok"},
		{"file:///C:/x", false, "/C:/x", "ok"},
		{"file:/w", false, "file:/w", "ok"}, // a name like any other
		{"http://h/x", false, "http://h/x", "ok"},
		{"file://host/x", false, "", "spelling"},
		{"file://host", false, "", "spelling"},
		{"file://", false, "", "invalid"},
		{"file://localhost", false, "", "invalid"},
		{"file:///%", false, "", "invalid"},
	} {
		got, err := decodeURL(c.text, c.windows)
		if got != c.want || kind(err) != c.kind {
			t.Errorf("decodeURL(%q) = %q, %v, want %q, %s", c.text, got, err, c.want, c.kind)
		}
	}
}

func TestHomeMeansNothingWithoutOne(t *testing.T) {
	s, err := Open([]string{t.TempDir()}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, path := range []string{"~", "~/x"} {
		if _, err := s.Open(path, Write); kind(err) != "invalid" {
			t.Errorf("%q: %v, want *InvalidError", path, err)
		}
	}
}

func TestAbs(t *testing.T) {
	f := newFixture(t)
	for path, want := range map[string]string{
		"a.txt":                     f.path("ws/a.txt"),
		"./dir//../a.txt/":          f.path("ws/a.txt"),
		"..":                        f.top,
		"~":                         f.path("ws"),
		"~/x/../y":                  f.path("ws/y"),
		"/../../x":                  filepath.FromSlash("/x"),
		"":                          "",
		"~other":                    "~other",
		`\\host\x`:                  `\\host\x`,
		"a\x00b":                    "a\x00b",
		strings.Repeat("x/", 3000):  strings.Repeat("x/", 3000),
		"file:///w/%2e%2e/x":        filepath.FromSlash("/x"),
		"file://" + f.path("a%20b"): f.path("a b"),
	} {
		if got := f.Abs(path); got != want {
			t.Errorf("Abs(%.60q) = %q, want %q", path, got, want)
		}
	}
}

// byHand is what a spelling means, taken apart name by name, without the library that Abs uses; only for what Open takes.
func byHand(text, cwd, home string) string {
	if len(text) >= 7 && strings.EqualFold(text[:7], "file://") {
		_, rest, _ := strings.Cut(text[7:], "/")
		text = "/"
		for rest != "" {
			c, n := rest[0], 1
			if c == '%' {
				d, _ := strconv.ParseUint(rest[1:3], 16, 8) // it was accepted
				c, n = byte(d), 3
			}
			text, rest = text+string([]byte{c}), rest[n:]
		}
	}
	switch {
	case text == "~" || strings.HasPrefix(text, "~/"):
		text = home + "/" + text[1:]
	case text[0] != '/':
		text = cwd + "/" + text
	}
	var names []string
	for name := range strings.SplitSeq(text, "/") {
		switch {
		case name == ".." && len(names) > 0:
			names = names[:len(names)-1]
		case name != "" && name != "." && name != "..":
			names = append(names, name)
		}
	}
	return "/" + strings.Join(names, "/")
}

// Of a name that can only be a directory's no file may be made, though its clean path is that of one.
func TestNamesDir(t *testing.T) {
	s := newFixture(t)
	for _, path := range []string{"a/", "a//", "/w/a/", "a/.", "a/b/..", "./", "../", "~/", "file:///w/a/", "file:///w/a%2F", "FILE:///w/a/.", "/"} {
		if !s.NamesDir(path) {
			t.Errorf("%q: a file could be made of it", path)
		}
	}
	for _, path := range []string{"a", "a/b", ".", "..", "...", "a/...", "a/..b", "/w/.a", "~", "a/ ", "file:///w/a", `\\host\share/`, "", "a\x00/"} {
		if s.NamesDir(path) {
			t.Errorf("%q: it may be a file", path)
		}
	}
}

func TestRefused(t *testing.T) {
	f := newFixture(t)
	for path, want := range map[string]string{
		"a.txt": "ok", "none/x": "ok", "../outside": "ok", "/etc/passwd": "ok", "~/x": "ok", `..\x`: "ok", "": "invalid", "a\x00b": "invalid", "~other": "invalid",
		strings.Repeat("x", 256): "invalid", "file://": "invalid", `\\host\share`: "spelling", "/x/../??/host": "spelling", "file://host/x": "spelling",
	} {
		if got := kind(f.Refused(path)); got != want {
			t.Errorf("%.60q: got %s, want %s", path, got, want)
		}
	}
}

// FuzzAbs feeds spellings. What comes out is what byHand makes of it, clean, with no `..` left, and does not change again;
// what Open hands out lies in an area, and is never what lies outside.
func FuzzAbs(f *testing.F) {
	for _, seed := range []string{
		"a.txt", "../x", "~/x", "~user", "file:///w/%2e%2e", `\\host\x`, "/??/x", "a/../../b", "link/../x", "dangling", "x\x00", "",
		"./..//...//....", "file://localhost//etc", "self/self/../out", "//", "~", "\xff\xfe", "a:b",
		"file:///a%2Fb/%2E%2e//c", "FILE://LocalHost/%61?x#y", "~/../outside/x.txt", "out/x.txt", "self/out/../a.txt", "dir/./../a.txt/", "TOP/ws/a.txt",
		"loop/x", "./~", "a\\..\\x", " a.txt ", "a.txt\n", "\u202ea.txt",
	} {
		f.Add(seed)
	}
	top, err := filepath.EvalSymlinks(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	fx := fixture{top: top}
	fx.write(f, "ws/a.txt", "a")
	fx.write(f, "outside/x.txt", secret)
	for name, target := range map[string]string{"self": ".", "out": "../outside", "dangling": "../outside/new", "link": "TOP/ws/a.txt", "loop": "loop"} {
		fx.link(f, "ws/"+name, target)
	}
	if fx.Space, err = Open([]string{fx.path("ws")}, Options{Home: fx.path("ws")}); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = fx.Close() })
	f.Fuzz(func(t *testing.T, path string) {
		path = strings.ReplaceAll(path, "TOP", top) // which is another one in each process
		abs := fx.Abs(path)
		if _, err := fx.spell(path); err == nil {
			if want := byHand(path, fx.Cwd(), fx.path("ws")); !onWindows && abs != want {
				t.Errorf("Abs(%q) = %q, want %q", path, abs, want)
			}
			if !filepath.IsAbs(abs) || filepath.Clean(abs) != abs {
				t.Errorf("Abs(%q) = %q is not absolute and clean", path, abs)
			}
			for _, name := range components(abs) {
				if name == ".." {
					t.Errorf("Abs(%q) = %q goes up", path, abs)
				}
			}
			if again := fx.Abs(abs); again != abs {
				t.Errorf("Abs(%q) = %q, and again %q", path, abs, again)
			}
		} else if abs != path {
			t.Errorf("Abs(%q) = %q, but Open refuses it: %v", path, abs, err)
		}
		for _, a := range []Access{Read, Write} {
			p, err := fx.Open(path, a)
			if err != nil {
				continue
			}
			if info, err := p.Dir.Lstat(p.Name); err == nil && info.Mode().IsRegular() {
				if text, err := p.Dir.ReadFile(p.Name); err != nil || string(text) == secret {
					t.Errorf("Open(%q) leads to %q, %v", path, text, err)
				}
			}
			checkPlace(t, fx, p)
		}
	})
}
