package tools

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

// maxWideBook is the largest notebook in UTF-16, in bytes: its text is held beside it, and an edit makes both anew. No program
// writes one, but editors save what they opened in it.
const maxWideBook = 12 << 20

// A book is the JSON of a notebook, and how its file spells it.
type book struct {
	json []byte
	as   textedit.Encoding // the zero one: json is the file, whatever its strings are in
	last struct{ text, raw int }
}

// bookEncoding says how a notebook of size bytes that starts with head is spelled; the zero one: its bytes are its JSON. Errors
// are refusals.
func bookEncoding(path string, head []byte, size int64) (textedit.Encoding, error) {
	as, _ := textedit.Detect(head[:min(len(head), headSize)]) // the zero one of what is no text, which the parser says best
	switch unit, _ := as.Unit(); {
	case unit == 1:
		return textedit.Encoding{}, nil
	case !as.Editable():
		return as, bookRefusal(path, "UTF-32")
	case size > maxWideBook:
		return as, tool.Numbered(tool.TooLarge, 10, "%s is too large for a notebook in %v (%s). Limit: %d MiB. Convert it with run_shell: iconv -f UTF-16 -t UTF-8.",
			path, as, results.Size(size), maxWideBook>>20)
	}
	return as, nil
}

// bookMemory is how many bytes are taken at most by a notebook of size bytes that is read, as far as they grow with it. That
// of UTF-8 is as long as its JSON; two bytes of UTF-16 are up to three of that.
func bookMemory(as textedit.Encoding, size int64) int64 {
	if as == (textedit.Encoding{}) {
		return size
	}
	return size + size*3/2
}

// readBook decodes a notebook in UTF-16, which has one spelling for each text: what is not edited comes back byte for byte.
// Errors are refusals.
func readBook(path string, raw []byte) (*book, error) {
	as, err := bookEncoding(path, raw, int64(len(raw)))
	if err != nil {
		return nil, err
	}
	if as == (textedit.Encoding{}) {
		return &book{json: raw}, nil
	}
	text, bad := as.DecodeBytes(raw[as.Mark():])
	if bad > 0 {
		return nil, bookRefusal(path, "UTF-16")
	}
	return &book{json: text, as: as}, nil
}

// bookRefusal says how a notebook that no tool takes becomes one, in the same words whichever was asked: none can make the first
// step, since write_file wants to have been preceded by a read.
func bookRefusal(path, as string) error {
	is := as
	if as == "UTF-16" {
		is = "damaged UTF-16"
	}
	return tool.Refuse(tool.EncodingUnsupported, "%s is %s and cannot be used as a notebook. Convert it with run_shell: iconv -c -f %s -t UTF-8 %s > NEW.ipynb.",
		wording.Clip(path, 200), is, as, shell.Word(path))
}

// readableBook says whether reading could help with a notebook that was not read. What else is wrong with it is said there.
func readableBook(ctx context.Context, env tool.Env, path string, head []byte, from *filestate.Reading) error {
	as, err := bookEncoding(path, head, from.Size())
	if err != nil || as == (textedit.Encoding{}) {
		return err
	}
	leave, err := env.Media.Hold(ctx, bookMemory(as, from.Size()))
	if err != nil {
		return err
	}
	defer leave()
	raw := make([]byte, from.Size())
	if _, err := from.ReadAt(raw, 0); err != nil {
		return err
	}
	_, err = readBook(path, raw)
	return err
}

// wide says that the file is not UTF-8, as programs that read JSON want it.
func (b *book) wide() bool { return b.as != textedit.Encoding{} }

// with is a notebook with this JSON, spelled in the same way.
func (b *book) with(json []byte) *book { return &book{json: json, as: b.as} }

// spell returns the file with this JSON.
func (b *book) spell(json []byte) ([]byte, error) {
	if !b.wide() {
		return json, nil
	}
	return b.as.Encode(json)
}

// at is where in the file an offset of the JSON is. It is fast if each is behind the one before.
func (b *book) at(offset int) int64 {
	if !b.wide() {
		return int64(offset)
	}
	if offset < b.last.text || b.last.raw == 0 {
		b.last.text, b.last.raw = 0, b.as.Mark()
	}
	for b.last.text < offset {
		r, size := utf8.DecodeRune(b.json[b.last.text:])
		b.last.text += size
		b.last.raw += 2 * utf16.RuneLen(r)
	}
	return int64(b.last.raw)
}

// jq is a command for a part of the file, without its name. The program itself reads nothing but UTF-8.
func (b *book) jq(part string) string {
	if b.wide() {
		return "iconv -f UTF-16 -t UTF-8 | jq '" + part + "'"
	}
	return "jq '" + part + "'"
}

// lines are the lines that a range of the JSON is in, whole; first counts from 1.
func (b *book) lines(r notebook.Range) (first int, lines []byte) {
	from, to := bytes.LastIndexByte(b.json[:r.From], '\n')+1, len(b.json)
	if n := bytes.IndexByte(b.json[r.To:], '\n'); n >= 0 {
		to = r.To + n
	}
	return bytes.Count(b.json[:from], []byte("\n")) + 1, b.json[from:to]
}

// isNotebook says by its name whether a file is a Jupyter notebook.
func isNotebook(path string) bool { return strings.EqualFold(filepath.Ext(path), ".ipynb") }

// notebookRefusal says where a notebook is none. What repairs it is no tool for notebooks.
func notebookRefusal(path string, e *notebook.InvalidError) error {
	return tool.Refuse(tool.NotebookInvalid, "%s is not a Jupyter notebook at %d:%d: %s. Repair it with run_shell.",
		path, e.Line, e.Column, e.Reason)
}

// holdNotebook waits until there is room for a notebook that is read whole, and for another like it: what is made of it.
// leave ends that. notebook.ErrTooLarge and those of readBook: it is not read at all. What the path is otherwise, and why it
// cannot be read, those say who read it.
func holdNotebook(ctx context.Context, env tool.Env, path string, f filestate.File) (leave func(), err error) {
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
	as, err := bookEncoding(path, head[:n], from.Size())
	if err != nil {
		return nil, err
	}
	return env.Media.Hold(ctx, 2*bookMemory(as, from.Size()))
}
