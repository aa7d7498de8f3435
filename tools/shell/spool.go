package shell

import (
	"io"
	"os"
	"strings"
)

// A spool is the file that one stream of a command is written to.
type spool struct {
	file    *os.File
	path    string
	pos     int64     // how far it was copied
	base    int64     // bytes that came before the beginning of the file
	lines   int       // line ends copied
	part    bool      // what was copied last has no line end
	punched int64     // end of the part that was released
	echo    io.Writer // gets what is copied, too; nil: nobody looks on
}

// open makes the file. In append mode, because the command's processes share it: two that were given the same file
// without it would overwrite each other.
func (s *spool) open(path string) (err error) {
	s.path = path
	s.file, err = os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	return err
}

// grown returns how many bytes are new. A command can truncate its own output, for example with "tee /dev/stderr",
// which opens the file anew; what it prints then begins at the front again.
func (s *spool) grown() (n int64, anew bool) {
	info, err := s.file.Stat()
	if err != nil {
		return 0, false
	}
	if anew = info.Size() < s.pos; anew {
		s.base += s.pos
		s.pos, s.punched = 0, 0
	}
	return info.Size() - s.pos, anew
}

// lastLine returns the last line with something on it; "": there is none, or the file is gone.
func (s *spool) lastLine(l limits) string {
	if s.pos == 0 {
		return ""
	}
	f, err := os.Open(s.path)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()                                 // only read
	text, _ := l.kept(s.pos).read(f, max(0, s.pos-lastBytes), s.pos) // what could be read counts
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	for i := len(lines) - 1; i >= 0; i-- {
		if line := strings.TrimSpace(lines[i]); line != "" {
			return line
		}
	}
	return ""
}
