package viewing

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"codehand/filestate"
	"codehand/tools/notebook"
	"codehand/tools/results"
	"codehand/tools/shell"
	"codehand/tools/textedit"
	"codehand/tools/tool"
	"codehand/tools/wording"
)

// maxUTF16 is the largest notebook in UTF-16, in bytes: its text is held beside it, and an edit makes both anew. No
// program writes one, but editors save what they opened in it.
const maxUTF16 = 12 << 20

// A Notebook is the JSON of a notebook, and how its file spells it.
type Notebook struct {
	JSON []byte            // as UTF-8
	as   textedit.Encoding // the zero one: JSON is the file, whatever its strings are in
	last struct{ text, raw int }
}

// notebookEncoding says how a notebook of size bytes that starts with head is spelled; the zero one: its bytes are its
// JSON. Errors are refusals.
func notebookEncoding(path string, head []byte, size int64) (textedit.Encoding, error) {
	// the zero one of what is no text, which the parser says best
	as, _ := textedit.Detect(head[:min(len(head), headSize)])
	switch unit, _ := as.Unit(); {
	case unit == 1:
		return textedit.Encoding{}, nil
	case !as.Editable():
		return as, encodingRefusal(path, "UTF-32")
	case size > maxUTF16:
		return as, tool.Numbered(tool.TooLarge, 10,
			"%s is too large for a notebook in %v (%s). Limit: %d MiB. Convert it with run_shell: iconv -f UTF-16 "+
				"-t UTF-8.",
			path, as, results.Size(size), maxUTF16>>20)
	}
	return as, nil
}

// notebookMemory is how many bytes are taken at most by a notebook of size bytes that is read, as far as they grow with
// it. That of UTF-8 is as long as its JSON; two bytes of UTF-16 are up to three of that.
func notebookMemory(as textedit.Encoding, size int64) int64 {
	if as == (textedit.Encoding{}) {
		return size
	}
	return size + size*3/2
}

// ReadNotebook decodes a notebook in UTF-16, which has one spelling for each text: what is not edited comes back byte
// for byte. Errors are refusals.
func ReadNotebook(path string, raw []byte) (*Notebook, error) {
	as, err := notebookEncoding(path, raw, int64(len(raw)))
	if err != nil {
		return nil, err
	}
	if as == (textedit.Encoding{}) {
		return &Notebook{JSON: raw}, nil
	}
	text, bad := as.DecodeBytes(raw[as.Mark():])
	if bad > 0 {
		return nil, encodingRefusal(path, "UTF-16")
	}
	return &Notebook{JSON: text, as: as}, nil
}

// encodingRefusal says how a notebook that no tool takes becomes one, in the same words whichever was asked: none can
// make the first step, since write_file wants to have been preceded by a read.
func encodingRefusal(path, as string) error {
	is := as
	if as == "UTF-16" {
		is = "damaged UTF-16"
	}
	return tool.Refuse(tool.EncodingUnsupported,
		"%s is %s and cannot be used as a notebook. Convert it with run_shell: iconv -c -f %s -t UTF-8 %s > NEW.ipynb.",
		wording.Clip(path, 200), is, as, shell.Word(path))
}

// ReadableNotebook says whether reading could help with a notebook that was not read. What else is wrong with it is
// said there.
func ReadableNotebook(ctx context.Context, env tool.Env, path string, head []byte, from *filestate.Reading) error {
	as, err := notebookEncoding(path, head, from.Size())
	if err != nil || as == (textedit.Encoding{}) {
		return err
	}
	leave, err := env.Media.Hold(ctx, notebookMemory(as, from.Size()))
	if err != nil {
		return err
	}
	defer leave()
	raw := make([]byte, from.Size())
	if _, err := from.ReadAt(raw, 0); err != nil {
		return err
	}
	_, err = ReadNotebook(path, raw)
	return err
}

// Wide says that the file is not UTF-8, as programs that read JSON want it.
func (b *Notebook) Wide() bool { return b.as != textedit.Encoding{} }

// With is a notebook with this JSON, spelled in the same way.
func (b *Notebook) With(json []byte) *Notebook { return &Notebook{JSON: json, as: b.as} }

// Spell returns the file with this JSON.
func (b *Notebook) Spell(json []byte) ([]byte, error) {
	if !b.Wide() {
		return json, nil
	}
	return b.as.Encode(json)
}

// at is where in the file an offset of the JSON is. It is fast if each is behind the one before.
func (b *Notebook) at(offset int) int64 {
	if !b.Wide() {
		return int64(offset)
	}
	if offset < b.last.text || b.last.raw == 0 {
		b.last.text, b.last.raw = 0, b.as.Mark()
	}
	for b.last.text < offset {
		r, size := utf8.DecodeRune(b.JSON[b.last.text:])
		b.last.text += size
		b.last.raw += 2 * utf16.RuneLen(r)
	}
	return int64(b.last.raw)
}

// jq is a command for a part of the file, without its name. The program itself reads nothing but UTF-8.
func (b *Notebook) jq(part string) string {
	if b.Wide() {
		return "iconv -f UTF-16 -t UTF-8 | jq '" + part + "'"
	}
	return "jq '" + part + "'"
}

// Lines are the lines that a range of the JSON is in, whole; first counts from 1.
func (b *Notebook) Lines(r notebook.Range) (first int, lines []byte) {
	from, to := bytes.LastIndexByte(b.JSON[:r.From], '\n')+1, len(b.JSON)
	if n := bytes.IndexByte(b.JSON[r.To:], '\n'); n >= 0 {
		to = r.To + n
	}
	return bytes.Count(b.JSON[:from], []byte("\n")) + 1, b.JSON[from:to]
}

// IsNotebook says by its name whether a file is a Jupyter notebook.
func IsNotebook(path string) bool { return strings.EqualFold(filepath.Ext(path), ".ipynb") }

// NotebookRefusal says where a notebook is none. What repairs it is no tool for notebooks.
func NotebookRefusal(path string, e *notebook.InvalidError) error {
	return tool.Refuse(tool.NotebookInvalid, "%s is not a Jupyter notebook at %d:%d: %s. Repair it with run_shell.",
		path, e.Line, e.Column, e.Reason)
}

// HoldNotebook waits until there is room for a notebook that is read whole, and for another like it: what is made of
// it. leave ends that. notebook.ErrTooLarge and those of ReadNotebook: it is not read at all. What the path is
// otherwise, and why it cannot be read, those say who read it.
func HoldNotebook(ctx context.Context, env tool.Env, path string, f filestate.File) (leave func(), err error) {
	from, err := env.Files.Open(ctx, f)
	if err != nil {
		return func() {}, nil
	}
	defer func() { _ = from.Close() }() // only read
	if from.Size() > notebook.MaxBytes {
		return nil, notebook.ErrTooLarge
	}
	head := make([]byte, min(headSize, from.Size()))
	n, _ := from.ReadAt(head, 0)
	as, err := notebookEncoding(path, head[:n], from.Size())
	if err != nil {
		return nil, err
	}
	return env.Media.Hold(ctx, 2*notebookMemory(as, from.Size()))
}
