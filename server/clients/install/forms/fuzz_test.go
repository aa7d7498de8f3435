package forms

import (
	"bytes"
	"testing"
)

// FuzzMerge: whatever a file holds, an entry is merged into it so that nothing else in it changes, or it is refused; and
// merged once more it changes nothing.
func FuzzMerge(f *testing.F) {
	for i, s := range snippets {
		for _, data := range []string{"", "{}", s.text, "a: 1\n", "a = 1\n", "extensions:\n  x: {}\n", "# c",
			"mcpServers:\n- name: x\n", "[mcp_servers.codehand]\nx = 1\n", "{\"servers\": {\"codehand\": {}, }, // c\n}"} {
			f.Add(uint8(i), []byte(data))
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		s := snippets[int(which)%len(snippets)]
		form := For(s.file)
		tree, err := form.Decode(data)
		if err != nil {
			return
		}
		if _, ok := tree.(map[string]any); !ok {
			return
		}
		wanted, err := form.Decode([]byte(s.text))
		if err != nil {
			t.Fatal(err)
		}
		after, err := form.Merge(bytes.Clone(data), []byte(s.text))
		if err != nil {
			return
		}
		got, err := form.Decode(after)
		if err != nil || !Same(got, Merged(tree, wanted)) {
			return // the caller refuses it
		}
		again, err := form.Merge(bytes.Clone(after), []byte(s.text))
		if tree, e := form.Decode(again); err != nil || e != nil || !Same(tree, got) {
			t.Errorf("once more: %v, %v\n%s\nof\n%s", err, e, again, after)
		}
		if left, err := form.Remove(bytes.Clone(after), Container(wanted), nil); err == nil {
			_, _ = form.Decode(left) // the caller compares; neither may panic
		}
	})
}
