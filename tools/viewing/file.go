package viewing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"codehand/filestate"
	"codehand/tools/media"
	"codehand/tools/results"
	"codehand/tools/textedit"
	"codehand/tools/tool"
	"codehand/tools/wording"
	"codehand/tools/workspace"
)

// headSize is how much of a file tells what it is, in bytes; textedit.Detect wants as much.
const headSize = 64 << 10

// A File is a file that is open to be shown, to one call and in one goroutine. Its views return refusals, errors of the
// engines for wording.PathRefusal, and disk.ErrMoved if the file changed while it was shown: open it again then.
type File struct {
	env    tool.Env
	path   string // as the caller has it
	file   filestate.File
	from   *filestate.Reading
	Head   []byte    // the first 64 KiB at most
	Tokens int       // that a view may have at most
	book   *Notebook // set if it is shown as a notebook

	claimed int // characters that are counted as shown by the turn of the call, and not used yet
}

// Open opens a file. Errors are for wording.PathRefusal. The caller closes the file.
func Open(ctx context.Context, env tool.Env, path string) (*File, error) {
	f, err := env.Open(path, workspace.Read)
	if err != nil {
		return nil, err
	}
	s := &File{env: env, path: path, file: f, Tokens: env.Prefs.ReadMaxTokens}
	if s.from, err = env.Files.Open(ctx, f); err == nil {
		s.Head, err = s.read(headSize)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close ends the reading; nothing can be shown afterwards.
func (s *File) Close() {
	if s.from != nil {
		_ = s.from.Close() // it was only read
	}
	_ = s.file.Close()
	s.giveBack()
}

// room is what this call may show of the file. It is taken from what the calls of its turn may show together, so that
// a turn that is nearly full gets a shorter view, which says how to go on and counts as far as it goes.
func (s *File) room() results.Form {
	s.giveBack()
	env := s.env
	if env.Results != nil && env.Limit > 0 {
		s.claimed = env.Results.Claim(env.Limit)
		env.Limit = s.claimed
	}
	return wording.Form(env, 500, 2)
}

func (s *File) giveBack() {
	if s.claimed > 0 {
		s.env.Results.Count(-s.claimed)
		s.claimed = 0
	}
}

// read returns the first bytes of the file, at most most.
func (s *File) read(most int64) ([]byte, error) {
	data := make([]byte, min(most, s.from.Size()))
	n, err := s.from.ReadAt(data, 0)
	if errors.Is(err, io.EOF) { // it shrank, which comes out when what was seen is noted
		err = nil
	}
	return data[:n], err
}

// A view is what an answer shows of a file.
type view struct {
	lead  string // first line with its end, or ""
	text  string
	media []tool.Media
	notes []string // said in the last line, before the version
	facts shownFacts

	spans []filestate.Span // what is shown; nil: the whole file
	what  string           // likewise, for the stub: " (lines 1-2)"
	form  string           // in which they are shown, if a file of this kind has several; "": the usual one
	fresh bool             // what was shown before cannot be told from this, so it is never a stub
	quiet bool             // the last line has no version
}

// answer notes what a sheet shows and makes the result of it, which is a stub if nothing has changed since the last
// one. disk.ErrMoved: the file changed meanwhile.
func (s *File) answer(ctx context.Context, p view) (tool.Result, error) {
	sight, err := s.from.SawIn(ctx, p.form, p.spans...)
	if err != nil && !errors.Is(err, filestate.ErrMemory) {
		return tool.Result{}, err
	}
	p.facts.Hash = sight.Sum
	res := tool.Result{Shows: []string{s.file.Path}, Counted: s.claimed,
		Meta: tool.Meta{Version: string(sight.Version), Data: wording.Data(p.facts)}}
	s.claimed = 0 // it is the result's
	prefs := s.env.Prefs
	if sight.Again%2 == 1 && !p.fresh && prefs.ReadDedup && !s.env.Shared &&
		filepath.Dir(s.file.Path) != s.env.Results.Dir() {
		res.Text = "File unchanged since your last read" + p.what +
			". Use that content; call read_file again to get it anyway."
		return res, nil
	}
	if err != nil {
		p.notes = append(p.notes, "this read could not be remembered")
	}
	if sight.Version != "" && !p.quiet && (s.env.Client.Modern || prefs.ReadVersion) {
		p.notes = append(p.notes, "version "+string(sight.Version))
	}
	res.Text, res.Media = p.lead+p.text, p.media
	if len(p.notes) > 0 {
		res.Text += "\n[" + strings.Join(p.notes, " · ") + "]"
	}
	return res, nil
}

// reminder answers for a file of which there is nothing to show.
func reminder(format string, args ...any) string {
	return "<system-reminder>Warning: the file exists but " + fmt.Sprintf(format, args...) + "</system-reminder>"
}

// shownFacts are what an answer knows for programs, besides the version. Of the first three one is set.
type shownFacts struct {
	*results.Facts
	*pictureFacts
	*pieceFacts
	Hash string `json:"hash,omitempty"` // SHA-256 of the whole content; "": only parts of it were hashed
}

// pictureFacts are those of an image.
type pictureFacts struct {
	Width       int    `json:"width"`
	Height      int    `json:"height"`
	ShownWidth  int    `json:"shownWidth,omitempty"`
	ShownHeight int    `json:"shownHeight,omitempty"`
	MIME        string `json:"mime"`
}

// pieceFacts are those of a file that is shown in pieces other than lines.
type pieceFacts struct {
	Unit  string `json:"unit"` // cells, pages
	Shown int    `json:"shown"`
	Start int    `json:"start"`
	Total int    `json:"total"`
	More  bool   `json:"more"` // others follow
}

// ReadHead returns the first 64 KiB at most of a file, or refuses what they show to be no text.
func ReadHead(r io.ReaderAt) ([]byte, error) {
	head := make([]byte, headSize)
	n, err := r.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	head = head[:n]
	if media.Sniff(head) != media.None {
		return nil, textedit.ErrBinary
	}
	_, err = textedit.Detect(head)
	return head, err
}
