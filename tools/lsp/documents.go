package lsp

import (
	"context"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/powernap/pkg/lsp/protocol"

	"codehand/tools/textedit"
)

const (
	maxDocument = 4 << 20 // bytes of a file that a server is handed
	maxOpen     = 64      // files that are open in one server
	maxEntries  = 50_000  // files and directories that are looked at for changes
	lookTime    = 2 * time.Second
)

// skipped are directories whose files a server is not told about when they change: there are too many, and they change
// when something is installed or built.
var skipped = []string{".git", ".hg", ".svn", "node_modules", "target", ".venv", "venv", "__pycache__", ".codehand"}

// documents are what the server knows of files. The caller of its methods holds the Client's turn.
type documents struct {
	c     *Client
	open  map[string]*document // by path
	files map[string]stamp     // that the server may have read itself, as they were when it was told last
	uses  int64
}

// A stamp tells contents of a file apart.
type stamp struct {
	size, time int64
	young      bool // the file changed just now: a second change may have the same time
}

// youth is the age up to which the time of a file proves nothing.
const youth = 2 * time.Second

func stampOf(info fs.FileInfo) stamp {
	return stamp{info.Size(), info.ModTime().UnixNano(), time.Since(info.ModTime()) < youth}
}

// same says whether nothing was written between two looks.
func (s stamp) same(later stamp) bool { return s == later && !s.young }

// A document is a file that is open in the server.
type document struct {
	version int32
	text    string
	on      stamp // of the file on the disk when it held text; zero: it may hold something else
	used    int64
}

func newDocuments(c *Client) *documents { return &documents{c: c, open: map[string]*document{}} }

// look finds the files in the root that the server is told about when they change. nil: there are too many, or the time
// is over.
func (d *documents) look(ctx context.Context) map[string]stamp {
	found, entries, end := map[string]stamp{}, 0, time.Now().Add(lookTime)
	err := filepath.WalkDir(d.c.root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what cannot be read is not there for the server either
		}
		if entries++; entries > maxEntries || entries%1000 == 0 && (ctx.Err() != nil || time.Now().After(end)) {
			return context.DeadlineExceeded
		}
		if e.IsDir() {
			if path != d.c.root && slices.Contains(skipped, e.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if !e.Type().IsRegular() || !d.c.server.watches(path) {
			return nil
		}
		if info, err := e.Info(); err == nil {
			found[path] = stampOf(info)
		}
		return nil
	})
	if err != nil {
		return nil
	}
	if d.files == nil {
		d.files = found
	}
	return found
}

// refresh tells the server what changed on the disk since it was told last. except are files whose content the caller
// tells itself. Where there is too much to look at only open files are up to date.
func (d *documents) refresh(ctx context.Context, except ...string) error {
	var events []protocol.FileEvent
	tell := func(path string, kind protocol.FileChangeType) {
		events = append(events, protocol.FileEvent{URI: uriOf(path), Type: kind})
	}
	was := d.files
	if now := d.look(ctx); now != nil {
		d.files = now
		for path, s := range now {
			if old, known := was[path]; !known {
				tell(path, protocol.Created)
			} else if !old.same(s) {
				tell(path, protocol.Changed)
			}
		}
		for path := range was {
			if _, there := now[path]; !there {
				tell(path, protocol.Deleted)
			}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(d.open)) {
		if slices.Contains(except, path) {
			continue
		}
		if err := d.reread(ctx, path); err != nil {
			return err
		}
	}
	if len(events) == 0 {
		return nil
	}
	slices.SortFunc(events, func(a, b protocol.FileEvent) int { return strings.Compare(string(a.URI), string(b.URI)) })
	return d.c.conn.Notify(ctx, "workspace/didChangeWatchedFiles", map[string]any{"changes": events})
}

// reread gives the server the content of an open file that changed on the disk.
func (d *documents) reread(ctx context.Context, path string) error {
	doc := d.open[path]
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxDocument {
		return d.shut(ctx, path)
	}
	if doc.on.same(stampOf(info)) {
		return nil
	}
	text, on, ok := readText(path)
	if !ok {
		return d.shut(ctx, path)
	}
	return d.set(ctx, path, text, on)
}

// set makes text the server's content of a file.
func (d *documents) set(ctx context.Context, path, text string, on stamp) error {
	d.uses++
	if doc := d.open[path]; doc != nil {
		doc.used, doc.on = d.uses, on
		if doc.text == text {
			return nil
		}
		doc.version++
		doc.text = text
		if err := d.c.conn.Notify(ctx, "textDocument/didChange", map[string]any{
			"textDocument":   map[string]any{"uri": uriOf(path), "version": doc.version},
			"contentChanges": []any{map[string]string{"text": text}},
		}); err != nil {
			return d.c.failure(ctx, err)
		}
		return nil
	}
	if len(d.open) >= maxOpen {
		oldest := ""
		for path, doc := range d.open {
			if oldest == "" || doc.used < d.open[oldest].used {
				oldest = path
			}
		}
		if err := d.shut(ctx, oldest); err != nil {
			return err
		}
	}
	// Versions count on when a file is opened again, so that a late report is never taken for one of the new content.
	version := d.c.reports.next(path)
	d.open[path] = &document{version: version, text: text, on: on, used: d.uses}
	if err := d.c.conn.Notify(ctx, "textDocument/didOpen", map[string]any{"textDocument": map[string]any{
		"uri": uriOf(path), "languageId": d.c.server.Knows(path), "version": version, "text": text,
	}}); err != nil {
		return d.c.failure(ctx, err)
	}
	return nil
}

// saved tells the server that an open file was written.
func (d *documents) saved(ctx context.Context, path string) error {
	return d.c.conn.Notify(ctx, "textDocument/didSave", map[string]any{
		"textDocument": map[string]any{"uri": uriOf(path)}, "text": d.open[path].text,
	})
}

// shut closes a file, if it is open.
func (d *documents) shut(ctx context.Context, path string) error {
	doc := d.open[path]
	if doc == nil {
		return nil
	}
	d.c.reports.closed(path, doc.version)
	delete(d.open, path)
	return d.c.conn.Notify(ctx, "textDocument/didClose",
		map[string]any{"textDocument": map[string]any{"uri": uriOf(path)}})
}

// readText reads a file as a server is handed it.
func readText(path string) (text string, on stamp, ok bool) {
	f, err := openPlain(path)
	if err != nil {
		return "", stamp{}, false
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxDocument {
		return "", stamp{}, false
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxDocument+1))
	if err != nil || len(raw) > maxDocument {
		return "", stamp{}, false
	}
	text, err = Text(raw)
	return text, stampOf(info), err == nil
}

// Text is the content of a file as servers are handed it: without a byte order mark, line ends as they are. The error
// says that it is no text.
func Text(raw []byte) (string, error) {
	e, err := textedit.Detect(raw[:min(len(raw), 64<<10)])
	if err != nil {
		return "", err
	}
	text, _ := e.Decode(raw[e.Mark():])
	return text, nil
}
