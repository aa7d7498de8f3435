package replaytest

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/txtar"

	"codehand/filestate/leaktest"
)

// HangAfter turns a hang into a failure. It is the only deadline of these tests.
const HangAfter = 60 * time.Second

// Scripts returns every session file.
func Scripts(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(Root(t), "testdata/sessions/*/*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no session files: %v", err)
	}
	return files
}

// Again returns the session files that are replayed once more, after TestSessions in the room server has replayed all in
// one process: one of each tool, and all with CODEHAND_TESTS=all.
func Again(t *testing.T) (files []string) {
	t.Helper()
	dir := ""
	for _, path := range Scripts(t) {
		if leaktest.All() || filepath.Dir(path) != dir {
			files, dir = append(files, path), filepath.Dir(path)
		}
	}
	return files
}

// ScriptName names a session file in a test: its tool and its point.
func ScriptName(path string) string {
	return filepath.Base(filepath.Dir(path)) + "/" + strings.TrimSuffix(filepath.Base(path), ".txtar")
}

// Play lays the files, runs the session and compares.
func Play(t *testing.T, file *Script, w *Wire, work, state, home string, update bool) {
	t.Helper()
	if err := file.lay(work); err != nil {
		t.Fatal(err)
	}
	names := newPlaceholders(map[string]string{work: "$WORK", state: "$STATE", home: "$HOME"})
	r := &replay{file: file, work: work, wire: w, names: names}
	got, err := r.run()
	if err != nil {
		t.Fatal(err)
	}
	r.compare(t, got, update)
}

// A Script is one session file; its form is in CONTRIBUTING.md.
type Script struct {
	path    string
	archive *txtar.Archive
	Client  string
	Modern  bool
	Fixed   bool // it runs in process only, over a fixed table of tools
	Config  map[string]string
	Lines   []string // commands of the session, `> …` and `$ …`
	Written bool     // the session section holds answers already
}

// ReadScript parses a session file.
func ReadScript(path string) (*Script, error) {
	a, err := txtar.ParseFile(path)
	if err != nil {
		return nil, err
	}
	f := &Script{path: path, archive: a, Client: "session-test",
		Config: map[string]string{"lsp.enabled": "false"}} // which servers this machine has is nobody's matter here
	for l := range strings.SplitSeq(string(a.Comment), "\n") {
		switch key, value, _ := strings.Cut(l, ": "); key {
		case "client":
			f.Client = value
		case "era":
			f.Modern = value == "modern"
		case "tools":
			f.Fixed = value == "fixed"
		case "config":
			k, v, ok := strings.Cut(value, "=")
			if !ok {
				return nil, fmt.Errorf("%s: config line without =", path)
			}
			f.Config[k] = v
		}
	}
	for _, file := range a.Files {
		if file.Name != "session" {
			continue
		}
		for l := range strings.SplitSeq(string(file.Data), "\n") {
			switch {
			case strings.HasPrefix(l, "> "), strings.HasPrefix(l, "$ "):
				f.Lines = append(f.Lines, l)
			case l != "":
				f.Written = true
			}
		}
	}
	if len(f.Lines) == 0 {
		return nil, fmt.Errorf("%s: no session section with calls", path)
	}
	return f, nil
}

// Cost counts the calls of the session, and the characters of the calls and of their answers. The workspace counts as
// the path of a common length.
func (f *Script) Cost() (calls, characters int) {
	for _, file := range f.archive.Files {
		if file.Name != "session" {
			continue
		}
		text := strings.ReplaceAll(string(file.Data), "$WORK", "/home/you/project")
		for l := range strings.Lines(text) {
			if strings.HasPrefix(l, "> ") {
				calls++
			}
			if !strings.HasPrefix(l, "$ ") {
				characters += utf8.RuneCountInString(l)
			}
		}
	}
	return calls, characters
}

// section returns a section's bytes; a name that ends in .hex holds hex digits.
func section(f txtar.File) (name string, data []byte, err error) {
	if plain, ok := strings.CutSuffix(f.Name, ".hex"); ok {
		data, err = hex.DecodeString(strings.Join(strings.Fields(string(f.Data)), ""))
		return plain, data, err
	}
	return f.Name, f.Data, nil
}

// lay writes the `in/` files below dir.
func (f *Script) lay(dir string) error {
	for _, file := range f.archive.Files {
		name, data, err := section(file)
		if err != nil {
			return err
		}
		rel, ok := strings.CutPrefix(name, "in/")
		if !ok {
			continue
		}
		p := filepath.Join(dir, filepath.FromSlash(rel))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(p, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// counted finds a total that is not whole: a search counts for 100 ms behind its answer, in which a machine may stand
// still. No session has files enough for that otherwise.
var counted = regexp.MustCompile(`(of|are) at least [0-9]`)

// A replay runs one session file against one connection.
type replay struct {
	file  *Script
	work  string // the workspace, canonical
	wire  *Wire
	names *placeholders
}

// run plays all commands and returns the session section as it should be.
func (r *replay) run() (string, error) {
	var out strings.Builder
	for i, l := range r.file.Lines {
		if i > 0 {
			out.WriteString("\n")
		}
		out.WriteString(l + "\n")
		if cmd, ok := strings.CutPrefix(l, "$ "); ok {
			if err := r.world(cmd); err != nil {
				return "", fmt.Errorf("%s: %w", l, err)
			}
			continue
		}
		name, args, _ := strings.Cut(strings.TrimPrefix(l, "> "), " ")
		if args == "" {
			args = "{}"
		}
		answer, err := r.wire.Call(name, json.RawMessage(r.names.fill(args)))
		for end := time.Now().Add(HangAfter); err == nil && name == "grep_search" && counted.MatchString(answer) && time.Now().Before(end); {
			answer, err = r.wire.Call(name, json.RawMessage(r.names.fill(args)))
		}
		if err != nil {
			return "", fmt.Errorf("%s: %w", l, err)
		}
		out.WriteString(escapeAnswer(r.names.hide(answer)))
	}
	return out.String(), nil
}

// escapeAnswer keeps a line of an answer from looking like a command.
func escapeAnswer(s string) string {
	lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, "> ") || strings.HasPrefix(l, "$ ") || strings.HasPrefix(l, "-- ") {
			lines[i] = `\` + l
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// world changes what is outside the server.
func (r *replay) world(cmd string) error {
	f := strings.Fields(cmd)
	if want := map[string]int{"chmod": 3, "link": 3, "mv": 3}[f[0]]; len(f) < max(want, 2) {
		return fmt.Errorf("%s wants more words", f[0])
	}
	at := func(i int) string {
		if i >= len(f) {
			return ""
		}
		p := r.names.fill(f[i])
		if filepath.IsAbs(p) {
			return p
		}
		return filepath.Join(r.work, p)
	}
	text := func() []byte {
		_, rest, _ := strings.Cut(cmd, " ")
		_, rest, _ = strings.Cut(rest, " ")
		if s, err := strconv.Unquote(rest); err == nil {
			return []byte(s)
		}
		return []byte(rest + "\n")
	}
	switch f[0] {
	case "write":
		return os.WriteFile(at(1), text(), 0o644)
	case "append":
		old, err := os.ReadFile(at(1))
		if err != nil {
			return err
		}
		return os.WriteFile(at(1), append(old, text()...), 0o644)
	case "rm":
		return os.RemoveAll(at(1))
	case "mv":
		return os.Rename(at(1), at(2))
	case "mkdir":
		return os.MkdirAll(at(1), 0o755)
	case "touch":
		now := time.Now().Add(time.Hour)
		return os.Chtimes(at(1), now, now)
	case "chmod":
		mode, err := strconv.ParseUint(f[1], 8, 32)
		if err != nil {
			return err
		}
		return os.Chmod(at(2), os.FileMode(mode))
	case "link": // link NAME TARGET; the target is taken as it is written
		return os.Symlink(r.names.fill(f[2]), at(1))
	case "fifo":
		return Mkfifo(at(1))
	case "wait": // wait JOB: until it is over
		look := time.NewTicker(20 * time.Millisecond)
		defer look.Stop()
		for limit := time.Now().Add(HangAfter); time.Now().Before(limit); <-look.C {
			jobs, err := r.wire.Request("resources/read", map[string]any{"uri": "codehand://jobs"}) // which tells no model
			if err != nil || !running(jobs.Result, r.names.fill(f[1])) {
				return err
			}
		}
		return errors.New("the job does not end")
	}
	return fmt.Errorf("no such command: %s (there are write, append, rm, mv, mkdir, touch, chmod, link, fifo, wait)", f[0])
}

// running says whether a job runs. jobs is what codehand://jobs holds.
func running(jobs json.RawMessage, id string) bool {
	var is struct{ Contents []struct{ Text string } }
	var list []struct{ ID, State string }
	if json.Unmarshal(jobs, &is) != nil || len(is.Contents) != 1 || json.Unmarshal([]byte(is.Contents[0].Text), &list) != nil {
		return false
	}
	for _, j := range list {
		if j.ID == id {
			return j.State == "running"
		}
	}
	return false
}

// placeholders stand for what differs from run to run; equal values get equal names.
type placeholders struct {
	fixed [][2]string // value, name: longest value first
	seen  map[string]string
	count map[string]int
}

func newPlaceholders(fixed map[string]string) *placeholders {
	p := &placeholders{seen: map[string]string{}, count: map[string]int{}}
	for value, name := range fixed {
		p.fixed = append(p.fixed, [2]string{value, name})
	}
	slices.SortFunc(p.fixed, func(a, b [2]string) int { return len(b[0]) - len(a[0]) })
	return p
}

// The values that differ. The first group is what is replaced.
var varying = []struct {
	Name string
	at   *regexp.Regexp
}{
	{"$VERSION", regexp.MustCompile(`\bversion ([0-9a-f]{12}p?)\b`)},
	{"$JOB", regexp.MustCompile(`\b(job_[a-z2-7]{12})\b`)},
	{"$PLAN", regexp.MustCompile(`/plans/([a-z]+-[a-z]+-[a-z]+\.md)\b`)},
	{"$SESSION", regexp.MustCompile(`/sessions/([0-9a-f]{16})/`)},
	{"$MARK", regexp.MustCompile(`(?m)^(?:! )?--- untrusted content ([0-9a-f]{16}) ---$`)},
	{"$ID", regexp.MustCompile(`/([a-z2-7]{16})-`)},
	{"$CELL", regexp.MustCompile(`(?:\bcell |<cell id=")([0-9a-f]{8})\b`)},
	{"$CHANGE", regexp.MustCompile(`\b([a-z0-9]{16}) (?:[0-9-]{10} )?[0-9:]{8} (?:[a-z]+_[a-z]+|kept) `)},
	{"$CHANGE", regexp.MustCompile(`\b(?:change|undo_change|takes back|then) ([a-z0-9]{16})\b`)},
	{"$TIME", regexp.MustCompile(`\$CHANGE[0-9]+ ((?:[0-9-]{10} )?[0-9:]{8}) `)},
	{"$TIME", regexp.MustCompile("`, ((?:[0-9-]{10} )?[0-9]{2}:[0-9]{2}:[0-9]{2}) to ")},
	{"$TIME", regexp.MustCompile(`\b(?:As of|since|last|session,|to) ((?:[0-9-]{10} )?[0-9]{2}:[0-9]{2}:[0-9]{2})\b`)},
	{"$MS", regexp.MustCompile(`(?:\b(?:for|after)|\$JOB[0-9]+ (?:finished: [a-zA-Z0-9 ]+|running),) ([0-9.,]+ (?:ms|s))\b`)},
}

// confinement is told once it is known, which depends on the machine and on what ran before.
var confinement = regexp.MustCompile(` Commands are (?:not )?confined to them\.|` +
	`\n\[commands here are confined to your directories\]`)

// hide replaces values by names.
func (p *placeholders) hide(s string) string {
	for _, f := range p.fixed {
		s = strings.ReplaceAll(s, f[0], f[1])
	}
	s = confinement.ReplaceAllString(s, "")
	for _, v := range varying {
		s = v.at.ReplaceAllStringFunc(s, func(m string) string {
			value := v.at.FindStringSubmatch(m)[1]
			if v.Name == "$MS" || v.Name == "$TIME" {
				return strings.Replace(m, value, v.Name, 1)
			}
			name, ok := p.seen[value]
			if !ok {
				p.count[v.Name]++
				name = v.Name + strconv.Itoa(p.count[v.Name])
				p.seen[value] = name
			}
			return strings.Replace(m, value, name, 1)
		})
	}
	return s
}

// fill replaces names by values.
func (p *placeholders) fill(s string) string {
	for _, value := range slices.SortedFunc(maps.Keys(p.seen), func(a, b string) int { return len(p.seen[b]) - len(p.seen[a]) }) {
		s = strings.ReplaceAll(s, p.seen[value], value)
	}
	for _, f := range slices.Backward(p.fixed) {
		s = strings.ReplaceAll(s, f[1], f[0])
	}
	return s
}

// compare checks a finished replay against its file, or rewrites the file.
func (r *replay) compare(t *testing.T, got string, update bool) {
	t.Helper()
	want := txtar.Archive{Comment: r.file.archive.Comment}
	after := map[string][]byte{}
	err := filepath.WalkDir(r.work, func(p string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(r.work, p)
		if err != nil {
			return err
		}
		b, err := os.ReadFile(p)
		after[filepath.ToSlash(rel)] = append([]byte{}, b...) // never nil: the file is there
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	before := map[string][]byte{}
	for _, f := range r.file.archive.Files {
		name, data, err := section(f)
		if err != nil {
			t.Fatal(err)
		}
		switch rel, out := strings.CutPrefix(name, "out/"); {
		case f.Name == "session":
			want.Files = append(want.Files, txtar.File{Name: "session", Data: []byte(got)})
		case out:
			listed[rel] = true
		case strings.HasPrefix(name, "gone/"):
		case strings.HasPrefix(name, webDir):
			want.Files = append(want.Files, f)
		default:
			before[strings.TrimPrefix(name, "in/")] = data
			want.Files = append(want.Files, f)
		}
	}
	for _, rel := range slices.Sorted(maps.Keys(after)) {
		if b, ok := before[rel]; listed[rel] || !ok || !bytes.Equal(b, after[rel]) {
			want.Files = append(want.Files, outFile(rel, after[rel]))
		}
	}
	for _, rel := range slices.Sorted(maps.Keys(before)) {
		if after[rel] == nil {
			want.Files = append(want.Files, txtar.File{Name: "gone/" + rel})
		}
	}
	rendered := txtar.Format(&want)
	if update || !r.file.Written && os.Getenv("CI") == "" {
		if err := os.WriteFile(r.file.path, rendered, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if old := txtar.Format(r.file.archive); !bytes.Equal(old, rendered) {
		t.Errorf("%s differs.\ngot:\n%s\nwant:\n%s\nIf the new answers are better: go test ./server -update, and read the diff.", r.file.path, rendered, old)
	}
}

// outFile is a section that holds data whatever its bytes are.
func outFile(rel string, data []byte) txtar.File {
	if len(data) > 0 && (data[len(data)-1] != '\n' || bytes.ContainsAny(data, "\r\x00") || bytes.HasPrefix(data, []byte("-- ")) || bytes.Contains(data, []byte("\n-- ")) || !utf8.Valid(data)) {
		return txtar.File{Name: "out/" + rel + ".hex", Data: []byte(hex.EncodeToString(data) + "\n")}
	}
	return txtar.File{Name: "out/" + rel, Data: data}
}
