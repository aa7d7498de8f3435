package tools

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"codehand/tools/media"
	"codehand/tools/tool"
)

// pdfOf makes a PDF with a page for each text; "": a page that shows only a black square. trailer is added to that of
// the file.
func pdfOf(trailer string, texts ...string) string {
	var b strings.Builder
	var at []int
	b.WriteString("%PDF-1.4\n")
	object := func(body string) {
		at = append(at, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", len(at), body)
	}
	kids := ""
	for i := range texts {
		kids += fmt.Sprintf("%d 0 R ", 4+2*i)
	}
	object("<< /Type /Catalog /Pages 2 0 R >>")
	object(fmt.Sprintf("<< /Type /Pages /Kids [%s] /Count %d >>", kids, len(texts)))
	object("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
	for i, text := range texts {
		object(fmt.Sprintf("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 100] /Resources << /Font << /F 3 0 R >> >> /Contents %d 0 R >>", 5+2*i))
		stream := "BT /F 12 Tf 10 50 Td (" + text + ") Tj ET"
		if text == "" {
			stream = "10 10 50 50 re f"
		}
		object(fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(stream), stream))
	}
	xref := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(at)+1)
	for _, n := range at {
		fmt.Fprintf(&b, "%010d 00000 n \n", n)
	}
	fmt.Fprintf(&b, "trailer\n<< /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF\n", len(at)+1, trailer, xref)
	return b.String()
}

// needPoppler skips a test on a machine without poppler's programs, but not in CI.
func needPoppler(t *testing.T) {
	t.Helper()
	for _, name := range []string{"pdfinfo", "pdftotext", "pdftoppm"} {
		if _, err := exec.LookPath(name); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatalf("no %s: install poppler-utils", name)
			}
			t.Skipf("no %s: install poppler-utils", name)
		}
	}
}

func numberedPages(n int) []string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = fmt.Sprintf("This is page %d.", i+1)
	}
	return texts
}

func TestReadFilePDF(t *testing.T) {
	t.Parallel()
	needPoppler(t)
	r := newRig(t)
	r.Client.MaxImages = 1
	r.write("short.pdf", pdfOf("", "Hello World", "", "Bye"))
	res, text := r.do("read_file", `{"file_path":"short.pdf"}`)
	lines := strings.Fields(text)
	want := "--- page 1 --- Hello World --- page 2 --- [image 1 below: "
	if got := strings.Join(lines, " "); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "] --- page 3 --- Bye") || len(res.Media) != 1 {
		t.Errorf("got %d images and\n%s", len(res.Media), text)
	}
	if !strings.HasPrefix(string(res.Meta.Data), `{"unit":"pages","shown":3,"start":1,`) {
		t.Errorf("%s", res.Meta.Data)
	}
	same(t, r.ok("read_file", `{"file_path":"short.pdf"}`), "File unchanged since your last read (all pages). Use that content; call read_file again to get it anyway.")
	r.Client.MaxImages = 0
	res, text = r.do("read_file", `{"file_path":"short.pdf","pages":"2"}`)
	same(t, text, "--- page 2 ---\n[no text; its image is not shown: this client does not accept images]\n[pages 2-2 of 3]")
	if len(res.Media) != 0 {
		t.Error("an image for a client that takes none")
	}
}

func TestReadFilePDFPages(t *testing.T) {
	t.Parallel()
	needPoppler(t)
	r := newRig(t)
	r.write("ten.pdf", pdfOf("", numberedPages(10)...))
	r.write("long.pdf", pdfOf("", numberedPages(30)...))
	if text := r.ok("read_file", `{"file_path":"ten.pdf"}`); strings.Count(text, "--- page ") != 10 {
		t.Errorf("ten pages are not shown:\n%s", text)
	}
	text := r.fails(tool.TooLarge, "read_file", `{"file_path":"long.pdf"}`)
	same(t, text, "TOO_LARGE: The PDF has 30 pages. Give pages, at most 20.")
	text = r.ok("read_file", `{"file_path":"long.pdf","pages":"11-30"}`)
	if strings.Count(text, "--- page ") != 20 || !strings.HasPrefix(text, "--- page 11 ---\n") || !strings.HasSuffix(text, "This is page 30.\n[pages 11-30 of 30]") {
		t.Errorf("got\n%s", text)
	}
	same(t, r.ok("read_file", `{"file_path":"long.pdf","pages":"3"}`), "--- page 3 ---\nThis is page 3.\n[pages 3-3 of 30]")
	same(t, r.ok("read_file", `{"file_path":"long.pdf","pages":"3"}`), "--- page 3 ---\nThis is page 3.\n[pages 3-3 of 30]") // no stub: which pages were shown is not remembered
	text = r.ok("read_file", `{"file_path":"long.pdf","pages":"31"}`)
	same(t, text, "<system-reminder>Warning: the file exists but has no page 31. The PDF has 30 pages.</system-reminder>")
	r.Client.MaxRunes = 700
	text = r.ok("read_file", `{"file_path":"long.pdf","pages":"1-20"}`)
	if !strings.HasPrefix(text, "PARTIAL view: pages 1-11 of 30 (limit: 350 characters). Continue with pages=\"12-20\".\n--- page 1 ---\n") {
		t.Errorf("got\n%s", text)
	}
}

func TestReadFilePDFRefusals(t *testing.T) {
	t.Parallel()
	needPoppler(t)
	r := newRig(t)
	whole := pdfOf("", "Hello")
	r.write("cut.pdf", "%PDF-1.4\nnothing of what should follow")
	locked := `/Encrypt << /Filter /Standard /V 1 /R 2 /O (01234567890123456789012345678901) /U (01234567890123456789012345678901) /P -4 >> /ID [<00> <00>]`
	r.write("locked.pdf", pdfOf(locked, "Hello"))
	r.write("page.pdf", "no PDF at all\n")
	text := r.fails(tool.PDFDamaged, "read_file", `{"file_path":"cut.pdf"}`)
	same(t, text, "PDF_DAMAGED: $WORK/cut.pdf is damaged and cannot be read as a PDF. Use run_shell with file, or ask the user for another copy.")
	text = r.fails(tool.PDFEncrypted, "read_file", `{"file_path":"locked.pdf"}`)
	same(t, text, "PDF_ENCRYPTED: $WORK/locked.pdf needs a password, so its pages cannot be read. Ask the user for a copy without one.")
	same(t, r.ok("read_file", `{"file_path":"page.pdf"}`), "1\tno PDF at all")
	r.fails(tool.InputInvalid, "read_file", `{"file_path":"page.pdf","pages":"1"}`)

	r.write("big.pdf", whole)
	if err := os.Truncate(r.dir+"/big.pdf", 101<<20); err != nil {
		t.Fatal(err)
	}
	text = r.fails(tool.TooLarge, "read_file", `{"file_path":"big.pdf"}`)
	same(t, text, "TOO_LARGE: $WORK/big.pdf is too large (101.0 MB). Limit: 100.0 MB. Split it with run_shell.")
}

// Where poppler's programs are not installed, the answer names the package.
func TestReadFilePDFUnavailable(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Media = media.New(media.Options{Dirs: []string{t.TempDir()}})
	r.write("a.pdf", pdfOf("", "Hello"))
	text := r.fails(tool.PDFUnavailable, "read_file", `{"file_path":"a.pdf"}`)
	if !strings.HasPrefix(text, "PDF_UNAVAILABLE: PDF files need the program pdf") || !strings.Contains(text, "The operator can install the package poppler") {
		t.Error(text)
	}
}
