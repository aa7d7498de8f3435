package editing

import (
	"bytes"
	"context"
	"io"

	"codehand/filestate"
	"codehand/tools/textedit"
	"codehand/tools/tool"
)

// around is how many bytes on both sides of a place in a large file are looked through for whole lines.
const around = 64 << 10

// splice returns how the one edit of a large file is made without all of it in memory; nil: it cannot be.
func (f *FileEdits) splice(env tool.Env) func(context.Context, io.ReaderAt, int64) (*filestate.Splice, error) {
	if len(f.Edits) != 1 || f.creates() || f.Removes {
		return nil
	}
	return func(ctx context.Context, from io.ReaderAt, size int64) (*filestate.Splice, error) {
		trying, writing := f.stages()
		f.notes.say(trying)
		place, ok, err := textedit.FindOnce(boundReader{ctx, io.NewSectionReader(from, 0, size)}, f.Edits[0])
		if err != nil || !ok {
			return nil, err
		}
		old, at, err := linesAround(from, size, place)
		if err != nil || old == nil {
			return nil, err
		}
		content, report, err := textedit.Apply(old, f.Edits)
		if err != nil || CheckSettings(env, old, content, f.Path, f.File.Path) != nil {
			return nil, nil //nolint:nilerr // that is said of the whole content
		}
		line := place.Line - bytes.Count(old[:place.At-at], []byte("\n"))
		for i := range report.Edits[0].Lines {
			report.Edits[0].Lines[i] += line
		}
		f.Report = report
		f.notes.say(writing)
		return &filestate.Splice{At: at, Line: line, Old: old, New: content}, nil
	}
}

// linesAround returns the lines around a place of a file of that size, and where they begin. nil: a line is too long,
// or what was read is not the UTF-8 that the whole is.
func linesAround(from io.ReaderAt, size int64, place textedit.Once) (text []byte, at int64, err error) {
	at = max(0, place.At-around)
	end := min(size, place.At+int64(place.Len)+around)
	text = make([]byte, end-at)
	if n, err := from.ReadAt(text, at); n < len(text) {
		return nil, 0, err
	}
	if at > 0 {
		start := bytes.IndexByte(text[:place.At-at], '\n') + 1
		if start == 0 {
			return nil, 0, nil
		}
		text, at = text[start:], at+int64(start)
	}
	if end < size {
		behind := int(place.At-at) + place.Len
		last := bytes.LastIndexByte(text[behind:], '\n')
		if last < 0 {
			return nil, 0, nil
		}
		text = text[:behind+last+1]
	}
	if e, err := textedit.Detect(text); err != nil || e.String() != (textedit.Encoding{}).String() {
		return nil, 0, nil //nolint:nilerr // the whole says which encoding it has
	}
	return text, at, nil
}

// A boundReader ends with its ctx.
type boundReader struct {
	ctx  context.Context
	from io.Reader
}

// Read reads as io.Reader says.
func (r boundReader) Read(p []byte) (int, error) {
	if err := context.Cause(r.ctx); err != nil {
		return 0, err
	}
	return r.from.Read(p)
}
