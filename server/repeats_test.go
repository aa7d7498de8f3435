package server

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"codehand/server/auth"
	"codehand/server/replaytest"
)

// TestRepeatedOverHTTP: an edit that arrives again is made once, and answered as the first time, if its client gave it an
// id. In the legacy era a proxy may send it again while the first one runs, under the same number.
func TestRepeatedOverHTTP(t *testing.T) {
	t.Parallel()
	for _, modern := range []bool{false, true} {
		t.Run(fmt.Sprint("modern ", modern), func(t *testing.T) {
			t.Parallel()
			x := serveHTTP(t, siteSetup{})
			c, file, edit := x.readFirst(t)
			c.Modern = modern
			const id = inSession + `,"claudecode/toolUseId":"toolu_01Edit"`
			first, failed := c.Call("2", "edit_file", edit, id).Text()
			if failed {
				t.Fatal(first)
			}
			for _, number := range []string{"2", "3"} {
				r := c.Call(number, "edit_file", edit, id)
				if text, failed := r.Text(); failed || text != first || !strings.Contains(r.Answer, `"replayed":true`) {
					t.Errorf("again: %s", r.Answer)
				}
			}
			if b, err := os.ReadFile(file); err != nil || string(b) != "one more\n" {
				t.Errorf("the file holds %q, %v", b, err)
			}
			other := strings.Replace(edit, "one more", "two", 1)
			if text, failed := c.Call("4", "edit_file", other, id).Text(); !failed || !strings.HasPrefix(text, "INPUT_INVALID: Nothing was done") {
				t.Errorf("with other arguments: %s", text)
			}
			// an id that a model counted names no call, and neither does one of another session
			for _, meta := range []string{inSession + `,"callId":"call_0"`, inSession} {
				if text, failed := c.Call("5", "edit_file", edit, meta).Text(); failed || strings.Contains(text, "Already") {
					t.Errorf("without an id: %s", text)
				}
			}
			if text, failed := c.Call("6", "edit_file", edit, `,"codehand/session":"session-2","claudecode/toolUseId":"toolu_01Edit"`).Text(); !failed || !strings.HasPrefix(text, "FILE_NOT_READ") {
				t.Errorf("in another session: %s", text)
			}
			if b, err := os.ReadFile(file); err != nil || string(b) != "one more more more\n" {
				t.Errorf("at the end the file holds %q, %v", b, err)
			}
		})
	}
}

// BenchmarkRepeatable is what an id costs an edit over HTTP, with a Store on the disk.
func BenchmarkRepeatable(b *testing.B) {
	for name, id := range map[string]string{"plain": "", "with an id": `"claudecode/toolUseId":"toolu_01%dx"`} {
		b.Run(name, func(b *testing.B) {
			mode := "bypassPermissions"
			quota := map[string]string{}
			for _, q := range []string{"calls_per_minute", "burst", "requests_per_minute", "bytes_in_per_minute", "bytes_out_per_minute"} {
				quota[q] = "0"
			}
			x := serveHTTP(b, siteSetup{
				principals: []string{"bench"}, values: map[string]auth.Values{"bench": {Mode: &mode, MaxMode: &mode, Quota: quota}},
				settings: map[string]string{"sandbox.policy": "off", "write.durability": "fast"},
			})
			c := x.client("bench").Hello()
			if text, failed := c.Call("1", "write_file", `{"file_path":"a.txt","content":"one\n"}`, "").Text(); failed {
				b.Fatal(text)
			}
			words := [2]string{"one", "two"}
			n := 1
			for b.Loop() {
				meta := ""
				if id != "" {
					meta = fmt.Sprintf(id, n)
				}
				args := fmt.Sprintf(`{"file_path":"a.txt","old_string":%q,"new_string":%q}`, words[(n+1)%2], words[n%2])
				n++
				r := c.Do(c.Request(b.Context(), http.MethodPost, c.URL, replaytest.CallLine(n, "edit_file", args, meta)))
				if text, failed := r.Text(); failed {
					b.Fatal(text)
				}
			}
		})
	}
}
