package blackbox

import (
	"bufio"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// A bomb is a file that costs far more than it weighs, or weighs far more than anything could read.
type bomb struct {
	name string
	make func(w io.Writer) error // nil: it was made for another row
	size int64                   // then it is made so long, by a hole; 0: as it is
	tool string
	args string // FILE stands for the path
	want string // what the answer says
	most time.Duration
	slow bool // a busy machine may need more than the 1.5 s that an image has: then it is read again
}

// zlibOf is n MiB of zeros as a zlib stream. Every MiB is the same bytes, so that making it costs nothing.
func zlibOf(mebibytes int) []byte {
	var one bytes.Buffer
	w, _ := flate.NewWriter(&one, flate.BestCompression) // the level is known
	_, _ = w.Write(make([]byte, 1<<20))                  // into memory
	_ = w.Flush()
	out := append([]byte{0x78, 0xda}, bytes.Repeat(one.Bytes(), mebibytes)...)
	out = append(out, 1, 0, 0, 0xff, 0xff) // a last block, empty
	// Adler-32 of n zeros: one, and n times one.
	return binary.BigEndian.AppendUint32(out, uint32(mebibytes<<20%65521)<<16|1)
}

func pngChunk(name string, body []byte) []byte {
	b := append(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), name...), body...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
}

// pngBomb is an image of zeros, whatever it says about itself.
func pngBomb(width, height uint32, mebibytes int) func(io.Writer) error {
	return func(w io.Writer) error {
		head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, width), height)
		_, err := w.Write(bytes.Join([][]byte{
			[]byte("\x89PNG\r\n\x1a\n"), pngChunk("IHDR", append(head, 8, 2, 0, 0, 0)), pngChunk("iCCP", append([]byte("p\x00\x00"), zlibOf(1024)...)),
			pngChunk("IDAT", zlibOf(mebibytes)), pngChunk("IEND", nil),
		}, nil))
		return err
	}
}

// jpegScans is a progressive image of 15 megapixels and 10,000 scans, each of which goes over all of it.
func jpegScans(w io.Writer) error {
	segment := func(marker byte, body ...byte) []byte {
		return append([]byte{0xff, marker, byte((len(body) + 2) >> 8), byte(len(body) + 2)}, body...)
	}
	const side, blocks = 3952, (3952 / 8) * (3952 / 8)
	out := append([]byte{0xff, 0xd8}, segment(0xdb, append([]byte{0}, bytes.Repeat([]byte{1}, 64)...)...)...)
	out = append(out, segment(0xc2, 8, side>>8, side&0xff, side>>8, side&0xff, 1, 1, 0x11, 0)...)
	out = append(out, segment(0xc4, append([]byte{0x00, 1}, make([]byte, 16)...)...)...)
	out = append(out, segment(0xc4, append([]byte{0x10, 0, 2}, append(make([]byte, 14), 0xe0, 0)...)...)...)
	out = append(append(out, segment(0xda, 1, 1, 0, 0, 0, 0)...), make([]byte, blocks/8+1)...)
	scan := append(segment(0xda, 1, 1, 0, 1, 63, 0), make([]byte, 2*(blocks>>14+1))...)
	_, err := w.Write(append(append(out, bytes.Repeat(scan, 10_000)...), 0xff, 0xd9))
	return err
}

// pdfBomb is a page whose drawing is that many MiB long.
func pdfBomb(mebibytes int, kids string) func(io.Writer) error {
	return func(w io.Writer) error {
		body := zlibOf(mebibytes)
		objects := [][]byte{
			[]byte("<</Type/Catalog/Pages 2 0 R>>"), []byte("<</Type/Pages" + kids + ">>"),
			[]byte("<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R>>"),
			append(append([]byte(fmt.Sprintf("<</Length %d/Filter/FlateDecode>>stream\n", len(body))), body...), "\nendstream"...),
		}
		out := []byte("%PDF-1.7\n")
		var table strings.Builder
		for i, o := range objects {
			fmt.Fprintf(&table, "%010d 00000 n \n", len(out))
			out = append(append(append(out, fmt.Sprintf("%d 0 obj\n", i+1)...), o...), "\nendobj\n"...)
		}
		tail := fmt.Sprintf("xref\n0 5\n0000000000 65535 f \n%strailer\n<</Size 5/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n", &table, len(out))
		_, err := w.Write(append(out, tail...))
		return err
	}
}

// repeated writes text n times.
func repeated(head, text string, n int, tail string) func(io.Writer) error {
	return func(w io.Writer) error {
		buffered := bufio.NewWriterSize(w, 1<<20)
		_, _ = buffered.WriteString(head) // an error stays until Flush
		many := strings.Repeat(text, 1<<16/len(text)+1)
		per := len(many) / len(text)
		for ; n > per; n -= per {
			_, _ = buffered.WriteString(many)
		}
		_, _ = buffered.WriteString(strings.Repeat(text, n) + tail)
		return buffered.Flush()
	}
}

// bombs are those of SEC-47, but for the 5 million files. CODEHAND_LONG=1 has them in full size.
func bombs() []bomb {
	line, drawing := 1<<20, 200 // the rest of the line is a hole
	if leaktest.Long() {
		line, drawing = 2<<30, 10<<10
	}
	const read, pdfTime, grepTime = `{"file_path":"FILE"}`, 20*time.Second + readTime, 20 * time.Second
	deep := repeated(`{"nbformat":4,"nbformat_minor":5,"metadata":{"x":`, "[", 1_000_000, strings.Repeat("]", 1_000_000)+`},"cells":[]}`)
	return []bomb{
		{name: "claims.png", make: pngBomb(1<<30, 2, 1), tool: "read_file", args: read, want: "! TOO_LARGE"},
		{name: "47mp.png", make: pngBomb(11605, 4096, 136), tool: "read_file", args: read, want: "11605x4096 png, shown at ", slow: true},
		{name: "behind.png", make: pngBomb(1, 1, 4096), tool: "read_file", args: read, want: "! BINARY_FILE"},
		{name: "scans.jpg", make: jpegScans, tool: "read_file", args: read, want: "! "},
		{name: "sparse.png", make: pngBomb(8, 8, 1), size: 50 << 30, tool: "read_file", args: read, want: "! TOO_LARGE"},
		{name: "sparse.pdf", make: pdfBomb(1, "/Kids[3 0 R]/Count 1"), size: 50 << 30, tool: "read_file", args: read, want: "! TOO_LARGE"},
		{name: "sparse.ipynb", make: repeated(`{"cells":[`, " ", 1000, ""), size: 50 << 30, tool: "read_file", args: read, want: "! BINARY_FILE"},
		{name: "sparse.txt", make: repeated("", "text\n", 3000, ""), size: 50 << 30, tool: "read_file", args: read, want: "PARTIAL view"},
		{name: "archive.zip", make: repeated("PK\x03\x04\x14\x00\x00\x00\x08\x00", "\x00", 42<<10, ""), tool: "read_file", args: read, want: "! BINARY_FILE"},
		{name: "deep.ipynb", make: deep, tool: "read_file", args: read, want: "! NOTEBOOK_INVALID"},
		{name: "deep.ipynb", tool: "notebook_edit", args: `{"notebook_path":"FILE","edit_mode":"insert","cell_type":"code","new_source":"x"}`, want: "! "},
		{name: "line.txt", make: repeated("", "x", line, ""), size: 2 << 30, tool: "read_file", args: read, want: "truncated"},
		{name: "line.txt", tool: "grep_search", args: `{"pattern":"xy","path":"FILE"}`, want: "", most: grepTime},
		{name: "line.txt", tool: "edit_file", args: `{"file_path":"FILE","old_string":"xy","new_string":"z"}`, want: "! TOO_LARGE"},
		{name: "one.pdf", make: pdfBomb(drawing, "/Kids[3 0 R]/Count 1"), tool: "read_file", args: read, want: "", most: pdfTime},
		{name: "many.pdf", make: pdfBomb(1, "/Kids[3 0 R]/Count 1000000000"), tool: "read_file", args: read, want: "", most: pdfTime},
		{name: "cycle.pdf", make: pdfBomb(1, "/Kids[2 0 R 2 0 R]/Count 2"), tool: "read_file", args: read, want: "", most: pdfTime},
		{name: "aaa.txt", make: repeated("", strings.Repeat("a", 9999)+"b\n", 100, ""), tool: "grep_search", args: `{"pattern":"(a+)+$","path":"FILE"}`, want: ""},
		{name: "aaa.txt", tool: "grep_search", args: `{"pattern":"a{10000}","path":"FILE"}`, want: "! "},
		{name: "aaa.txt", tool: "grep_search", args: `{"pattern":"((((a{1,20}){1,20}){1,20}){1,20}){1,20}$","path":"FILE"}`, want: "! "},
	}
}

// plantBombs makes the bombs in dir.
func plantBombs(t *testing.T, dir string) []bomb {
	t.Helper()
	all := bombs()
	for _, b := range all {
		if b.make == nil {
			continue
		}
		f, err := os.Create(filepath.Join(dir, b.name))
		must(t, err)
		must(t, b.make(f))
		if b.size > 0 {
			if err := f.Truncate(b.size); err != nil {
				lacking(t, "a sparse file of 50 GB: %v", err)
			}
		}
		must(t, f.Close())
	}
	return all
}

// Bombs are answered in time, with a word about what was not done, and never with more than 128 MiB of the server
// (SEC-47). TestSEC47SparseFile has more about files that are too large.
func TestSEC47Bombs(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("pdftotext"); err != nil && os.Getenv("CI") != "" {
		t.Fatal("pdftotext is missing: add poppler-utils to the programs of .ci/run")
	}
	t.Run("stdio", func(t *testing.T) {
		t.Parallel()
		p, work := blackbox(t)
		bombed(t, work, p.Cmd.Process.Pid, func(tool, args string) string { return p.Must(t, tool, args) })
	})
	t.Run("http", func(t *testing.T) {
		t.Parallel()
		leaktest.OnlyLong(t, "shows what stdio shows")
		d := deploy(t)
		s := d.serve()
		c, n := d.talk(s.url, http.DefaultClient, wireKind{"http", "legacy"}), 0
		bombed(t, d.work, s.cmd.Process.Pid, func(tool, args string) string {
			n++
			text, failed := c.say(fmt.Sprint(n), tool, args, "")
			if failed {
				text = "! " + text
			}
			return text
		})
	})
}

// decodings is how often an image is read that a busy machine does not decode in its 1.5 s: for a minute.
const decodings = 40

func bombed(t *testing.T, work string, pid int, call func(tool, args string) string) {
	t.Helper()
	all := plantBombs(t, work)
	call("read_file", replaytest.AsJSON(t, "file_path", filepath.Join(work, all[0].name)))
	call("grep_search", replaytest.AsJSON(t, "pattern", "warm", "path", filepath.Join(work, "archive.zip")))
	before := peak(t, pid)
	for _, b := range all {
		most := max(b.most, readTime)
		var text string
		var took time.Duration
		was := peak(t, pid)
		for range decodings {
			start := time.Now()
			text = call(b.tool, strings.ReplaceAll(b.args, "FILE", filepath.Join(work, b.name)))
			took = time.Since(start)
			if !b.slow || !strings.Contains(text, "takes too long to decode") {
				break
			}
		}
		grown := peak(t, pid) - was
		t.Logf("%-12s %-13s %5d ms, +%3d MiB: %.150q", b.name, b.tool, took.Milliseconds(), grown>>10, text)
		if !strings.Contains(text, b.want) || strings.Contains(text, "INTERNAL") {
			t.Errorf("%s: %.300q, want %q", b.name, text, b.want)
		}
		if leaktest.Long() && took > most+slack {
			t.Errorf("%s took %v, want at most %v", b.name, took, most)
		}
	}
	grown := peak(t, pid) - before
	t.Logf("peak memory grew by %d MiB", grown>>10)
	if grown > 128<<10 {
		t.Errorf("peak memory grew by %d MiB, limit 128 MiB", grown>>10)
	}
}

// Calls that read large notebooks together take turns, so that ten cost little more than one (SEC-47). Without turns they
// took 576 MiB more.
func TestSEC47Notebooks(t *testing.T) {
	t.Parallel()
	calls, size := leaktest.Rounds(5, 10), 40<<20
	p, work := blackbox(t)
	image := `{"output_type":"display_data","data":{"image/png":"` + strings.Repeat("A", 16<<20) + `"}}`
	content := `{"nbformat":4,"nbformat_minor":5,"metadata":{},"cells":[{"id":"a","cell_type":"code","source":"x","outputs":[` + image + `]}]}`
	content += strings.Repeat(" ", size-len(content))
	for i := range calls {
		must(t, os.WriteFile(filepath.Join(work, fmt.Sprint(i, ".ipynb")), []byte(content), 0o600))
	}
	p.Must(t, "list_files", `{"pattern":"*"}`)
	before := peak(t, p.Cmd.Process.Pid)
	for _, c := range []struct{ tool, args, want string }{
		{"read_file", `{"file_path":"%d.ipynb"}`, "[image/png, 12.0 MB, not shown: damaged"},
		{"notebook_edit", `{"notebook_path":"%d.ipynb","cell_id":"a","new_source":"y"}`, "Updated cell a"},
	} {
		start := time.Now()
		together(t, p, calls, c.tool, c.args, c.want)
		grown := peak(t, p.Cmd.Process.Pid) - before
		t.Logf("%d calls of %s, each of %d MiB: %d ms, +%d MiB", calls, c.tool, size>>20, time.Since(start).Milliseconds(), grown>>10)
		if grown > 128<<10 {
			t.Errorf("peak memory grew by %d MiB, limit 128 MiB", grown>>10)
		}
	}
}

// together makes calls whose arguments have the numbers from 0 on, without waiting between them, and looks for want in each
// answer.
func together(t *testing.T, p *replaytest.Spawned, calls int, tool, args, want string) {
	t.Helper()
	for i := range calls {
		must(t, p.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"%s %d","method":"tools/call","params":{"name":"%s","arguments":%s}}`, tool, i, tool, fmt.Sprintf(args, i))))
	}
	for answers := 0; answers < calls; {
		line, err := p.Receive()
		must(t, err)
		if !bytes.Contains(line, []byte(`"id":"`+tool+` `)) {
			continue // progress
		}
		answers++
		if !bytes.Contains(line, []byte(want)) {
			t.Errorf("%.300q", line)
		}
	}
}

// A notebook in UTF-16 is held as its file and as its text, and an edit makes another of both: in room for the file alone,
// eight calls together took 299 MiB more, and one edit 130 MiB (SEC-47).
func TestSEC47WideNotebooks(t *testing.T) {
	t.Parallel()
	calls, size := leaktest.Rounds(6, 10), 12<<20
	p, work := blackbox(t)
	content := "\ufeff" + `{"nbformat":4,"nbformat_minor":5,"metadata":{},"cells":[{"id":"a","metadata":{},"cell_type":"code","source":"x","outputs":[]}],"long":"`
	content += strings.Repeat("\u65e5", size/2-len(content)) + `"}` // of three bytes each in UTF-8, the most that a unit takes
	var raw []byte
	for _, unit := range utf16.Encode([]rune(content)) {
		raw = binary.LittleEndian.AppendUint16(raw, unit)
	}
	for i := range calls {
		must(t, os.WriteFile(filepath.Join(work, fmt.Sprint(i, ".ipynb")), raw, 0o600))
	}
	p.Must(t, "list_files", `{"pattern":"*"}`)
	before := peak(t, p.Cmd.Process.Pid)
	for _, c := range []struct{ tool, args, want string }{
		{"read_file", `{"file_path":"%d.ipynb"}`, "[UTF-16 LE"},
		{"notebook_edit", `{"notebook_path":"%d.ipynb","cell_id":"a","new_source":"y"}`, "Updated cell a"},
	} {
		start := time.Now()
		together(t, p, calls, c.tool, c.args, c.want)
		grown := peak(t, p.Cmd.Process.Pid) - before
		t.Logf("%d calls of %s, each of %d MiB: %d ms, +%d MiB", calls, c.tool, size>>20, time.Since(start).Milliseconds(), grown>>10)
		if grown > 128<<10 {
			t.Errorf("peak memory grew by %d MiB, limit 128 MiB", grown>>10)
		}
	}
}

// Millions of files are listed and searched as far as time and length allow, and the answer says how far (SEC-47). All 5
// million only if CODEHAND_LONG=1: making them takes minutes.
func TestSEC47ManyFiles(t *testing.T) {
	t.Parallel()
	files, most := leaktest.Rounds(5_000, 5_000_000), 20*time.Second // the searches' own limit
	p, work := blackbox(t)
	p.Must(t, "list_files", `{"pattern":"*"}`)
	before := peak(t, p.Cmd.Process.Pid)
	for i := range files {
		dir := filepath.Join(work, fmt.Sprint("d", i/10_000), fmt.Sprint("e", i/1000%10))
		if i%1000 == 0 {
			must(t, os.MkdirAll(dir, 0o700))
		}
		f, err := os.Create(filepath.Join(dir, fmt.Sprint("file", i)))
		must(t, err)
		must(t, f.Close())
	}
	for _, c := range []struct{ tool, args string }{
		{"list_files", `{"pattern":"**/*"}`}, {"list_files", `{"pattern":"**/none*"}`}, {"grep_search", `{"pattern":"text"}`},
		{"read_file", `{"file_path":"missing.txt"}`},
	} {
		start := time.Now()
		text := p.Must(t, c.tool, c.args)
		took := time.Since(start)
		t.Logf("%s %s: %d ms: …%.200q", c.tool, c.args, took.Milliseconds(), text[max(0, len(text)-200):])
		if leaktest.Long() && took > most+slack {
			t.Errorf("%s %s took %v, want at most %v", c.tool, c.args, took, most)
		}
	}
	grown := peak(t, p.Cmd.Process.Pid) - before
	t.Logf("%d files, peak memory grew by %d MiB", files, grown>>10)
	if grown > 128<<10 {
		t.Errorf("peak memory grew by %d MiB, limit 128 MiB", grown>>10)
	}
}
