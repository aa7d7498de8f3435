package tools

import (
	"bytes"
	"encoding/base64"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codehand/tools/catalog"
	"codehand/tools/permission"
)

// A person is asked about the host of a link that no rule allows, in each mode that asks about the web, and about none
// where the bytes are in the call.
func TestSaveFileAsksAboutHosts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.reading(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "\x00\x01<html>") })
	r.State.Catalog = []catalog.Entry{{Name: "web_fetch"}}
	saver := saveFile(r.engines.Web)
	ask := func(uri string) (targets []permission.Target, err error) {
		c, err := saver.Bind(r.State, []byte(`{"file_path":"a","uri":"`+uri+`"}`))
		return c.Targets, err
	}
	for uri, want := range map[string]string{
		"data:,x": "", "codehand://plan": "", "https://docs.example.com/x": "docs.example.com",
	} {
		targets, err := ask(uri)
		hosts := ""
		for _, x := range targets {
			if x.Kind == permission.Domain {
				hosts += x.Value
			}
		}
		if err != nil || hosts != want {
			t.Errorf("%s: asks about %q, want %q (%v)", uri, hosts, want, err)
		}
	}
	r.ok("save_file", `{"file_path":"a","uri":"http://docs.example.com/x"}`)
	if got, _ := os.ReadFile(filepath.Join(r.dir, "a")); string(got) != "\x00\x01<html>" {
		t.Errorf("saved %q", got)
	}
}

// What is larger than a file may be is refused before it is written, and what is as large is saved.
func TestSaveFileLimit(t *testing.T) {
	t.Parallel()
	for size, code := range map[int]string{saveFileMost: "", saveFileMost + 1: "TOO_LARGE"} {
		in := saveFileInput{URI: "data:;base64," + base64.StdEncoding.EncodeToString(make([]byte, size))}
		src, err := saveFileSource(in)
		switch {
		case code == "" && (err != nil || len(src.data) != size):
			t.Errorf("%d bytes: %v", size, err)
		case code != "" && (err == nil || !strings.HasPrefix(err.Error(), code)):
			t.Errorf("%d bytes: %v, want %s", size, err, code)
		}
	}
}

func TestReadDataURI(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]string{
		"data:,":                               "",
		"data:,a,b":                            "a,b",
		"data:text/plain;base64,aGk=":          "hi",
		"data:text/plain;charset=utf-8,h%69":   "hi",
		"DATA:;BASE64,aGk":                     "hi",
		"data:image/png;base64,-_8=":           "\xfb\xff",
		"data:image/png;base64,%2B%2F8%3D":     "\xfb\xff",
		"data:image/png;base64,aG\n k=\r\n":    "hi",
		"data:base64,aGk=":                     "hi",
		"data:text/plain;name=a%3Bb;base64,eA": "x",
	} {
		if got, _, err := readDataURI(uri); err != nil || string(got) != want {
			t.Errorf("%s: %q %v, want %q", uri, got, err, want)
		}
	}
	for _, uri := range []string{"data:", "data:text/plain", "data:;base64,a", "data:;base64,a*==", "data:,%", "data:;base64,%zz"} {
		if got, _, err := readDataURI(uri); err == nil {
			t.Errorf("%s: %q", uri, got)
		}
	}
}

// FuzzReadDataURI: whatever a model sends, reading it does not panic, and what was encoded comes back.
func FuzzReadDataURI(f *testing.F) {
	for _, seed := range []string{"", ",", ";base64,", ";base64,aGk=", "text/plain,%41", ";base64,%", "a;b=c;base64,aA"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, rest string) {
		_, _, _ = readDataURI("data:" + rest)
		raw := []byte(rest)
		for _, coding := range []*base64.Encoding{base64.StdEncoding, base64.RawURLEncoding} {
			got, _, err := readDataURI("data:a/b;base64," + coding.EncodeToString(raw))
			if err != nil || !bytes.Equal(got, raw) {
				t.Fatalf("%q became %q, %v", raw, got, err)
			}
		}
	})
}
