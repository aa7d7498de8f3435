package server

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// TestWire replays the raw transcripts of testdata/wire. The client section is what a client writes; a line `<` waits
// for one line of the server, and the end of the section is the end of the input. The server section is all that the
// server wrote, with the tools of fixedTools. `$WORK` is the workspace, and `$REPEAT(n,x)` is n times x.
func TestWire(t *testing.T) {
	files, err := filepath.Glob("../testdata/wire/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			t.Parallel()
			a, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var client, want string
			for _, f := range a.Files {
				switch f.Name {
				case "client":
					client = string(f.Data)
				case "server":
					want = string(f.Data)
				}
			}
			got := converse(t, client)
			if got == want {
				return
			}
			if *update || want == "" && os.Getenv("CI") == "" {
				a.Files = []txtar.File{{Name: "client", Data: []byte(client)}, {Name: "server", Data: []byte(got)}}
				if err := os.WriteFile(path, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			t.Errorf("got:\n%s\nwant:\n%s\nIf the new lines are right: go test ./server -update, and read the diff.", got, want)
		})
	}
}

var (
	wireMillis  = regexp.MustCompile(`"codehand/ms":[0-9]+`)
	wireRef     = regexp.MustCompile(`\(ref [A-Z2-7]{8}\)`)
	wireVersion = regexp.MustCompile(`"codehand/version":"[0-9a-f]{12}p?"`)
)

// converse plays the client's lines and returns the server's.
func converse(t *testing.T, client string) string {
	f := start(t, setup{silent: true, make: fixedTools})
	if err := os.WriteFile(filepath.Join(f.work, "a.txt"), []byte("one\ntwo\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	take := func() bool {
		l, err := f.Receive()
		for err == nil && strings.Contains(string(l), `"notifications/progress"`) { // what a call is about to do
			l, err = f.Receive()
		}
		if err == io.EOF {
			return false
		}
		if err != nil {
			t.Fatal(err)
		}
		s := strings.ReplaceAll(string(l), f.work, "$WORK")
		s = wireMillis.ReplaceAllString(s, `"codehand/ms":0`)
		s = wireRef.ReplaceAllString(s, "(ref XXXXXXXX)")
		s = wireVersion.ReplaceAllString(s, `"codehand/version":"V"`)
		got.WriteString(s)
		return true
	}
	for l := range strings.SplitSeq(strings.TrimSuffix(client, "\n"), "\n") {
		switch {
		case l == "<":
			if !take() {
				t.Fatalf("the server ended after:\n%s", got.String())
			}
		default:
			l = strings.ReplaceAll(l, "$WORK", f.work)
			l = repeat.ReplaceAllStringFunc(l, expand)
			if err := f.Send(l); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = f.In.Close()
	for take() {
	}
	return got.String()
}

var repeat = regexp.MustCompile(`\$REPEAT\((\d+),([^)]+)\)`)

func expand(s string) string {
	m := repeat.FindStringSubmatch(s)
	n := 0
	for _, d := range m[1] {
		n = n*10 + int(d-'0')
	}
	return strings.Repeat(m[2], n)
}
