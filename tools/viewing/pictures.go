package viewing

import (
	"context"
	"errors"
	"fmt"

	"codehand/tools/media"
	"codehand/tools/results"
	"codehand/tools/tool"
)

// Picture shows an image, or says of it what there is to say if the client takes none.
func (s *File) Picture(ctx context.Context) (tool.Result, error) {
	if size := s.from.Size(); size > media.MaxImageBytes {
		return tool.Result{}, s.pictureRefusal(&media.LimitError{What: "bytes", Have: size, Most: media.MaxImageBytes})
	}
	leave, err := s.env.Media.Hold(ctx, s.from.Size())
	if err != nil {
		return tool.Result{}, err
	}
	defer leave()
	raw, err := s.read(media.MaxImageBytes)
	if err != nil {
		return tool.Result{}, err
	}
	m, err := s.env.Media.Fit(ctx, raw)
	if err != nil {
		return tool.Result{}, s.pictureRefusal(err)
	}
	facts := pictureFacts{Width: m.Width, Height: m.Height, MIME: m.Kind.MIME()}
	p := view{facts: shownFacts{pictureFacts: &facts}}
	if s.env.Client.MaxImages == 0 {
		p.text = fmt.Sprintf("Image %dx%d %v, %s, not shown: this client does not accept images. It is at %s.", m.Width,
			m.Height, m.Kind, results.Size(s.from.Size()), s.file.Path)
		return s.answer(ctx, p)
	}
	facts.ShownWidth, facts.ShownHeight = m.ShownWidth, m.ShownHeight
	p.text, p.media = pictureLine(m), []tool.Media{{MIME: m.MIME, Data: m.Data}}
	return s.answer(ctx, p)
}

// pictureLine says what an image is, and how much of it the block beside it has.
func pictureLine(m media.Image) string {
	line := fmt.Sprintf("Image %dx%d %v, shown at %dx%d.", m.Width, m.Height, m.Kind, m.ShownWidth, m.ShownHeight)
	if m.Animated {
		line += " It is animated; this is the first frame."
	}
	return line
}

// pictureRefusal puts into words why an image is not shown.
func (s *File) pictureRefusal(err error) error {
	limit, isLimit := errors.AsType[*media.LimitError](err)
	switch {
	case isLimit:
		return s.limitRefusal(limit, "Scale it down with run_shell.")
	case errors.Is(err, media.ErrSlow):
		return tool.Refuse(tool.TooLarge, "%s takes too long to decode. Scale it down with run_shell.", s.path)
	case errors.Is(err, media.ErrKind), errors.Is(err, media.ErrDamaged):
		return tool.Refuse(tool.BinaryFile,
			"This tool cannot read binary files: %s. It begins like an image but is damaged. Use run_shell with "+
				"file, xxd or strings.", s.path)
	}
	return err
}

// limitRefusal says how much there is of what is too much, how much may be, and what to do now.
func (s *File) limitRefusal(e *media.LimitError, now string) error {
	have, most := results.Count(int(e.Have))+" "+e.What, results.Count(int(e.Most))+" "+e.What
	switch {
	case e.What == "bytes":
		have, most = results.Size(e.Have), results.Size(e.Most)
	case e.Have == 0:
		have = "more " + e.What
	}
	return tool.Refuse(tool.TooLarge, "%s is too large (%s). Limit: %s. %s", s.path, have, most, now)
}

// An album collects the images of one answer.
type album struct {
	s     *File
	taken []tool.Media
	bytes int
	vain  int // images that could not be shown
}

// maxVain is how many images of one answer may fail before no more is tried: a notebook may hold thousands, and each
// holds the server's one decoder until it has failed.
const maxVain = 8

// maxAlbum is how many bytes all images of one answer have: the line that carries them, in base64, must stay below 8
// MiB.
const maxAlbum = 5 << 20

// full says that no further image is taken.
func (a *album) full() bool { return len(a.taken) >= a.s.env.Client.MaxImages }

// add takes an image, and says what stands in the text for it. Why one is not shown is said, for the text goes on.
func (a *album) add(ctx context.Context, mime string, raw []byte, alone string) (string, error) {
	if a.full() {
		why := alone
		if a.s.env.Client.MaxImages == 0 {
			why = "this client does not accept images"
		}
		return fmt.Sprintf("[%s, %s, not shown: %s]", mime, results.Size(int64(len(raw))), why), nil
	}
	if a.vain >= maxVain {
		return fmt.Sprintf("[%s, %s, not shown: too many earlier images failed]", mime, results.Size(int64(len(raw)))),
			nil
	}
	m, err := a.s.env.Media.Fit(ctx, raw)
	if err == nil {
		return a.put(m, alone), nil
	}
	a.vain++
	if errors.Is(err, media.ErrSlow) {
		a.vain = maxVain
	}
	_, isLimit := errors.AsType[*media.LimitError](err)
	switch {
	case isLimit, errors.Is(err, media.ErrSlow):
		return fmt.Sprintf("[%s, %s, not shown: too large]", mime, results.Size(int64(len(raw)))), nil
	case errors.Is(err, media.ErrKind), errors.Is(err, media.ErrDamaged):
		return fmt.Sprintf("[%s, %s, not shown: damaged, or of no known kind]", mime, results.Size(int64(len(raw)))),
			nil
	}
	return "", err
}

// put takes an image that is fit to be shown.
func (a *album) put(m media.Image, alone string) string {
	if a.full() || a.bytes+len(m.Data) > maxAlbum {
		return fmt.Sprintf("[image %dx%d, not shown: %s]", m.Width, m.Height, alone)
	}
	a.taken = append(a.taken, tool.Media{MIME: m.MIME, Data: m.Data})
	a.bytes += len(m.Data)
	return fmt.Sprintf("[image %d below: %dx%d %v, shown at %dx%d]", len(a.taken), m.Width, m.Height, m.Kind,
		m.ShownWidth, m.ShownHeight)
}
