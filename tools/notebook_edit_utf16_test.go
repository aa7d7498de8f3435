package tools

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codehand/tools/tool"
	"codehand/tools/tooltest"
)

const wideJSON = "{\n \"cells\": [\n  {\n   \"cell_type\": \"markdown\",\n   \"id\": \"über\",\n   \"metadata\": {},\n   \"source\": [\n    \"日本 😀\\n\"\n   ]\n  },\n" +
	"  {\n   \"cell_type\": \"code\",\n   \"execution_count\": 1,\n   \"id\": \"b\",\n   \"metadata\": {},\n   \"outputs\": [],\n   \"source\": []\n  }\n ],\n" +
	" \"metadata\": {},\r\n \"nbformat\": 4,\n \"nbformat_minor\": 5\n}\n"

// wideOrders are those that UTF-16 has, by the ends of its names.
func wideOrders() map[string]binary.AppendByteOrder {
	return map[string]binary.AppendByteOrder{"LE": binary.LittleEndian, "BE": binary.BigEndian}
}

// A notebook in UTF-16 could be read by no tool, and read_file and notebook_edit sent the model from one to the other. Both take
// it now, and what they do to it is what they do to the same notebook in UTF-8.
func TestWideNotebook(t *testing.T) {
	t.Parallel()
	for name, order := range wideOrders() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.write("wide.ipynb", tooltest.UTF16(order, wideJSON))
			r.write("plain.ipynb", wideJSON)
			r.fails(tool.FileNotRead, "notebook_edit", `{"notebook_path":"wide.ipynb","cell_id":"b","new_source":"x"}`)
			same(t, r.ok("read_file", `{"file_path":"wide.ipynb"}`), r.ok("read_file", `{"file_path":"plain.ipynb"}`)+"\n[UTF-16 "+name+" · BOM]")
			for _, edit := range []string{
				`"cell_id":"b","new_source":"x = \"é 😀\"\ny"`, `"cell_id":"über","cell_type":"code","new_source":"z"`, `"cell_id":"über","edit_mode":"delete","new_source":""`,
			} {
				r.ok("notebook_edit", `{"notebook_path":"wide.ipynb",`+edit+`}`)
				r.ok("notebook_edit", `{"notebook_path":"plain.ipynb",`+edit+`}`)
				plain, err := os.ReadFile(filepath.Join(r.dir, "plain.ipynb"))
				if err != nil {
					t.Fatal(err)
				}
				r.holds("wide.ipynb", tooltest.UTF16(order, string(plain)))
			}
		})
	}
}

// The mark of UTF-8 is no part of the JSON, and stays.
func TestMarkedNotebook(t *testing.T) {
	t.Parallel()
	const mark = "\xef\xbb\xbf"
	r := newRig(t)
	r.write("marked.ipynb", mark+wideJSON)
	r.ok("read_file", `{"file_path":"marked.ipynb"}`)
	r.ok("notebook_edit", `{"notebook_path":"marked.ipynb","cell_id":"über","new_source":"日本"}`)
	r.holds("marked.ipynb", mark+strings.Replace(wideJSON, ` 😀\n`, "", 1))
}

// What is damaged, and what UTF-16 makes too large, is refused by both tools in the same words, which say how it becomes UTF-8.
func TestWideNotebookRefused(t *testing.T) {
	t.Parallel()
	le := binary.AppendByteOrder(binary.LittleEndian)
	for name, c := range map[string]struct {
		content string
		code    tool.Code
	}{
		"half a unit":      {tooltest.UTF16(le, wideJSON) + "x", tool.EncodingUnsupported},
		"a lone surrogate": {tooltest.UTF16(le, wideJSON) + "\x00\xd8 \x00", tool.EncodingUnsupported},
		"utf-32":           {"\xff\xfe\x00\x00{\x00\x00\x00}\x00\x00\x00", tool.EncodingUnsupported},
		"too large":        {tooltest.UTF16(le, wideJSON+strings.Repeat(" ", 6<<20)), tool.TooLarge},
	} {
		r := newRig(t)
		r.write("a.ipynb", tooltest.UTF16(le, wideJSON))
		r.ok("read_file", `{"file_path":"a.ipynb"}`)
		r.write("a.ipynb", c.content)
		read := r.fails(c.code, "read_file", `{"file_path":"a.ipynb"}`)
		if !strings.Contains(read, "iconv") {
			t.Errorf("%s: %s", name, read)
		}
		edit := r.fails(c.code, "notebook_edit", `{"notebook_path":"a.ipynb","cell_id":"b","new_source":"x","version":"`+fmt.Sprintf("%x", sha256.Sum256([]byte(c.content)))[:12]+`"}`)
		same(t, edit, read)
		for _, unread := range []bool{false, true} {
			name := map[bool]string{false: "a.ipynb", true: "b.ipynb"}[unread]
			r.write(name, c.content)
			write := r.fails(c.code, "write_file", `{"file_path":"`+name+`","content":"{\"cells\":[]}"}`)
			same(t, strings.ReplaceAll(write, name, "a.ipynb"), read)
		}
		edit = r.fails(c.code, "notebook_edit", `{"notebook_path":"b.ipynb","cell_id":"b","new_source":"x"}`)
		same(t, strings.ReplaceAll(edit, "b.ipynb", "a.ipynb"), read)
	}
}
