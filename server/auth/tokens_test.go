package auth

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// tokenFile is a tokens file that is not there yet.
func tokenFile(t *testing.T) *TokenFile {
	t.Helper()
	return OpenTokenFile(filepath.Join(t.TempDir(), "tokens.jsonl"))
}

// add makes a token.
func (f *TokenFile) add(t *testing.T, token Token) (Token, string) {
	t.Helper()
	made, text, err := f.New(token)
	if err != nil {
		t.Fatal(err)
	}
	return made, text
}

func (f *TokenFile) read(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(f.path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// write replaces the file by hand, as an editor does.
func (f *TokenFile) write(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(f.path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// names lists the directory of the file.
func (f *TokenFile) names(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(f.path))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestNewToken(t *testing.T) {
	t.Parallel()
	onUnix(t)
	f := tokenFile(t)
	if tokens, err := f.List(); err != nil || len(tokens) != 0 {
		t.Fatalf("a file that is not there has %v (%v)", tokens, err)
	}
	before := time.Now().Add(-time.Second)
	expires := time.Now().Add(time.Hour)
	made, text, err := f.New(Token{Principal: "dev-7", Expires: expires, Note: "a <b>", Values: Values{
		Roots: []string{"/srv/{principal}"}, Mode: new("plan"), MaxMode: new("auto"), Profile: new("readonly"), Allow: []string{"Bash(a && b)"}, Deny: []string{},
		Scopes: []string{"mcp:read"}, Admin: new(true), Quota: map[string]string{"burst": "3", "bytes_in_per_minute": "1MiB"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^chd_[a-z2-7]{10}_[A-Za-z0-9_-]{43}$`).MatchString(text) {
		t.Errorf("the token is %q", text)
	}
	if id, ok := parseToken(text); !ok || id != made.ID {
		t.Errorf("%q is read as id %q, made was %q", text, id, made.ID)
	}
	if made.Created.Before(before) || !made.Expires.Equal(expires.Truncate(time.Second)) {
		t.Errorf("got %+v", made)
	}
	if strings.Contains(f.read(t), text[len("chd_")+idLength+1:]) {
		t.Error("the secret is in the file")
	}
	if info, err := os.Stat(f.path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v (%v)", info.Mode(), err)
	}
	second, other := f.add(t, Token{Principal: "Ann"})
	if second.ID == made.ID || text == other {
		t.Error("two tokens are the same")
	}
	tokens, err := f.List()
	if err != nil || len(tokens) != 2 {
		t.Fatalf("got %v (%v)", tokens, err)
	}
	got := tokens[0]
	if got.ID != made.ID || got.Principal != "dev-7" || got.Note != "a <b>" || !got.Expires.Equal(made.Expires) || !slices.Equal(got.Values.Allow, []string{"Bash(a && b)"}) ||
		got.Values.Deny == nil || *got.Values.Mode != "plan" || *got.Values.MaxMode != "auto" || !*got.Values.Admin || got.Values.Quota["bytes_in_per_minute"] != "1MiB" || got.Values.Quota["burst"] != "3" {
		t.Errorf("got %+v", got)
	}
	if got := tokens[1]; got.ID != second.ID || !got.Expires.IsZero() || got.Values.Roots != nil || got.Values.Quota != nil || got.Values.Admin != nil {
		t.Errorf("got %+v", got)
	}
	if got, want := f.names(t), []string{"tokens.jsonl", "tokens.jsonl.lock"}; !slices.Equal(got, want) {
		t.Errorf("the directory has %q, want %q", got, want)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	f := tokenFile(t)
	for name, token := range map[string]Token{
		"no principal":    {},
		"bad principal":   {Principal: "a\n"},
		"enabled":         {Principal: "a", Values: Values{Enabled: new(true)}},
		"seed":            {Principal: "a", Values: Values{Seed: new("/a")}},
		"no roots":        {Principal: "a", Values: Values{Roots: []string{}}},
		"bad mode":        {Principal: "a", Values: Values{Mode: new("x")}},
		"bad note":        {Principal: "a", Note: "\xff"},
		"long note":       {Principal: "a", Note: strings.Repeat("x", maxLine/2)},
		"far future":      {Principal: "a", Expires: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)},
		"negative quota":  {Principal: "a", Values: Values{Quota: map[string]string{"burst": "-1"}}},
		"a rule of bytes": {Principal: "a", Values: Values{Deny: []string{"\xff"}}},
	} {
		if made, text, err := f.New(token); err == nil || text != "" || made.ID != "" {
			t.Errorf("%s: got %+v, %q, %v", name, made, text, err)
		}
	}
	if _, err := os.Stat(f.path); !os.IsNotExist(err) {
		t.Errorf("a refused token makes a file: %v", err)
	}
}

func TestRevoke(t *testing.T) {
	t.Parallel()
	onUnix(t)
	f := tokenFile(t)
	a, _ := f.add(t, Token{Principal: "ann"})
	b, _ := f.add(t, Token{Principal: "bob"})
	byHand := strings.Replace(full, `"principal":"dev-7"`, `"principal": "ann" `, 1) // blanks that we would not write
	f.write(t, f.read(t)+"\n"+byHand+"\n")
	before := f.read(t)
	if none, err := f.Revoke(func(Token) bool { return false }); err != nil || len(none) != 0 || f.read(t) != before {
		t.Errorf("nobody is meant, and %v are revoked (%v)", none, err)
	}
	gone, err := f.Revoke(func(t Token) bool { return t.Principal == "ann" })
	if err != nil || len(gone) != 2 || gone[0].ID != a.ID || gone[1].ID != "k3v7q2mzpa" || gone[0].Revoked.IsZero() || gone[0].State(time.Now()) != "revoked" {
		t.Fatalf("got %+v (%v)", gone, err)
	}
	tokens, err := f.List()
	if err != nil || len(tokens) != 3 || tokens[0].Revoked.IsZero() || !tokens[1].Revoked.IsZero() || tokens[2].Revoked.IsZero() {
		t.Fatalf("got %+v (%v)", tokens, err)
	}
	// Nothing but `revoked` changes, and the other lines not at all.
	lines, old := strings.Split(f.read(t), "\n"), strings.Split(before, "\n")
	revoked := `"revoked":"` + gone[1].Revoked.Format(time.RFC3339) + `"`
	if want := strings.Replace(strings.Replace(full, `"principal":"dev-7"`, `"principal":"ann"`, 1), `"revoked":""`, revoked, 1); lines[2] != want {
		t.Errorf("got\n%s, want\n%s", lines[2], want)
	}
	if lines[1] != old[1] || !strings.Contains(lines[1], b.ID) {
		t.Errorf("got\n%s, want\n%s", lines[1], old[1])
	}
	if again, err := f.Revoke(func(Token) bool { return true }); err != nil || len(again) != 1 || again[0].ID != b.ID {
		t.Errorf("once more: %+v (%v)", again, err)
	}
}

func TestTokenState(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for want, token := range map[string]Token{
		"active": {Expires: now.Add(1)}, "expired": {Expires: now}, "revoked": {Expires: now, Revoked: now.Add(time.Hour)},
	} {
		if got := token.State(now); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := (Token{}).State(now); got != "active" {
		t.Errorf("a token without end is %s", got)
	}
}

// A file that is not as it must be is refused with its place, and no command changes it.
func TestTokenFileRefused(t *testing.T) {
	t.Parallel()
	onUnix(t)
	for name, c := range map[string]struct {
		text string
		do   func(path string) error
		want string // with the path in front
	}{
		"broken line":   {text: full + "\n\n{\n", want: ":3: is not valid JSON"},
		"typo":          {text: strings.Replace(full, "scopes", "scope", 1), want: `:1: unknown field "scope"`},
		"newer":         {text: strings.Replace(full, `"v":1`, `"v":2`, 1), want: ":1: v is 2"},
		"twice":         {text: full + "\n" + full + "\n", want: ":2: id k3v7q2mzpa is also in line 1"},
		"long line":     {text: full + "\n" + strings.Repeat(" ", maxLine) + full, want: ":2: the line is longer"},
		"group":         {text: full, do: func(path string) error { return os.Chmod(path, 0o640) }, want: ": has mode 0640, so others may read it; run chmod 600 on it"},
		"world":         {text: full, do: func(path string) error { return os.Chmod(path, 0o604) }, want: ": has mode 0604"},
		"directory":     {do: func(path string) error { return os.Mkdir(path, 0o700) }, want: ": is not a file"},
		"dangling link": {do: func(path string) error { return os.Symlink(path+"x", path) }},
	} {
		f := tokenFile(t)
		if c.text != "" {
			f.write(t, c.text)
		}
		if c.do != nil {
			if err := c.do(f.path); err != nil {
				t.Fatal(err)
			}
		}
		_, listed := f.List()
		_, _, added := f.New(Token{Principal: "a"})
		_, revoked := f.Revoke(func(Token) bool { return true })
		if c.want == "" {
			if added == nil {
				t.Errorf("%s: is written through", name)
			}
			continue
		}
		for _, err := range []error{listed, added, revoked} {
			if err == nil || !strings.Contains(err.Error(), f.path+c.want) {
				t.Errorf("%s: got %v, want %s%s", name, err, f.path, c.want)
			}
		}
		if c.text != "" && f.read(t) != c.text {
			t.Errorf("%s: the file was changed", name)
		}
	}
}

// A link to a file of ours is read, as those of mounted secrets are, and not written, since the link would be replaced.
func TestTokenFileLink(t *testing.T) {
	t.Parallel()
	onUnix(t)
	real := tokenFile(t)
	real.add(t, Token{Principal: "a"})
	f := tokenFile(t)
	if err := os.Symlink(real.path, f.path); err != nil {
		t.Fatal(err)
	}
	if tokens, err := f.List(); err != nil || len(tokens) != 1 {
		t.Errorf("got %v (%v)", tokens, err)
	}
	if _, _, err := f.New(Token{Principal: "b"}); err == nil || !strings.Contains(err.Error(), "link") {
		t.Errorf("writing through a link: %v", err)
	}
	if info, err := os.Lstat(f.path); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v (%v)", info, err)
	}
	// Nor is a link in place of the lock: it would make a file wherever it points to.
	locked, away := tokenFile(t), filepath.Join(t.TempDir(), "away")
	if err := os.Symlink(away, locked.path+".lock"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := locked.New(Token{Principal: "b"}); err == nil || !strings.Contains(err.Error(), "link") {
		t.Errorf("a lock that is a link: %v", err)
	}
	if _, err := os.Lstat(away); !os.IsNotExist(err) {
		t.Errorf("the lock's link was followed: %v", err)
	}
}

// A command that does not get its turn says so, and changes nothing.
func TestLockIsHeld(t *testing.T) {
	t.Parallel()
	f := tokenFile(t)
	f.add(t, Token{Principal: "a"})
	before := f.read(t)
	unlock, err := lockBeside(f.path, lockPatience)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		_, _, err := f.New(Token{Principal: "b"})
		if err == nil || !strings.Contains(err.Error(), "another process has held it for 10s") || time.Since(start) != lockPatience {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
	})
	unlock()
	if f.read(t) != before {
		t.Error("the file was written without the lock")
	}
	f.add(t, Token{Principal: "b"})
}

// What a killed writer left behind goes away with the next write.
func TestLeftOversAreRemoved(t *testing.T) {
	t.Parallel()
	f := tokenFile(t)
	left, other := filepath.Join(filepath.Dir(f.path), ".tokens.jsonl-123"), filepath.Join(filepath.Dir(f.path), ".tokens.jsonl.bak-1")
	for _, name := range []string{left, other} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f.add(t, Token{Principal: "a"})
	if got, want := f.names(t), []string{".tokens.jsonl.bak-1", "tokens.jsonl", "tokens.jsonl.lock"}; !slices.Equal(got, want) {
		t.Errorf("the directory has %q, want %q", got, want)
	}
}

// writerMark makes the test binary a writer.
const writerMark = "codehand-test-writer"

const writes = 5

func writeSome(path string) int {
	late := time.Now().Add(hang)
	for i := range writes {
		_, _, err := OpenTokenFile(path).New(Token{Principal: fmt.Sprintf("p%d", i)})
		for err != nil && strings.Contains(err.Error(), "another process has held it") && time.Now().Before(late) { // a slow disk; nothing was written
			_, _, err = OpenTokenFile(path).New(Token{Principal: fmt.Sprintf("p%d", i)})
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return 0
}

// Writers of several processes and goroutines lose nothing, and a reader beside them always sees whole lines.
func TestWritersTakeTurns(t *testing.T) {
	t.Parallel()
	f := tokenFile(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	for range 3 {
		running.Go(func() {
			var stderr bytes.Buffer
			cmd := exec.Command(exe, writerMark, f.path)
			cmd.Stderr = &stderr
			if err := cmd.Run(); err != nil {
				t.Errorf("%v: %s", err, stderr.String())
			}
		})
		running.Go(func() {
			if writeSome(f.path) != 0 {
				t.Error("a writer of this process gave up")
			}
		})
	}
	done := make(chan struct{})
	go func() { running.Wait(); close(done) }()
	for reading := true; reading; {
		select {
		case <-done:
			reading = false
		default:
			if _, err := f.List(); err != nil {
				t.Error(err)
				reading = false
			}
		}
	}
	<-done
	tokens, err := f.List()
	if err != nil || len(tokens) != 6*writes {
		t.Errorf("got %d tokens (%v), want %d", len(tokens), err, 6*writes)
	}
}
