package tools

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"image"
	"image/png"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"codehand/tools/media"
	"codehand/tools/tool"
	"codehand/tools/tooltest"
	"codehand/tools/wording"
)

// picture is a PNG of noise, which does not become small.
func picture(t *testing.T, width, height int) []byte {
	t.Helper()
	m := image.NewNRGBA(image.Rect(0, 0, width, height))
	rng := rand.New(rand.NewPCG(1, uint64(width)))
	for i := range m.Pix {
		m.Pix[i] = byte(rng.Uint32()) | byte(i&3/3*255) // opaque
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestReadFileEncodings(t *testing.T) {
	t.Parallel()
	le, be := binary.AppendByteOrder(binary.LittleEndian), binary.AppendByteOrder(binary.BigEndian)
	text := "日本 €\r\nzwei\n"
	utf32 := "\xff\xfe\x00\x00a\x00\x00\x00\n\x00\x00\x00"
	for _, c := range []struct{ name, content, args, want, meta string }{
		{"utf-16 le", tooltest.UTF16(le, text), ``, "1\t日本 €\n2\tzwei\n[UTF-16 LE · BOM · mixed line ends]", `"encoding":"UTF-16 LE BOM","eol":"mixed"`},
		{"utf-16 be", tooltest.UTF16(be, "a\r\nb"), ``, "1\ta\n2\tb\n[UTF-16 BE · BOM · CRLF line ends · no newline at end]", `"encoding":"UTF-16 BE BOM","eol":"CRLF"`},
		{"a range", tooltest.UTF16(le, "a\nb\nc\n"), `,"offset":2,"limit":1`, "2\tb\n[lines 2-2 of 3 · UTF-16 LE · BOM]", `"startLine":2`},
		{"half a unit", tooltest.UTF16(le, "a\n") + "x", ``, "1\ta\n2\t\ufffd\n[UTF-16 LE · BOM · 1 unit is not UTF-16 LE and shown as U+FFFD · no newline at end]", `"lines":2`},
		{"utf-32", utf32, ``, "1\ta\n[UTF-32 LE · BOM]", `"encoding":"UTF-32 LE BOM"`},
		{"long line", tooltest.UTF16(be, strings.Repeat("é", 2005)+"\nb\n"), ``,
			"1\t" + strings.Repeat("é", 2000) + "... (truncated, 5 more characters)\n2\tb\n[UTF-16 BE · BOM]", `"lines":2`},
		{"mark alone", tooltest.UTF16(le, ""), ``, "<system-reminder>Warning: the file exists but the contents are empty.</system-reminder>", ``},
		{"mark alone utf-8", "\xef\xbb\xbf", ``, "<system-reminder>Warning: the file exists but the contents are empty.</system-reminder>", ``},
		{"past the end", tooltest.UTF16(le, "a\n"), `,"offset":3`,
			"<system-reminder>Warning: the file exists but is shorter than the provided offset (3). The file has 1 lines.</system-reminder>", ``},
		{"gbk", "\xd6\xd0\xce\xc4\xb2\xe2\xca\xd4\xd6\xd0\xb9\xfa\xc8\xcb\xc3\xf1\xb5\xc4\xb0\xa1\r\nabc\r\n", ``,
			"1\t中文测试中国人民的啊\n2\tabc\n[GBK (guessed) · CRLF line ends]", `"encoding":"GBK","eol":"CRLF"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.write("f", c.content)
			res, text := r.do("read_file", `{"file_path":"f"`+c.args+`}`)
			same(t, text, c.want)
			if !strings.Contains(string(res.Meta.Data), c.meta) {
				t.Errorf("%s has no %s", res.Meta.Data, c.meta)
			}
		})
	}
}

// A large file in another encoding is paged like any: every line once, and each page within the limit.
func TestReadFileEncodingPages(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Client.MaxRunes = 400_000
	var all strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&all, "Zeile %d mit Umlauten äöü\r\n", i+1)
	}
	r.write("f", tooltest.UTF16(binary.LittleEndian, all.String()))
	same(t, r.ok("read_file", `{"file_path":"f","offset":29999}`),
		"29999\tZeile 29999 mit Umlauten äöü\n30000\tZeile 30000 mit Umlauten äöü\n[lines 29999-30000 of 30,000 · UTF-16 LE · BOM · CRLF line ends]")
	r.Prefs.ReadMaxTokens = 1000
	first, _, _ := strings.Cut(r.ok("read_file", `{"file_path":"f"}`), "\n")
	if !strings.HasPrefix(first, "PARTIAL view: lines 1-") || !strings.Contains(first, "of 30,000 (limit: 1,000 tokens)") {
		t.Error(first)
	}
}

func TestReadFileImage(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Client.MaxImages = 1
	small := picture(t, 30, 20)
	r.write("small.png", string(small))
	res, text := r.do("read_file", `{"file_path":"small.png"}`)
	same(t, text, "Image 30x20 png, shown at 30x20.")
	if len(res.Media) != 1 || res.Media[0].MIME != "image/png" || !bytes.Equal(res.Media[0].Data, small) {
		t.Errorf("got %d images", len(res.Media))
	}
	var meta map[string]any
	if err := json.Unmarshal(res.Meta.Data, &meta); err != nil || meta["width"] != 30.0 || meta["shownHeight"] != 20.0 || len(fmt.Sprint(meta["hash"])) != 64 || len(res.Meta.Version) != 12 {
		t.Errorf("%s, %v", res.Meta.Data, err)
	}
	// It counts as seen whole, and is not sent twice in a row.
	res, text = r.do("read_file", `{"file_path":"small.png"}`)
	same(t, text, "File unchanged since your last read. Use that content; call read_file again to get it anyway.")
	if len(res.Media) != 0 {
		t.Error("the image is sent with the stub")
	}
	r.ok("write_file", `{"file_path":"small.png","content":"x"}`)

	// The content tells what it is, whatever the name.
	r.write("photo.txt", string(small))
	same(t, r.ok("read_file", `{"file_path":"photo.txt"}`), "Image 30x20 png, shown at 30x20.")
	r.fails(tool.InputInvalid, "read_file", `{"file_path":"photo.txt","pages":"1"}`)

	// A client without images gets a line.
	r.Client.MaxImages = 0
	r.write("b.png", string(small))
	res, text = r.do("read_file", `{"file_path":"b.png"}`)
	if want := fmt.Sprintf("Image 30x20 png, %d bytes, not shown: this client does not accept images. It is at %s/b.png.", len(small), r.dir); len(small) < 1024 {
		same(t, text, want)
	}
	if !strings.HasPrefix(text, "Image 30x20 png, ") || !strings.HasSuffix(text, "not shown: this client does not accept images. It is at "+r.dir+"/b.png.") || len(res.Media) != 0 {
		t.Errorf("%s and %d images", text, len(res.Media))
	}
}

func TestReadFileImageRefusals(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Client.MaxImages = 1
	whole := picture(t, 40, 40)
	r.write("half.png", string(whole[:len(whole)/2]))
	r.write("other.png", "\x89PNG\r\n\x1a\nno image at all")
	for _, name := range []string{"half.png", "other.png"} {
		text := r.fails(tool.BinaryFile, "read_file", `{"file_path":"`+name+`"}`)
		if want := "This tool cannot read binary files: $WORK/" + name + ". It begins like an image but is damaged. Use run_shell with file, xxd or strings."; !strings.Contains(text, want) {
			t.Error(text)
		}
	}
	r.write("huge.png", string(whole))
	if err := os.Truncate(r.dir+"/huge.png", 21<<20); err != nil {
		t.Fatal(err)
	}
	text := r.fails(tool.TooLarge, "read_file", `{"file_path":"huge.png"}`)
	if want := "$WORK/huge.png is too large (21.0 MB). Limit: 20.0 MB. Scale it down with run_shell."; !strings.Contains(text, want) {
		t.Error(text)
	}
	// 60 megapixels by the header: nothing is decoded.
	bomb := bytes.Clone(whole)
	binary.BigEndian.PutUint32(bomb[16:], 10_000)
	binary.BigEndian.PutUint32(bomb[20:], 6_000)
	binary.BigEndian.PutUint32(bomb[29:], crc32.ChecksumIEEE(bomb[12:29]))
	r.write("bomb.png", string(bomb))
	text = r.fails(tool.TooLarge, "read_file", `{"file_path":"bomb.png"}`)
	if want := "$WORK/bomb.png is too large (60,000,000 pixels). Limit: 50,000,000 pixels. Scale it down with run_shell."; !strings.Contains(text, want) {
		t.Error(text)
	}
}

// notebookOf makes a notebook of code cells with these outputs.
func notebookOf(cells ...string) string {
	return `{"nbformat":4,"nbformat_minor":5,"metadata":{},"cells":[` + strings.Join(cells, ",\n") + `]}`
}

func codeCell(id, source, outputs string) string {
	return fmt.Sprintf(`{"id":%q,"cell_type":"code","execution_count":3,"metadata":{},"source":[%q],"outputs":[%s]}`, id, source, outputs)
}

func TestReadFileNotebook(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Client.MaxImages = 1
	dot := base64.StdEncoding.EncodeToString(picture(t, 4, 2))
	shown := `{"output_type":"display_data","data":{"image/png":"` + dot + `","text/plain":["<Figure>"]},"metadata":{}}`
	printed := `{"output_type":"stream","name":"stdout","text":["one\n","two\n"]}`
	r.write("n.ipynb", notebookOf(
		`{"id":"intro","cell_type":"markdown","metadata":{},"source":["# Title\n","text"]}`,
		codeCell("a1", "print(1)", printed), codeCell("a2", "plot()", shown), codeCell("a3", "plot()", shown)))
	want := "<cell id=\"intro\" type=\"markdown\">\n# Title\ntext\n</cell>\n" +
		"<cell id=\"a1\" type=\"code\" n=\"3\">\nprint(1)\n</cell>\none\ntwo\n" +
		"<cell id=\"a2\" type=\"code\" n=\"3\">\nplot()\n</cell>\n<Figure>\n[image 1 below: 4x2 png, shown at 4x2]\n" +
		"<cell id=\"a3\" type=\"code\" n=\"3\">\nplot()\n</cell>\n<Figure>\n[image/png, "
	res, text := r.do("read_file", `{"file_path":"n.ipynb"}`)
	if !strings.HasPrefix(text, want) || !strings.HasSuffix(text, ", not shown: offset=4 with limit=1 shows it]") || len(res.Media) != 1 {
		t.Errorf("got %d images and\n%s", len(res.Media), text)
	}
	if !strings.Contains(string(res.Meta.Data), `"unit":"cells","shown":4,"start":1,"total":4,"more":false`) {
		t.Errorf("%s", res.Meta.Data)
	}
	res, text = r.do("read_file", `{"file_path":"n.ipynb","offset":4,"limit":1}`)
	if !strings.HasSuffix(text, "\n[image 1 below: 4x2 png, shown at 4x2]\n[cells 4-4 of 4]") || len(res.Media) != 1 {
		t.Errorf("got %d images and\n%s", len(res.Media), text)
	}
	r.Client.MaxImages = 8
	if res, _ = r.do("read_file", `{"file_path":"n.ipynb"}`); len(res.Media) != 2 {
		t.Errorf("%d images for a client that takes all", len(res.Media))
	}
	r.Client.MaxImages = 0
	r.Prefs.ReadDedup = false
	res, text = r.do("read_file", `{"file_path":"n.ipynb"}`)
	if strings.Count(text, "not shown: this client does not accept images]") != 2 || len(res.Media) != 0 {
		t.Errorf("got %d images and\n%s", len(res.Media), text)
	}
	same(t, r.ok("read_file", `{"file_path":"n.ipynb","offset":9}`),
		"<system-reminder>Warning: the file exists but is shorter than the provided offset (9). The notebook has 4 cells.</system-reminder>")
	r.write("none.ipynb", notebookOf())
	same(t, r.ok("read_file", `{"file_path":"none.ipynb"}`), "<system-reminder>Warning: the file exists but the notebook has no cells.</system-reminder>")
}

// What was seen of a notebook: a part can be edited, all can be replaced.
func TestReadFileNotebookSeen(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("n.ipynb", notebookOf(codeCell("a", "1", ""), codeCell("b", "2", ""), codeCell("c", "3", "")))
	edit := `{"notebook_path":"n.ipynb","cell_id":"a","new_source":"9"}`
	r.fails(tool.FileNotRead, "notebook_edit", edit)
	r.ok("read_file", `{"file_path":"n.ipynb","limit":1}`)
	r.fails(tool.FilePartlyRead, "write_file", `{"file_path":"n.ipynb","content":"{\"cells\":[]}"}`)
	r.ok("read_file", `{"file_path":"n.ipynb"}`)
	stub := r.ok("read_file", `{"file_path":"n.ipynb"}`)
	same(t, stub, "File unchanged since your last read (cells 1-3). Use that content; call read_file again to get it anyway.")
	r.ok("write_file", `{"file_path":"n.ipynb","content":"{\"cells\":[],\"nbformat\":4,\"nbformat_minor\":5,\"metadata\":{}}"}`)

	r.write("m.ipynb", notebookOf(codeCell("a", "1", ""), codeCell("b", "2", "")))
	r.ok("read_file", `{"file_path":"m.ipynb","limit":1}`)
	r.ok("notebook_edit", `{"notebook_path":"m.ipynb","cell_id":"a","new_source":"9"}`)
}

func TestReadFileNotebookLimits(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Client.MaxRunes = 2000
	long := `{"output_type":"stream","name":"stdout","text":"` + strings.Repeat("x", 10_001) + `"}`
	r.write("n.ipynb", notebookOf(codeCell("a", strings.Repeat("a", 900), ""), codeCell("b", strings.Repeat("b", 900), ""), codeCell("c", "1", long)))
	text := r.ok("read_file", `{"file_path":"n.ipynb"}`)
	if !strings.HasPrefix(text, "PARTIAL view: cells 1-1 of 3 (limit: 1,500 characters). Continue with offset=2.\n<cell id=\"a\"") {
		t.Errorf("%.200s", text)
	}
	text = r.ok("read_file", `{"file_path":"n.ipynb","offset":3}`)
	if !strings.Contains(text, "xxx\n... (truncated, ") || len(text) > 2000 {
		t.Errorf("%d characters: %.300s", len(text), text)
	}
	r.Client.MaxRunes = 50_000
	text = r.ok("read_file", `{"file_path":"n.ipynb","offset":3}`)
	if !strings.HasSuffix(text, "x\n[output truncated; use jq '.cells[2].outputs' "+shellWord(r.dir, "n.ipynb")+"]\n[cells 3-3 of 3]") {
		t.Errorf("…%s", text[len(text)-200:])
	}
}

// shellWord is how bash must be given a file in the directory dir, as $WORK/name: quoted if dir contains spaces.
func shellWord(dir, name string) string {
	if strings.Contains(dir, " ") {
		return "'$WORK/" + name + "'"
	}
	return "$WORK/" + name
}

// The command that shows an output that was cut was another one, or none, if the path had a blank or began like an option.
func TestReadFileCutOutputCommand(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	book := notebookOf(codeCell("a", "1", `{"output_type":"stream","name":"stdout","text":"`+strings.Repeat("x", 10_001)+`"}`))
	for name, word := range map[string]string{
		"n.ipynb": shellWord(r.dir, "n.ipynb"), "-n.ipynb": shellWord(r.dir, "-n.ipynb"), "my n.ipynb": "'$WORK/my n.ipynb'", "it's;$(n).ipynb": `'$WORK/it'\''s;$(n).ipynb'`,
	} {
		for content, command := range map[string]string{
			book: "jq '.cells[0].outputs' " + word, tooltest.UTF16(binary.LittleEndian, book): "iconv -f UTF-16 -t UTF-8 " + word + " | jq '.cells[0].outputs'",
		} {
			r.write(name, content)
			if text, want := r.ok("read_file", `{"file_path":"`+name+`"}`), "\n[output truncated; use "+command+"]"; !strings.Contains(text, want) {
				t.Errorf("%s: …%s, want %s", name, text[len(text)-200:], want)
			}
		}
	}
}

func TestReadFileNotebookInvalid(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for content, want := range map[string]string{
		"{\n \"cells\": [}": "$WORK/n.ipynb is not a Jupyter notebook at 2:12: ",
		`{"cells":[]}`:      "$WORK/n.ipynb is not a Jupyter notebook at 1:1: ",
		"# not JSON\n":      "$WORK/n.ipynb is not a Jupyter notebook at 1:1: ", // what does not begin with { was shown as text
		"[1]":               "$WORK/n.ipynb is not a Jupyter notebook at 1:1: ",
		" \n":               "$WORK/n.ipynb is not a Jupyter notebook at ",
	} {
		r.write("n.ipynb", content)
		if text := r.fails(tool.NotebookInvalid, "read_file", `{"file_path":"n.ipynb"}`); !strings.Contains(text, want) {
			t.Errorf("%s\nhas no %q", text, want)
		}
	}
	r.write("n.ipynb", "\xef\xbb\xbf") // which is what an editor leaves of nothing
	same(t, r.ok("read_file", `{"file_path":"n.ipynb"}`), "<system-reminder>Warning: the file exists but the contents are empty.</system-reminder>")
	r.write("n.ipynb", "\x00\x01\x02")
	r.fails(tool.BinaryFile, "read_file", `{"file_path":"n.ipynb"}`)
	r.write("n.json", `{"cells":[]}`) // and the name counts, too
	same(t, r.ok("read_file", `{"file_path":"n.json"}`), "1\t{\"cells\":[]}\n[no newline at end]")
}

// A notebook full of damaged images kept the server's one decoder for all of them.
func TestReadFileDamagedImages(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Client.MaxImages = 8
	bad := `{"output_type":"display_data","data":{"image/png":"` + base64.StdEncoding.EncodeToString(picture(t, 4, 2)[:30]) + `"},"metadata":{}}`
	cells := make([]string, 40)
	for i := range cells {
		cells[i] = codeCell(fmt.Sprint("c", i), "plot()", bad)
	}
	r.write("n.ipynb", notebookOf(cells...))
	text := r.ok("read_file", `{"file_path":"n.ipynb"}`)
	if tried, left := strings.Count(text, "damaged, or of no known kind"), strings.Count(text, "too many earlier images failed"); tried != 8 || left != len(cells)-8 {
		t.Errorf("%d images were tried and %d were not:\n%s", tried, left, text)
	}
}

// A notebook of images that take too long cost the whole limit for each of them, 1.5 s, and tests that have a minute did not
// see it. Here none has any time: one is tried.
func TestReadFileSlowImages(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Client.MaxImages = 8
	r.Media = media.New(media.Options{Fit: media.FitOptions{MaxTime: time.Nanosecond, MaxEdge: 64}})
	slow := `{"output_type":"display_data","data":{"image/png":"` + base64.StdEncoding.EncodeToString(picture(t, 300, 200)) + `"},"metadata":{}}`
	cells := make([]string, 10)
	for i := range cells {
		cells[i] = codeCell(fmt.Sprint("c", i), "plot()", slow)
	}
	r.write("n.ipynb", notebookOf(cells...))
	text := r.ok("read_file", `{"file_path":"n.ipynb"}`)
	if tried, left := strings.Count(text, "not shown: too large]"), strings.Count(text, "too many earlier images failed]"); tried != 1 || left != len(cells)-1 {
		t.Errorf("%d images were tried and %d were not:\n%s", tried, left, wording.Clip(text, 2000))
	}
	r.write("slow.png", string(picture(t, 300, 200)))
	if text := r.fails(tool.TooLarge, "read_file", `{"file_path":"slow.png"}`); !strings.Contains(text, "$WORK/slow.png takes too long to decode. Scale it down with run_shell.") {
		t.Error(text)
	}
}
