package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
)

func TestBelow(t *testing.T) {
	t.Parallel()
	dir := leaktest.Dir(t)
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		os.MkdirAll(in("d/e/f"), 0o700), os.MkdirAll(in("other"), 0o700), os.Mkdir(in("full"), 0o700),
		os.WriteFile(in("d/a"), nil, 0o600), os.WriteFile(in("d/e/f/b"), nil, 0o600), os.WriteFile(in("other/c"), nil, 0o600),
		os.Symlink("../../other", in("d/e/down")), os.Symlink("../..", in("d/e/round")), os.Symlink("/etc", in("d/e/out")), os.Symlink("gone", in("d/gone")),
		os.Symlink("../other/c", in("d/file")), os.Link(in("d/a"), in("other/hard")), os.Symlink("d", in("link")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range 20 {
		if err := os.WriteFile(in(fmt.Sprintf("full/%d", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	space, err := Open([]string{dir}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer space.Close()
	all := func(string, bool) bool { return true }
	for _, c := range []struct {
		path    string
		reaches func(string, bool) bool
		want    string // relative path = other names
	}{
		{"d/e/f", all, "b=d/e/f/b"},
		{"d/a", all, ""},
		{"nothing", all, ""},
		{"/etc", all, ""},
		{"other", all, "c=other/c hard=other/hard,d/a,other/hard"},
		{"link", func(rel string, dir bool) bool { return !dir }, "a=d/a,d/a,other/hard file=other/c"},
		{"d", func(rel string, dir bool) bool { return rel == "e" || strings.HasPrefix(rel, "e/down") }, "e/down/c=other/c e/down/hard=other/hard,d/a,other/hard"},
	} {
		var got []string
		whole := space.Below(in(strings.TrimPrefix(c.path, dir)), c.reaches, func(rel string, names []string) bool {
			for i := range names {
				names[i] = strings.TrimPrefix(names[i], dir+"/")
			}
			slices.Sort(names[1:])
			got = append(got, rel+"="+strings.Join(names, ","))
			return true
		})
		slices.Sort(got)
		if !whole || maxLinkEntries > 0 && strings.Join(got, " ") != c.want {
			t.Errorf("%s: got %q, %v, want %q", c.path, got, whole, c.want)
		}
	}
	calls := 0
	if whole := space.Below(in("full"), all, func(string, []string) bool { calls++; return calls < 3 }); calls != 3 || !whole {
		t.Errorf("it was told to stop after 3 files, and told of %d", calls)
	}
	// Links that lead round end.
	calls = 0
	if space.Below(in("d"), all, func(string, []string) bool { calls++; return true }); calls < 4 || calls > 60 {
		t.Errorf("%d files in a directory with links that lead round", calls)
	}
}
