// Package media turns untrusted images and PDF files into what a model can look at.
//
// It checks the header of an image before it decodes anything, decodes with bounded memory and time, and scales the
// image down (fit). Poppler's programs turn the pages of a PDF into text and images (Reader.Pages). They run at level 1
// of tools/sandbox: with limits, but with the rights of this process, since the kernel does not confine them yet. This
// process never parses a PDF.
//
// It knows no paths, no tools and no texts for the model. It looks only at the bytes of a file, not at its name.
package media

import (
	"bytes"
	"errors"
	"fmt"
)

// A Kind is what the first bytes of a file say that it is.
type Kind int

// The kinds. None is everything else.
const (
	None Kind = iota
	PNG
	JPEG
	GIF
	WebP
	PDF
)

// String names the kind as people do ("png"); "": None.
func (k Kind) String() string {
	return [...]string{None: "", PNG: "png", JPEG: "jpeg", GIF: "gif", WebP: "webp", PDF: "pdf"}[k]
}

// MIME is the media type ("image/png"); "": None.
func (k Kind) MIME() string {
	switch k {
	case None:
		return ""
	case PDF:
		return "application/pdf"
	}
	return "image/" + k.String()
}

// Image says whether fit takes the kind.
func (k Kind) Image() bool { return k >= PNG && k <= WebP }

// SniffBytes is how many bytes Sniff looks at, at most.
const SniffBytes = 16

// Sniff tells by the first SniffBytes bytes of a file what it is. A PDF must begin with its mark: its readers allow
// other bytes before, but a text that speaks of PDF files is a text.
func Sniff(head []byte) Kind {
	switch {
	case bytes.HasPrefix(head, []byte("\x89PNG\r\n\x1a\n")):
		return PNG
	case bytes.HasPrefix(head, []byte("\xff\xd8\xff")):
		return JPEG
	case bytes.HasPrefix(head, []byte("GIF87a")), bytes.HasPrefix(head, []byte("GIF89a")):
		return GIF
	case len(head) >= SniffBytes && string(head[:4]) == "RIFF" && string(head[8:15]) == "WEBPVP8":
		return WebP
	case bytes.HasPrefix(head, []byte("%PDF-")):
		return PDF
	}
	return None
}

// What makes an image or a PDF useless. Each may be wrapped with what was found.
var (
	// ErrKind: the bytes are no image or PDF that is known, whatever the file is called.
	ErrKind = errors.New("not a known kind of file")
	// ErrDamaged: truncated, or not what its format demands.
	ErrDamaged = errors.New("damaged")
	// ErrSlow: it took longer than allowed. Nothing is left running.
	ErrSlow = errors.New("took too long")
	// ErrEncrypted: the PDF needs a password.
	ErrEncrypted = errors.New("encrypted")
)

// A LimitError says that something is larger than what is read.
type LimitError struct {
	What       string // "bytes", "pixels", "pages", "bytes of memory", "pixels on one side"
	Have, Most int64  // Have 0: unknown, but more
}

func (e *LimitError) Error() string {
	if e.Have == 0 {
		return fmt.Sprintf("more than %d %s", e.Most, e.What)
	}
	return fmt.Sprintf("%d %s, at most %d", e.Have, e.What, e.Most)
}
