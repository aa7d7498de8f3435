package install

import (
	"bytes"
	"testing"
)

// FuzzMerge: whatever a file holds, an entry is merged into it so that nothing else in it changes, or it is refused; and
// what was merged is taken out again to the byte.
func FuzzMerge(f *testing.F) {
	names := []string{"a.json", "a.toml", "a.yaml", "b.yaml"}
	clientsOf := []string{"vscode", "codex", "goose", "continue"}
	for i, client := range clientsOf {
		text, err := snippetOf(client, Want{Command: "/opt/codehand", Roots: []string{"/w"}}, nil)
		if err != nil {
			f.Fatal(err)
		}
		for _, data := range []string{"", "{}", text.Text, "a: 1\n", "a = 1\n", "extensions:\n  x: {}\n", "# c",
			"mcpServers:\n- name: x\n", "[mcp_servers.codehand]\nx = 1\n", "{\"servers\": {\"codehand\": {}, }, // c\n}"} {
			f.Add(uint8(i), []byte(data))
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		i := int(which) % len(names)
		form := formOf(names[i])
		s, err := snippetOf(clientsOf[i], Want{Command: "/opt/codehand", Roots: []string{"/w"}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		tree, err := form.decode(data)
		if err != nil {
			return
		}
		if _, ok := tree.(map[string]any); !ok {
			return
		}
		wanted, err := form.decode([]byte(s.Text))
		if err != nil {
			t.Fatal(err)
		}
		after, err := form.merge(bytes.Clone(data), []byte(s.Text))
		if err != nil {
			return
		}
		got, err := form.decode(after)
		if err != nil || !same(got, merged(tree, wanted)) {
			return // the caller refuses it
		}
		n := noteOf("x", data, after)
		if was, ok := n.undo(after); !ok || !bytes.Equal(was, data) {
			t.Errorf("taken back it is\n%s\nand was\n%s", was, data)
		}
		again, err := form.merge(bytes.Clone(after), []byte(s.Text))
		if tree, e := form.decode(again); err != nil || e != nil || !same(tree, got) {
			t.Errorf("once more: %v, %v\n%s\nof\n%s", err, e, again, after)
		}
		removed(form, reading{data: after, body: after, tree: got}, containerOf(wanted), nil)
	})
}
