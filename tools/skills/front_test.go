package skills_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"codehand/tools/skills"
)

func TestFront(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, front, want string }{
		{"order", "b: 1\na: 2", `{"b":1,"a":2}`},
		{"empty", "", `{}`},
		{"remark alone", "# nothing", `{}`},
		{"colon in text", "description: Use when: asked", `{"description":"Use when: asked"}`},
		{"colon in two texts", "description: a: b\nwhen_to_use: c: d", `{"description":"a: b","when_to_use":"c: d"}`},
		{"asterisk", "description: *bold* words\nmodel: x", `{"description":"*bold* words","model":"x"}`},
		{"at", "description: @someone asks", `{"description":"@someone asks"}`},
		{"backtick", "description: `x` does y", "{\"description\":\"`x` does y\"}"},
		{"percent", "description: %d of them", `{"description":"%d of them"}`},
		{"prose goes on", "description: one: two\nthree four\nmodel: x", `{"description":"one: two three four","model":"x"}`},
		{"open quote", "description: \"open: here\nmodel: x", `{"description":"\"open: here","model":"x"}`},
		{"sign of a block", "description: |\n one: [\nmodel: a: b", `{"description":"one: [","model":"a: b"}`},
		{"tab", "description: x\n\tmore: y\nmodel: z", `{"description":"x more: y","model":"z"}`},
		{"later key counts", "model: a\nmodel: b\nagent: c", `{"model":"b","agent":"c"}`},
		{"later key counts within", "metadata:\n  a: 1\n  a: 2\nx: y: z", `{"metadata":{"a":2},"x":"y: z"}`},
		{"anchors", "a: &x [1, 2]\nb: *x", `{"a":[1,2],"b":[1,2]}`},
		{"numbers", "a: 0o17\nb: -0\nc: 1e3\nd: .5\ne: 1_000\nf: 1e999\ng: +7\nh: .inf\ni: 0b1", `{"a":15,"b":0,"c":1000,"d":0.5,"e":"1_000","f":"1e999","g":7,"h":".inf","i":"0b1"}`},
		{"quoted numbers", "a: '1'\nb: \"true\"\nc: !!str 12", `{"a":"1","b":"true","c":"12"}`},
		{"big number", "a: 123456789012345678901234567890", `{"a":123456789012345678901234567890}`},
		{"date", "a: 2024-05-01", `{"a":"2024-05-01"}`},
		{"keys that are no text", "1: a\ntrue: b", `{"1":"a","true":"b"}`},
		{"markup", "a: <b> & \"c\"", `{"a":"<b> & \"c\""}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := one(t, "---\n"+c.front+"\n---\nbody\n")
			if string(s.Front) != c.want {
				t.Errorf("got %s, want %s", s.Front, c.want)
			}
			if !json.Valid(s.Front) {
				t.Errorf("no JSON: %s", s.Front)
			}
		})
	}
}

// severalLaughs are keys with a little too much each, in what is no YAML as a whole.
func severalLaughs() string {
	var b strings.Builder
	for i := range 20 {
		fmt.Fprintf(&b, "k%d: [&a %s%s]\n", i, strings.Repeat("x", 500), strings.Repeat(", *a", 50))
	}
	return b.String()
}

// What cannot be read is dropped with a reason, and quickly: the parser alone would take minutes for some of these.
func TestFrontIsBounded(t *testing.T) {
	t.Parallel()
	long := func(s string) string { return strings.Repeat(s, (64<<10)/len(s)-10) }
	laughs := "a0: &a0 [lol, lol, lol]\n"
	for i := range 20 {
		laughs += fmt.Sprintf("a%d: &a%d [*a%d, *a%d, *a%d, *a%d]\n", i+1, i+1, i, i, i, i)
	}
	for _, c := range []struct{ name, front, want string }{
		{"billion laughs", laughs, "too many values"},
		{"one long laugh", "a: &a " + strings.Repeat("x", 50000) + "\nb: [" + strings.Repeat("*a, ", 2000) + "*a]", "too many values"},
		{"long keys", "a: &a {" + strings.Repeat("x", 50000) + ": y}\nb: [" + strings.Repeat("*a, ", 2000) + "*a]", "too many values"},
		{"many long laughs", "a: b: c\n" + severalLaughs(), "too many values"},
		{"anchor in itself", "a: &a [*a]", "nested too deeply"},
		{"brackets", "a: " + long("["), "nested too deeply"},
		{"closed brackets", "a: " + strings.Repeat("[", 1000) + strings.Repeat("]", 1000), "nested too deeply"},
		{"braces", "a: " + long("{a: "), "nested too deeply"},
		{"dashes", long("- "), "nested too deeply"},
		{"question marks", long("? "), "nested too deeply"},
		{"many keys", long("a:\n"), "too many values"},
		{"too long", "a: " + strings.Repeat("x", 70<<10), "has 71684 bytes, the limit is 65536"},
		{"prose", "just words", "cannot be read"},
		{"list", "- a\n- b", "cannot be read"},
		{"not closed", "a: b\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			text := "---\n" + c.front + "\n---\nbody"
			if c.name == "not closed" {
				text, c.want = "---\na: b\nbody", "no line --- at its end"
			}
			if got := dropped(t, text); !strings.Contains(got, c.want) || !strings.HasSuffix(got, ".") {
				t.Errorf("got %q, want a sentence with %q", got, c.want)
			}
		})
	}
	if got := one(t, "---\n"+long("x")[:60000]+": y\n---\n"); len(got.Front) < 60000 {
		t.Errorf("a huge key was lost: %d bytes", len(got.Front))
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, file, description, body, dropped string }{
		{"mark and CRLF", "\ufeff---\r\ndescription: x\r\n---\r\nbody\r\n", "x", "body\n", ""},
		{"blanks after the lines", "---  \ndescription: x\n--- \t\nbody", "x", "body", ""},
		{"no body", "---\ndescription: x\n---", "x", "", ""},
		{"no front matter", "\nHello there.\n---\nmore", "Hello there.", "\nHello there.\n---\nmore", ""},
		{"heading first", "# Title\n\n```\ncode\n", "code", "# Title\n\n```\ncode\n", ""},
		{"heading alone", "---\nname: s\n---\n## Title ##\n", "Title ##", "## Title ##\n", ""},
		{"long line", strings.Repeat("é", 300), strings.Repeat("é", 249) + "…", strings.Repeat("é", 300), ""},
		{"empty", "", "", "", ""},
		{"control characters", "---\ndescription: \"a\\e[31mb\\u0007c\"\n---\n", "a [31mb c", "", ""},
		{"latin-1", "caf\xe9", "", "", "not UTF-8 text"},
		{"binary", "a\x00b", "", "", "not UTF-8 text"},
		{"large", strings.Repeat("x", 1<<20+1), "", "", "more than 1 MiB"},
		{"just not large", strings.Repeat("x\n", 1<<19), "x", strings.Repeat("x\n", 1<<19), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.dropped != "" {
				if got := dropped(t, c.file); !strings.Contains(got, c.dropped) {
					t.Errorf("got %q, want %q", got, c.dropped)
				}
				return
			}
			d := newDisk(t, t.TempDir())
			write(t, filepath.Join(d.dir, "s", "SKILL.md"), c.file)
			x := skills.New()
			set := scan(t, x, d, "")
			if len(set.Skills) != 1 || set.Skills[0].Description != c.description {
				t.Fatalf("got %+v, want one skill that says %q", set, c.description)
			}
			if body, err := x.Body(t.Context(), d, set.Skills[0]); err != nil || body != c.body {
				t.Errorf("body %q, %v; want %q", body, err, c.body)
			}
		})
	}
}

func TestTruths(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"true": true, "True": true, "yes": true, "YES": true, "on": true, "1": true, `"1"`: true, "'on'": true, "y": true,
		"false": false, "no": false, "off": false, "Off": false, "0": false, `"0"`: false, "": false, "~": false, "n": false,
		"perhaps": true, "[true]": true, "2": true,
	} {
		s := one(t, "---\ndescription: d\ndisable-model-invocation: "+text+"\n---\n")
		if s.ModelOff != want {
			t.Errorf("disable-model-invocation: %s: got %v, want %v", text, s.ModelOff, want)
		}
		// The other key is true when it is absent, and off when its value is unclear.
		off := !want || text == "perhaps" || text == "2"
		if text == "" || text == "~" {
			off = false
		}
		if s = one(t, "---\ndescription: d\nuser-invocable: "+text+"\n---\n"); s.UserOff != off {
			t.Errorf("user-invocable: %s: off is %v, want %v", text, s.UserOff, off)
		}
	}
}

func TestRules(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"Bash(git add:*), Read, Grep":            {"Bash(git add:*)", "Read", "Grep"},
		"Bash(git add *) Read":                   {"Bash(git add *)", "Read"},
		"Bash(echo (a, b)), mcp__s__t":           {"Bash(echo (a, b))", "mcp__s__t"},
		"Read,Write,,Edit ,":                     {"Read", "Write", "Edit"},
		"Bash(never closed, Read":                {"Bash(never closed, Read"},
		"Read) Grep":                             {"Read)", "Grep"},
		"[Read, 'Bash(a b)']":                    {"Read", "Bash(a b)"},
		"\n  - Read, Grep\n  - Bash(a, b) Write": {"Read", "Grep", "Bash(a, b)", "Write"},
		"":                                       nil,
		"{a: b}":                                 nil,
	} {
		s := one(t, "---\ndescription: d\nallowed-tools: "+text+"\n---\n")
		if !slices.Equal(s.Allowed, want) {
			t.Errorf("%q: got %q, want %q", text, s.Allowed, want)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"a": true, "a-b": true, "A.B_c:d": true, "_x": true, "7z": true, "é": true, "名前": true, strings.Repeat("x", 64): true,
		"": false, ".": false, "..": false, ".git": false, "-x": false, ":x": false, "a b": false, "a/b": false, "a\\b": false,
		"a\nb": false, "a\x00": false, "a\u200b": false, "a\u202e": false, "\xff": false, "a(b)": false, "a*": false, strings.Repeat("x", 65): false,
		// Invisible letters and marks: a repository had a skill whose name looked like that of one of the user's.
		"a\u3164": false, "a\u115f": false, "a\uffa0": false, "a\u034f": false, "a\ufe0f": false, "a\U000e0100": false, "a\u0301": true,
	} {
		if got := skills.Usable(name); got != want {
			t.Errorf("Usable(%q) = %v", name, got)
		}
	}
}

func TestPublic(t *testing.T) {
	t.Parallel()
	public := func(name string) skills.Skill {
		front, err := json.Marshal(map[string]any{"name": name, "description": "d"})
		if err != nil {
			t.Fatal(err)
		}
		return skills.Skill{Name: name, Front: front}
	}
	for name, want := range map[string]bool{
		"a": true, "a-b-c": true, "7": true, strings.Repeat("x", 64): true,
		"A": false, "a--b": false, "-a": false, "a-": false, "a.b": false, "é": false, strings.Repeat("x", 65): false, "": false,
	} {
		if got := public(name).Public(); got != want {
			t.Errorf("%q: got %v", name, got)
		}
	}
	for _, front := range []string{
		`{}`, `{"name":"s"}`, `{"name":"s","description":""}`, `{"name":"s","description":" "}`, `{"name":"s","description":["d"]}`,
		`{"name":["s"],"description":"d"}`, `{"name":"t","description":"d"}`, `{"name":null,"description":"d"}`, ``,
	} {
		if (skills.Skill{Name: "s", Front: json.RawMessage(front)}).Public() {
			t.Errorf("%s: it is public", front)
		}
	}
}

// A memory is Files without a disk, for many short tries.
type memory fstest.MapFS

func (m memory) Open(path string) (fs.File, error) {
	return fstest.MapFS(m).Open(filepath.ToSlash(path))
}

func (m memory) ReadDir(path string, _ int) ([]fs.FileInfo, error) {
	entries, err := fstest.MapFS(m).ReadDir(filepath.ToSlash(path))
	var out []fs.FileInfo
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		out = append(out, info)
	}
	return out, err
}

func FuzzFront(f *testing.F) {
	for _, seed := range []string{
		"name: a\ndescription: b", "a: b: c", "a: &x [*x]", "- a", "a: |\n  b", "a: [b", "\ta: b", "? a\n: b", "a: 'b\n", "a: !!str 1", "<<: *a", "a: {b: c}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, front string) {
		d, x := memory{"s/SKILL.md": {Data: []byte("---\n" + front + "\n---\nbody\n")}}, skills.New()
		set, err := x.Scan(t.Context(), d, []skills.Dir{{Path: "."}})
		if err != nil {
			t.Fatal(err)
		}
		if len(set.Skills)+len(set.Dropped) != 1 {
			t.Fatalf("got %+v, want a skill or a reason", set)
		}
		if len(set.Dropped) == 1 {
			return
		}
		s := set.Skills[0]
		var keys map[string]json.RawMessage
		if err := json.Unmarshal(s.Front, &keys); err != nil {
			t.Fatalf("front %s: %v", s.Front, err)
		}
		if len(s.Front) > 128<<10 {
			t.Errorf("%d bytes of front matter made %d", len(front), len(s.Front))
		}
		for _, text := range []string{s.Description, s.WhenToUse, s.Hint, s.Agent, s.Shell} {
			if strings.ContainsAny(text, "\x00\x1b\r") {
				t.Errorf("control characters in %q", text)
			}
		}
		body, err := x.Body(t.Context(), d, s)
		if err != nil && !errors.Is(err, skills.ErrNotText) || err == nil && !strings.HasSuffix("\n"+front+"\n---\nbody\n", body) && !strings.Contains(front, "\r") {
			t.Errorf("body %q, %v", body, err)
		}
	})
}
