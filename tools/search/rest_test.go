package search

import (
	"fmt"
	"path/filepath"
	"testing"
)

func TestTallyGroups(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   tally
		want string
	}{
		{tally{"src/net/http": 3, "src/net": 4, "src/os": 1, "src/gone": 0}, "[{src/net 7} {src/os 1}]"},
		{tally{"a/b/c": 2}, "[{a/b/c 2}]"}, {tally{".": 2, "a": 1}, "[{. 2} {a 1}]"}, {tally{"ab": 1, "a": 1}, "[{a 1} {ab 1}]"},
		{tally{"a/x": 1, "a": 5}, "[{a 5} {a/x 1}]"}, {tally{}, "[]"},
		{tally{"1": 1, "2": 1, "3": 1, "4": 1, "5": 1, "6": 9}, "[{6 9} {1 1} {2 1} {3 1} {4 1}]"},
	} {
		if got := fmt.Sprint(c.in.groups()); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

// What an answer leaves out is counted by directory, whatever the order and the page.
func TestRestByDirectory(t *testing.T) {
	t.Parallel()
	d := newDir(t, map[string]string{"a/1": "x\nx\n", "a/2": "x\n", "b/c/1": "x\n", "b/d/1": "x\nx\nx\n", "z": "x\n"})
	for _, c := range []struct {
		q    GrepQuery
		want string
	}{
		{GrepQuery{Mode: Lines, Limit: 2}, "[b 4 . 1 a 1]"}, {GrepQuery{Mode: Lines, Offset: 3, Limit: 2}, "[b 2 . 1]"},
		{GrepQuery{Mode: Count, Limit: 1}, "[b 2 . 1 a 1]"}, {GrepQuery{Mode: Lines}, "[]"}, {GrepQuery{Mode: FilesOnly, Limit: 4}, "[. 1]"},
	} {
		c.q.Pattern = "x"
		var got []string
		a := d.grep(t, c.q)
		for _, r := range a.Rest {
			rel, err := filepath.Rel(d.path, r.Path)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprintf("%s %d", rel, r.N))
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%+v: %v, want %s", c.q, got, c.want)
		}
	}
}
