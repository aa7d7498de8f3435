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

// splice returns how the edits of a large file are made without all of it in memory; nil: they cannot be.
func (f *FileEdits) splice(env tool.Env) func(context.Context, io.ReaderAt, int64) (filestate.Splices, error) {
	if len(f.Edits) == 0 || f.creates() || f.Removes {
		return nil
	}
	return func(ctx context.Context, from io.ReaderAt, size int64) (filestate.Splices, error) {
		trying, writing := f.stages()
		f.notes.say(trying)
		e := edited{from: from, size: size}
		for i := range f.Edits {
			if ok, err := e.edit(ctx, f.Edits, i); err != nil || !ok {
				return nil, err
			}
		}
		for _, s := range e.list {
			if CheckSettings(env, s.Old, s.New, f.Path, f.File.Path) != nil {
				return nil, nil //nolint:nilerr // that is said of the whole content
			}
		}
		f.Report = e.report
		f.notes.say(writing)
		return e.list, nil
	}
}

// An edited is a large content on its way through several edits, each of which changes one place of it.
type edited struct {
	from   io.ReaderAt
	size   int64
	list   filestate.Splices // what the edits so far make of from
	behind int64             // where the last hunk of a patch ends
	report textedit.Report
}

// edit does edit number i, as textedit.Apply would. false: it cannot tell that.
func (e *edited) edit(ctx context.Context, all []textedit.Edit, i int) (bool, error) {
	if textedit.Cascades(all[:i], all[i]) {
		return false, nil
	}
	now := e.list.Read(e.from, e.size)
	text := boundReader{ctx, io.NewSectionReader(now, 0, now.Size())}
	place, ok, err := textedit.FindOnce(text, now.Size(), all[i])
	if err != nil || !ok {
		return false, err
	}
	old, at, err := linesAround(now, now.Size(), place)
	if err != nil || old == nil || all[i].Hunk != nil && place.At < e.behind {
		return false, err
	}
	content, report, err := textedit.Apply(old, all[i:i+1])
	if err != nil {
		return false, nil //nolint:nilerr // that is said of the whole content
	}
	line := place.Line - bytes.Count(old[:place.At-at], []byte("\n"))
	s := filestate.Splice{At: at, Line: line, Old: old, New: content}
	done := report.Edits[0]
	for n := range done.Lines {
		done.Lines[n] += s.Line
	}
	more := bytes.Count(content, []byte("\n")) - bytes.Count(old, []byte("\n"))
	for _, earlier := range e.report.Edits {
		for n, line := range earlier.Lines {
			if line > done.Lines[0] {
				earlier.Lines[n] = line + more
			}
		}
	}
	e.behind = max(place.At, place.At+int64(place.Len+len(content)-len(old)))
	e.list, e.report.Edits = e.list.With(s.Narrow()), append(e.report.Edits, done)
	return true, nil
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
