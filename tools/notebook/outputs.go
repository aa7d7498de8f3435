package notebook

import (
	"encoding/base64"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// maxText is how many characters of output one cell shows.
	maxText = 10_000

	// maxRaw is how many bytes of one text are looked at to find them: control sequences take room, and do not count.
	maxRaw = 1 << 20

	// maxOutputs is how many outputs of one cell are shown. A chart per loop is a habit; a thousand are a mistake.
	maxOutputs = 100

	// maxImage is how many bytes an image may have. A larger one is shown nowhere, and costs three times as much to
	// decode.
	maxImage = 20 << 20
)

// An Output is something that a cell has printed or shown. Of one that is neither text nor an image only MIME is given.
type Output struct {
	MIME string // text/plain, image/png, ...
	Text string

	doc   doc
	image span // of its base64; zero: it is none
}

// Image decodes the image, anew each time, so that those of one cell are never in memory together; nil: it is none, or
// cannot be decoded. Long: it is not decoded, because it has more than 20 MiB.
func (o Output) Image() (data []byte, long bool) {
	if o.image.to == 0 {
		return nil, false
	}
	most := base64.RawStdEncoding.EncodedLen(maxImage)
	text, whole := o.doc.appendBase64(make([]byte, 0, min(most, o.image.to-o.image.from)), o.image, most)
	if !whole || len(text) == 0 {
		return nil, !whole
	}
	// In the place of the text, block by block: an image may have 20 MiB.
	data = text[:0]
	for block := make([]byte, 3<<10); len(text) > 0; {
		whole := min(len(text), base64.RawStdEncoding.EncodedLen(len(block)))
		n, err := base64.RawStdEncoding.Decode(block, text[:whole])
		if err != nil {
			return nil, false
		}
		data, text = append(data, block[:n]...), text[whole:]
	}
	return data, false
}

// Outputs returns what the cell has printed and shown, in order. Text has no control sequences of terminals. Of an
// output in several forms the plain text and one image are given, or else one other text. Cut: there is more text than
// 10,000 characters, or there are more than 100 outputs.
func (c Cell) Outputs() (outputs []Output, cut bool) {
	list, ok := c.doc.get(c.span, "outputs")
	if !ok {
		return nil, false
	}
	s := &shown{doc: c.doc, left: maxText}
	for v := range c.doc.elements(list) {
		if len(s.outputs) >= maxOutputs {
			return s.outputs, true
		}
		s.add(v)
	}
	return s.outputs, s.cut
}

// shown gathers the outputs of one cell.
type shown struct {
	doc     doc
	outputs []Output
	left    int // characters that may be added
	cut     bool
}

func (s *shown) add(v span) {
	kind, _ := s.doc.get(v, "output_type")
	if !s.doc.is(v, '{') || kind.to == 0 {
		return
	}
	switch s.doc.word(kind) {
	case "stream":
		if text, ok := s.doc.get(v, "text"); ok {
			s.text("text/plain", text, "")
		}
	case "error", "pyerr":
		s.failure(v)
	case "display_data", "execute_result", "update_display_data", "pyout":
		s.bundle(v)
	}
}

// failure adds the traceback, or the name and the text of the error if there is none.
func (s *shown) failure(v span) {
	if trace, ok := s.doc.get(v, "traceback"); ok && s.text("text/plain", trace, "\n") {
		return
	}
	var parts []string
	for _, key := range []string{"ename", "evalue"} {
		if part, ok := s.doc.get(v, key); ok {
			text, _ := s.doc.appendLines(nil, part, maxRaw)
			parts = append(parts, string(text))
		}
	}
	s.put("text/plain", strings.Join(parts, ": "))
}

// old are the names of forms in nbformat 3, which has them beside the other keys of an output.
func old(name string) string {
	switch name {
	case "text":
		return "text/plain"
	case "html", "latex":
		return "text/" + name
	case "png", "jpeg":
		return "image/" + name
	case "svg":
		return "image/svg+xml"
	case "json", "javascript":
		return "application/" + name
	}
	return ""
}

// bundle adds an output that has one thing in several forms.
func (s *shown) bundle(v span) {
	texts := []string{"text/plain", "text/markdown", "text/latex", "text/html"}
	images := []string{"image/png", "image/jpeg", "image/gif", "image/webp"}
	forms, first := map[string]span{}, ""
	data, ok := s.doc.get(v, "data")
	if !ok {
		data = v
	}
	for m := range s.doc.members(data) {
		name := s.doc.name(m.key)
		if !ok {
			name = []byte(old(string(name)))
		}
		if first == "" && len(name) > 0 {
			first = printable(name)
		}
		// A name is compared and not copied: there may be millions.
		for _, known := range [][]string{texts, images} {
			if i := slices.IndexFunc(known, func(form string) bool { return form == string(name) }); i >= 0 {
				forms[known[i]] = m.value
			}
		}
	}
	before := len(s.outputs)
	has := func(name string) bool { return forms[name].to > 0 }
	image := slices.IndexFunc(images, has)
	if i := slices.IndexFunc(texts, has); i == 0 || i > 0 && image < 0 {
		s.text(texts[i], forms[texts[i]], "")
	}
	if image >= 0 {
		s.outputs = append(s.outputs, Output{MIME: images[image], doc: s.doc, image: forms[images[image]]})
	}
	if len(s.outputs) == before && len(forms) == 0 && first != "" {
		s.outputs = append(s.outputs, Output{MIME: first})
	}
}

// text adds the string v, or the strings of the list v with sep between them, and says whether there was any text.
func (s *shown) text(mime string, v span, sep string) bool {
	if s.left == 0 {
		// Nothing of it is shown, and it need not be decoded to know that there is more.
		s.cut = true
		return true
	}
	var text []byte
	whole := true
	if s.doc.is(v, '[') && sep != "" {
		for line := range s.doc.elements(v) {
			if len(text) > 0 {
				text = append(text, sep...)
			}
			if text, whole = s.doc.appendLines(text, line, maxRaw); !whole {
				break
			}
		}
	} else {
		text, whole = s.doc.appendLines(nil, v, maxRaw)
	}
	s.cut = s.cut || !whole
	return s.put(mime, string(text))
}

// put adds text as far as it fits, and says whether there was any.
func (s *shown) put(mime, text string) bool {
	if text = plain(text); text == "" {
		return false
	}
	if n := utf8.RuneCountInString(text); n > s.left {
		text = cutAt(text, s.left)
		s.cut = true
	}
	s.left -= utf8.RuneCountInString(text)
	if text != "" {
		s.outputs = append(s.outputs, Output{MIME: mime, Text: text})
	}
	return true
}

// cutAt returns the first n characters of text, which has more.
func cutAt(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}

// plain takes the control sequences of terminals out: colors and the like (ESC [), titles and links (ESC ]), and the
// short others.
func plain(text string) string {
	if strings.IndexByte(text, '\x1b') < 0 {
		return text
	}
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, "\x1b")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		text = after[sequence(after):]
	}
}

// sequence is the length of what belongs to the ESC before text.
func sequence(text string) int {
	if text == "" {
		return 0
	}
	switch text[0] {
	case '[':
		for i := 1; i < len(text); i++ {
			switch c := text[i]; {
			case '@' <= c && c <= '~':
				return i + 1
			case c < ' ' || c > '?':
				return i
			}
		}
		return len(text)
	case ']':
		for i := 1; i < len(text); i++ {
			switch text[i] {
			case '\a':
				return i + 1
			case '\x1b', '\n':
				return i // ESC \ ends it, and is taken out as a sequence of its own
			}
		}
		return len(text)
	}
	n := 0
	for n < len(text)-1 && ' ' <= text[n] && text[n] <= '/' { // the choice of a character set
		n++
	}
	if '0' <= text[n] && text[n] <= '~' {
		return n + 1
	}
	return n
}
