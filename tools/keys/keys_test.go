package keys

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

const planted = "plantedkey0123456789"

func TestRead(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Parallel()
	env := map[string]string{"SEARCH_KEY": planted, "EMPTY_KEY": " \n", "TWO_KEY": planted + "\r\nX-Other: 1"}
	for name, c := range map[string]struct {
		source Source
		want   string
		fails  string // part of the error; "": there is none
		unix   bool
	}{
		"none":          {Source{}, "", "", false},
		"variable":      {Source{Env: "SEARCH_KEY"}, planted, "", false},
		"not set":       {Source{Env: "NO_SUCH_KEY"}, "", "NO_SUCH_KEY is empty or not set", false},
		"blank":         {Source{Env: "EMPTY_KEY"}, "", "is empty or not set", false},
		"second header": {Source{Env: "TWO_KEY"}, "", "characters that no key has", false},
		"both":          {Source{Env: "SEARCH_KEY", File: "/x"}, "", "two places", false},
		"file":          {Source{File: file("good", planted+"\n", 0o600)}, planted, "", false},
		"read only":     {Source{File: file("ro", planted, 0o400)}, planted, "", false},
		"open to all":   {Source{File: file("open", planted, 0o644)}, "", "chmod 600", true},
		"open to group": {Source{File: file("group", planted, 0o640)}, "", "chmod 600", true},
		"empty":         {Source{File: file("empty", "", 0o600)}, "", "is empty", false},
		"long":          {Source{File: file("long", strings.Repeat("k", maxKey+1), 0o600)}, "", "more than", false},
		"missing":       {Source{File: filepath.Join(dir, "missing")}, "", "cannot be read", false},
		"directory":     {Source{File: dir}, "", "no regular file", false},
		"device":        {Source{File: os.DevNull}, "", "no regular file", true},
	} {
		set := c.source.Env+c.source.File != ""
		if c.source.Env != "" {
			c.source.Lookup = func(name string) string { return env[name] }
		}
		got, err := c.source.Read()
		if c.unix && runtime.GOOS == "windows" {
			continue
		}
		if got != c.want || (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s: %q, %v; want %q, %q", name, got, err, c.want, c.fails)
		}
		if err != nil && strings.Contains(err.Error(), planted) {
			t.Errorf("%s: the error tells the key: %v", name, err)
		}
		if c.source.Set() != set {
			t.Errorf("%s: Set is %v", name, c.source.Set())
		}
	}
}

func TestRedact(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]string{
		{"a " + planted + " b", planted, "a [masked] b"},
		{"?k=a%2Fb%3D", "a/b=", "?k=[masked]"},
		{"nothing", planted, "nothing"},
		{"nothing", "", "nothing"},
	} {
		if got := Redact(c[0], c[1]); got != c[2] {
			t.Errorf("%q without %q: %q, want %q", c[0], c[1], got, c[2])
		}
	}
}
