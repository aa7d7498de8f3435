// Package archive lists what archives hold: zip (also jar, whl, docx ...) and tar, as it is or packed by gzip or bzip2.
// It unpacks nothing to the disk and runs no program. What an archive claims is a stranger's text: names come back as
// they are, and their caller makes them safe to show.
package archive

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"
)

// The limits of a listing. What is behind them is not looked at.
const (
	maxItems     = 20_000
	maxDirectory = 8 << 20   // bytes that are read of a zip to find its directory
	maxUnpacked  = 256 << 20 // bytes that are unpacked to walk through a tar
	maxNames     = 8 << 20   // bytes of all names
	maxTime      = 5 * time.Second
)

// Memory is how many bytes a listing may need, about.
const Memory = 48 << 20

// A Format is how an archive is made. The zero value is none.
type Format string

// The formats.
const (
	Zip   Format = "zip"
	Tar   Format = "tar"
	Gzip  Format = "gzip"
	Bzip2 Format = "bzip2"
)

// Sniff says what a file is by its first bytes, of which 512 are enough; "": no archive that List knows.
func Sniff(head []byte) Format {
	begins := func(mark string) bool { return bytes.HasPrefix(head, []byte(mark)) }
	switch {
	case begins("PK\x03\x04"), begins("PK\x05\x06"):
		return Zip
	case begins("\x1f\x8b\x08"):
		return Gzip
	case len(head) > 10 && begins("BZh") && head[3] >= '1' && head[3] <= '9' && string(head[4:10]) == "1AY&SY":
		return Bzip2
	case len(head) >= 512 && string(head[257:262]) == "ustar":
		return Tar
	}
	return ""
}

// An Item is one thing in an archive. All of it is what the archive says.
type Item struct {
	Name   string
	Link   string // the target of a link; "": it is none
	Size   int64  // unpacked; -1: not known
	Dir    bool
	Other  bool // a device, a FIFO: neither file, directory nor link
	Locked bool // its content needs a password
	Time   time.Time
}

// Leads says whether unpacking the entry as it is named would write outside of the directory where one unpacks, or a
// link in it leads there.
func (e Item) Leads() bool {
	out := func(name string) bool {
		name = strings.ReplaceAll(name, `\`, "/")
		drive := len(name) > 1 && name[1] == ':'
		clean := path.Clean(name)
		return drive || strings.HasPrefix(name, "/") || clean == ".." || strings.HasPrefix(clean, "../")
	}
	if out(e.Name) {
		return true
	}
	if e.Link == "" {
		return false
	}
	return strings.HasPrefix(e.Link, "/") || out(path.Join(path.Dir(e.Name), e.Link))
}

// A Listing is what an archive holds.
type Listing struct {
	Form    string // zip, tar, tar.gz, tar.bz2, gzip, bzip2: the last two have one file, which is no tar
	Items   []Item // in the order of the archive, at most maxItems
	Cut     string // why there may be more, for a person; "": these are all
	Comment string // of a zip, as it is
}

// DamagedError says what is wrong with an archive.
type DamagedError struct {
	Format Format
	Err    error
}

func (e *DamagedError) Error() string { return fmt.Sprintf("damaged %s: %v", e.Format, e.Err) }

// Unwrap returns what is wrong.
func (e *DamagedError) Unwrap() error { return e.Err }

// errDirectory says that the directory of a zip is longer than what is read of one.
var errDirectory = errors.New("its directory is too long")

// List lists an archive of a format that Sniff returned, and needs Memory at most. Errors: *DamagedError, that of
// reading r, that of ctx.
func List(ctx context.Context, r io.ReaderAt, size int64, kind Format) (Listing, error) {
	late, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	from := &reading{ctx: late, r: r}
	var l Listing
	var err error
	switch kind {
	case Zip:
		l, err = listZip(from, size)
	case Tar:
		l, err = listTar(from, io.NewSectionReader(from, 0, size), "tar")
	case Gzip, Bzip2:
		l, err = listPacked(from, size, kind)
	default:
		err = fmt.Errorf("no archive: %q", kind)
	}
	switch {
	case ctx.Err() != nil:
		return Listing{}, context.Cause(ctx)
	case late.Err() != nil:
		l.Cut = fmt.Sprintf("looking through it took longer than %d s", int(maxTime.Seconds()))
	case from.err != nil:
		return Listing{}, from.err
	case err != nil:
		return Listing{}, &DamagedError{kind, err}
	}
	return l, nil
}

// A reading is a file that is read until its context ends. It tells errors of the file from those of its content.
type reading struct {
	ctx  context.Context
	r    io.ReaderAt
	most int64 // bytes that may be read; 0: any
	n    int64
	err  error
}

func (r *reading) ReadAt(p []byte, at int64) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	if r.most > 0 && r.n+int64(len(p)) > r.most {
		return 0, errDirectory
	}
	n, err := r.r.ReadAt(p, at)
	r.n += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

func listZip(from *reading, size int64) (Listing, error) {
	l := Listing{Form: "zip"}
	from.most = maxDirectory
	z, err := zip.NewReader(from, size)
	switch {
	case errors.Is(err, errDirectory):
		l.Cut = "its directory is too long to be read here"
		return l, nil
	case err != nil && !errors.Is(err, zip.ErrInsecurePath):
		return l, err
	}
	l.Comment = z.Comment
	for _, f := range z.File {
		if len(l.Items) == maxItems {
			l.Cut = fmt.Sprintf("it has %d entries", len(z.File))
			break
		}
		l.Items = append(l.Items, zipItem(f))
	}
	return l, nil
}

// maxName is how long a name may be that is kept, in bytes: no system unpacks longer ones.
const maxName = 4096

func zipItem(f *zip.File) Item {
	mode := f.Mode()
	return Item{
		Name: f.Name[:min(len(f.Name), maxName)], Size: int64(min(f.UncompressedSize64, 1<<62)),
		Dir: strings.HasSuffix(f.Name, "/"), Locked: f.Flags&1 != 0, Time: f.Modified,
		Other: !mode.IsRegular() && !mode.IsDir() && mode&fs.ModeSymlink == 0,
	}
}

// listPacked lists a tar that is packed, or the one file that is.
func listPacked(from *reading, size int64, kind Format) (Listing, error) {
	packed := bufio.NewReaderSize(io.NewSectionReader(from, 0, size), 64<<10)
	form, name, at := "bzip2", "", time.Time{}
	var content io.Reader
	if kind == Gzip {
		z, err := gzip.NewReader(packed)
		if err != nil {
			return Listing{}, err
		}
		form, name, at, content = "gzip", z.Name, z.ModTime, z
	} else {
		content = bzip2.NewReader(packed)
	}
	limited := &bounded{r: content, left: maxUnpacked}
	head := bufio.NewReaderSize(limited, 1024)
	first, err := head.Peek(512)
	if err != nil && !errors.Is(err, io.EOF) {
		return Listing{}, err
	}
	if Sniff(first) == Tar {
		short := map[Format]string{Gzip: "tar.gz", Bzip2: "tar.bz2"}[kind]
		l, err := listTar(from, head, short)
		if limited.spent {
			l.Cut, err = fmt.Sprintf("only the first %d MiB of it were unpacked", maxUnpacked>>20), nil
		}
		return l, err
	}
	n, err := io.Copy(io.Discard, head)
	one := Item{Name: name[:min(len(name), maxName)], Size: n, Time: at}
	if limited.spent {
		one.Size, err = -1, nil
	}
	return Listing{Form: form, Items: []Item{one}}, err
}

// bounded reads at most so many bytes, and then says that it was spent.
type bounded struct {
	r     io.Reader
	left  int64
	spent bool
}

var errSpent = errors.New("too much to unpack")

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		b.spent = true
		return 0, errSpent
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// listTar lists a tar. What it holds is skipped, by seeking where r can.
func listTar(from *reading, r io.Reader, form string) (Listing, error) {
	l := Listing{Form: form}
	t := tar.NewReader(r)
	for held := 0; ; {
		h, err := t.Next()
		switch {
		case errors.Is(err, io.EOF):
			return l, nil
		case err != nil && !errors.Is(err, tar.ErrInsecurePath):
			if len(l.Items) > 0 && from.err == nil { // what was listed is true
				l.Cut = "it is damaged behind them"
				return l, nil
			}
			return l, err
		case len(l.Items) == maxItems:
			l.Cut = fmt.Sprintf("it has more than %d entries", maxItems)
			return l, nil
		}
		e := tarItem(h)
		if held += len(e.Name) + len(e.Link); held > maxNames {
			l.Cut = "its names are too long"
			return l, nil
		}
		l.Items = append(l.Items, e)
	}
}

func tarItem(h *tar.Header) Item {
	e := Item{Name: h.Name[:min(len(h.Name), maxName)], Size: h.Size, Time: h.ModTime, Dir: h.Typeflag == tar.TypeDir}
	switch h.Typeflag {
	case tar.TypeLink, tar.TypeSymlink:
		e.Link = h.Linkname[:min(len(h.Linkname), maxName)]
		if h.Typeflag == tar.TypeLink { // it names an entry, not a place beside this one
			e.Link = strings.Repeat("../", strings.Count(path.Clean(h.Name), "/")) + e.Link
		}
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo:
		e.Other = true
	}
	return e
}
