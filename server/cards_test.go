package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"codehand/server/cards"
	"codehand/server/replaytest"
)

// TestCards: a client that shows cards is told which results are drawn, may call what their buttons call, and reads the
// page; any other is sent the same as before, to the byte.
func TestCards(t *testing.T) {
	t.Parallel()
	for _, modern := range []bool{false, true} {
		t.Run(fmt.Sprintf("modern=%t", modern), func(t *testing.T) {
			t.Parallel()
			list := func(caps map[string]any) (entries map[string]string, f *fixture) {
				f = start(t, setup{modern: modern, silent: true, client: "chat"})
				f.Caps = caps
				must(t, f.Hello())
				_, all, raw := replaytest.ToldTools(t, f.Wire)
				entries = map[string]string{}
				for i, name := range replaytest.NamesOf(all) {
					entries[name] = string(raw[i])
				}
				return entries, f
			}
			ui := func(types ...string) map[string]any {
				return map[string]any{"extensions": map[string]any{"io.modelcontextprotocol/ui": map[string]any{"mimeTypes": types}}}
			}
			plain, _ := list(nil)
			for _, other := range []map[string]any{ui("text/html"), {"extensions": map[string]any{"io.modelcontextprotocol/ui": 1}}} {
				if got, _ := list(other); fmt.Sprint(got) != fmt.Sprint(plain) {
					t.Errorf("with %v the list is another one", other)
				}
			}
			drawn, f := list(ui(cards.MIMEType))
			for _, name := range []string{"edit_file", "multi_edit", "write_file", "run_shell", "undo_change"} {
				var entry struct {
					Meta struct{ UI struct{ ResourceURI string } } `json:"_meta"`
				}
				must(t, json.Unmarshal([]byte(drawn[name]), &entry))
				if entry.Meta.UI.ResourceURI != cards.URI {
					t.Errorf("%s is not drawn: %s", name, drawn[name])
				}
				delete(drawn, name)
				delete(plain, name)
			}
			for name, entry := range drawn {
				if plain[name] != entry {
					t.Errorf("%s changed, too: %s", name, entry)
				}
			}

			r, err := f.Request("resources/read", map[string]any{"uri": cards.URI})
			must(t, err)
			var page struct {
				Contents []struct {
					MIMEType, Text string
					Meta           struct{ UI struct{ CSP map[string]any } } `json:"_meta"`
				}
			}
			must(t, json.Unmarshal(r.Result, &page))
			if c := page.Contents; len(c) != 1 || c[0].MIMEType != cards.MIMEType || c[0].Text != cards.HTML || len(c[0].Meta.UI.CSP) > 0 {
				t.Errorf("the page is %.300s", r.Result)
			}
			if r, err = f.Request("resources/list", nil); err != nil || strings.Contains(string(r.Result), "ui://") {
				t.Errorf("the list of resources has the page: %s, %v", r.Result, err)
			}
		})
	}
}
