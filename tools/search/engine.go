// Package search finds files by name and by content, and returns pages of a text.
//
// It runs in the process, starts no program, follows no links, and says in every answer whether the answer is
// complete. Everything is reached from a directory handle. It knows no tools and no sessions.
package search

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"time"

	"codehand/tools/search/ignore"
)

// Options of an Engine. Zero values mean what the comment says.
type Options struct {
	Workers    int    // 0: min(GOMAXPROCS, 16)
	Memory     int64  // tables and signatures; 0: section 10.6
	Index      bool   // false: tables only
	Watch      bool   // false: stat mode everywhere
	Outside    bool   // read ignore files above a root
	Home       string // of the user's global git configuration; "": none
	ConfigHome string // XDG_CONFIG_HOME or its default
	Log        *slog.Logger
}

// An Engine serves all sessions of a process. It is safe for concurrent use.
type Engine struct { /* unexported */
}

func New(o Options) *Engine { panic("skeleton") }

// Close ends background work and waits for it.
func (e *Engine) Close() error { panic("skeleton") }

// A Place is where a query begins: Dir is a handle, Name the path below it, Path the absolute path for messages.
type Place struct {
	Dir  *os.Root
	Name string
	Path string
}

// A Scope says which files a query looks at. The zero Scope is the default walk.
type Scope struct {
	Place    Place
	Globs    []string                   // 4.2; "!" excludes
	Types    []string                   // names of types.tsv; any of them
	Ignored  bool                       // also what ignore files leave out
	SkipDirs []string                   // directory names not entered
	Omit     *ignore.List               // left out by name, and counted
	Skip     func(path string) bool     // absolute path; nil: none. Called from many goroutines
	SkipID   func(dev, ino uint64) bool // for files with more than one link
}

// A Mode says what a Grep returns. The zero Mode stops at the first match of each file.
type Mode int

const (
	FilesOnly Mode = iota
	Lines
	Count
)

// A GrepQuery is one search.
type GrepQuery struct {
	Scope
	Pattern                  string
	Fold, Literal, Multiline bool
	Mode                     Mode
	Newest                   bool // order by mtime; the tool sets it for FilesOnly
	Spans                    bool // matched parts instead of lines
	Before, After            int  // lines of context, 0 to 1,000
	Offset, Limit            int  // Limit 0: all
	MaxLine                  int  // runes; 0: 500
	MaxText                  int64
	Within, CountFor         time.Duration            // 0: 20 s, 100 ms
	Progress                 func(files, bytes int64) // at most once a second; must not block
}

// A GrepAnswer holds what was found, in order. Slices are the caller's.
type GrepAnswer struct {
	Files          []FileHits
	NFiles, NLines int  // of all matches, also of those that were cut
	Exact          bool // false: NFiles and NLines are lower bounds
	More           bool // entries follow after Offset+Limit
	Coverage       Coverage
}

// FileHits are the hits of one file.
type FileHits struct {
	Path    string // absolute
	ModTime time.Time
	NLines  int // matching lines; 1 in mode FilesOnly
	Binary  bool
	Lines   []Line
}

// A Line is one line of text, without its end.
type Line struct {
	N        int // from 1
	Text     string
	Context  bool // no match itself
	Cut      bool // Text is the window From:To (bytes of the line) around the first match
	From, To int
	Spans    []Span // of matches in Text, if asked for
}

// Grep searches. Errors: *PatternError, *TypeError, ErrNotRegular, ErrGone (the place), ctx.Err(). A time-out is no error.
func (e *Engine) Grep(ctx context.Context, q GrepQuery) (GrepAnswer, error) { panic("skeleton") }

// A FileQuery asks for names. Pattern is doublestar syntax below Place.
type FileQuery struct {
	Scope
	Pattern       string
	Offset, Limit int
	Within        time.Duration
	Progress      func(files, bytes int64)
}

// A FileAnswer holds the newest files.
type FileAnswer struct {
	Files    []FileInfo // Path, ModTime, Size
	N        int        // all that match
	Coverage Coverage
}

func (e *Engine) Files(ctx context.Context, q FileQuery) (FileAnswer, error) { panic("skeleton") }

// Page returns lines of a text.
func (e *Engine) Page(ctx context.Context, r io.ReaderAt, s Stamp, q PageQuery) (Page, error) {
	panic("skeleton")
}

// A PageQuery asks for Lines lines from First on (counted from 1).
type PageQuery struct {
	First, Lines int
	MaxLine      int   // runes of one line; 0: no limit
	MaxBytes     int64 // of all texts
}

type Page struct {
	Lines []PageLine // Text without its end, From and To (bytes in the file, with its end), Cut (runes left out)
	Total int
	Exact bool // false: Total is a lower bound
	More  bool // lines follow
}

// A Span is a range of bytes of a line's text, [From, To).
type Span struct{ From, To int }

// A FileInfo is one file of a listing.
type FileInfo struct {
	Path    string // absolute
	ModTime time.Time
	Size    int64
}

// A PageLine is one line of a page.
type PageLine struct {
	Text     string // without its end; a lone CR before the LF is not part of it
	From, To int64  // bytes in the file, with its end
	Cut      int    // runes left out because the line is over MaxLine
}

// A Reason says why an answer is not complete.
type Reason string

// The reasons.
const (
	NoReason Reason = ""
	Time     Reason = "time"
	Memory   Reason = "memory"
	TooLarge Reason = "too large"
)

// A PatternError says what is wrong with a pattern.
type PatternError struct {
	Offset int    // byte in the pattern
	Kind   string // syntax, look-around, back-reference, count, class, word-edge, newline, too large
	Text   string
}

func (e *PatternError) Error() string { return e.Text }

// A TypeError says that a file type is not known.
type TypeError struct {
	Name string
	Near []string
}

func (e *TypeError) Error() string { return "unknown file type " + e.Name }

// The errors about the place of a query.
var (
	ErrNotRegular = errors.New("neither a regular file nor a directory")
	ErrGone       = errors.New("the place of the query is gone")
)

// A Stamp tells whether a file may have changed.
type Stamp struct {
	Dev, Ino, Nlink uint64
	Size            int64
	Mtime, Ctime    int64 // ns
	Racy            bool  // 10.4
}

// A Coverage says what an answer is about (8.5).
type Coverage struct {
	Complete                                                                 bool
	Why                                                                      Reason // None, Time, Memory, TooLarge
	Searched                                                                 int    // files
	Bytes                                                                    int64
	Left, Unreadable, Binary, Partial, Special, Omitted, TooLarge, LongLines Some
	Mode                                                                     string // "walk", "stat", "watch": how files were chosen; for logs and tests
}

// Some is a number of things and the first five.
type Some struct {
	N     int
	Paths []string
}
