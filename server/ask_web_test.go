package server

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"codehand/server/replaytest"
)

// TestAskNewHost: documents said that each new host of web_fetch is a question. By default it is none of codehand's, and
// many clients call a tool that is published as read-only without a dialog; what they say of it holds for each setting.
func TestAskNewHost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set   []string
		asked int
	}{
		"default": {nil, 0},
		"a rule":  {[]string{"permissions.ask", "WebFetch"}, 1},
		"deny":    {[]string{"permissions.ask_fallback", "deny"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			settings := map[string]string{"web.proxy": "http://127.0.0.1:1", "tools.deferral": "off"} // nothing leaves this machine
			for i := 0; i < len(c.set); i += 2 {
				settings[c.set[i]] = c.set[i+1]
			}
			f := start(t, setup{settings: settings, silent: true})
			x := replaytest.OnPipe(t, f.Wire, false, replaytest.Declared)
			a := x.Call("web_fetch", `{"url":"https://new.example.com/"}`, func(string) string { return replaytest.SayOnce })
			if a.Asked != c.asked || !strings.HasPrefix(a.Text, "FETCH_FAILED: ") {
				t.Errorf("asked %d times, want %d: %s", a.Asked, c.asked, a.Text)
			}
			var list struct {
				Result struct {
					Tools []struct {
						Name        string
						Annotations struct{ ReadOnlyHint bool }
					}
				}
			}
			must(t, json.Unmarshal(x.Request(`{"jsonrpc":"2.0","id":"list","method":"tools/list"}`)(), &list))
			readOnly := false
			for _, l := range list.Result.Tools {
				readOnly = readOnly || l.Name == "web_fetch" && l.Annotations.ReadOnlyHint
			}
			if !readOnly {
				t.Error("it is not published as read-only, as docs/web.md says")
			}
		})
	}
	page, err := os.ReadFile("../docs/web.md")
	must(t, err)
	said := strings.Join(strings.Fields(string(page)), " ")
	for _, want := range []string{
		"by default codehand asks nothing itself", "The tool is published as read-only",
		`ask = ["WebFetch"]` + "` makes every host a question", `permissions.ask_fallback = "deny"` + "` each new one",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("docs/web.md does not say %q", want)
		}
	}
}
