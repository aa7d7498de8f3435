package search

import (
	"os"
	"time"

	"codehand/tools/search/ignore"
)

const (
	defaultWithin   = 20 * time.Second
	defaultCountFor = 100 * time.Millisecond
	defaultMaxLine  = 500      // runes
	defaultMaxText  = 16 << 20 // bytes
	maxContext      = 1000     // lines before or after a match
)

// A Place is where a query begins: Dir is a handle, Name the path below it ("" or "." is Dir itself), Path the absolute
// path for messages. What Name leads to is searched whatever ignore rules say.
type Place struct {
	Dir  *os.Root
	Name string
	Path string
}

// A Scope says which files a query looks at. The zero Scope is the default walk: hidden files too, ignore files
// honoured, .git .svn .hg .bzr .jj .sl never entered, links never followed, regular files only.
type Scope struct {
	Place Place
	// lines as in an ignore file, with braces, relative to Place; "!" excludes, the last that matches decides
	Globs    []string
	Types    []string                   // names of types.tsv; any of them; must hold beside Globs
	Ignored  bool                       // also what ignore files leave out
	LeftOut  bool                       // only what they leave out
	SkipDirs []string                   // directory names not entered
	Omit     *ignore.List               // left out by name (relative to Place), and counted
	Skip     func(path string) bool     // absolute path; nil: none. Called from many goroutines
	SkipID   func(dev, ino uint64) bool // for reported files with more than one link; the same
}

// A Mode says what a Grep returns. The zero Mode stops at the first match of each file.
type Mode int

// The modes.
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
	Newest                   bool // order by mtime, newest first; false: by path
	Spans                    bool // where the matches are in each line
	Before, After            int  // lines of context, 0 to 1,000
	Offset, Limit            int  // of matching lines in mode Lines, else of files; Limit 0: all
	MaxLine                  int  // runes; 0: 500
	// bytes of all texts in the answer, a line counting as 16 at least; 0: 16 MiB. What is over it is only counted
	MaxText int64
	Rank    *Rank // mode Lines below a directory: what is shown of more than fits; nil: by path
	// Files and directories to look at, in path order by one worker; 0: all. An answer that it ended is not Exact, and
	// Coverage.Why is Work.
	MaxWork int
	// the whole time, and the time for totals once the answer is fixed; 0: 20 s, 100 ms
	Within, CountFor time.Duration
	Progress         func(files, bytes int64) // at most once a second, from the caller's goroutine; must not block
}

// A FileQuery asks for names. Pattern is doublestar syntax below Place.
type FileQuery struct {
	Scope
	Pattern       string
	Offset, Limit int                      // Limit 0: all
	Within        time.Duration            // 0: 20 s
	Progress      func(files, bytes int64) // as in GrepQuery; bytes is 0
}

// withDefaults replaces zero values by what they mean.
func (q GrepQuery) withDefaults() GrepQuery {
	q.Before = min(max(q.Before, 0), maxContext)
	q.After = min(max(q.After, 0), maxContext)
	q.Offset, q.Limit = max(q.Offset, 0), max(q.Limit, 0)
	if q.Mode != Lines {
		q.Before, q.After = 0, 0
	}
	if q.MaxLine <= 0 {
		q.MaxLine = defaultMaxLine
	}
	if q.MaxText <= 0 {
		q.MaxText = defaultMaxText
	}
	if q.Within <= 0 {
		q.Within = defaultWithin
	}
	if q.CountFor <= 0 {
		q.CountFor = defaultCountFor
	}
	return q
}
