package shell

import (
	"io"
	"os"
	"strings"

	"codehand/tools/secrets"
)

// A spool is the file that one stream of a command is written to.
type spool struct {
	file  *os.File
	path  string
	pos   int64 // how far it was copied
	base  int64 // bytes that came before the beginning of the file
	lines int   // line ends copied
	part  bool  // what was copied last has no line end

	mask    secrets.Mask
	write   *os.File  // the file without append mode, in which secrets are hidden; nil: they are not
	held    int64     // bytes that were held back at the last look
	waits   int       // looks since then without another byte
	punched int64     // end of the part that was released
	echo    io.Writer // gets a copy, too; nil: there is none
}

// open makes the file. In append mode, because the command's processes share it: two that were given the same file
// without it would overwrite each other. masked: secrets are hidden in it.
func (s *spool) open(path string, masked bool) (err error) {
	s.path = path
	s.file, err = os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil && masked {
		s.write, err = os.OpenFile(path, os.O_WRONLY, 0)
	}
	return err
}

// hide hides the secrets in part, which begins where the copy has come to, here and in the file. It returns how much of
// part is done: what may be the beginning of one waits for its rest, for a second, or less if it is a few letters.
// more: there is more behind part. last: nothing will come.
func (s *spool) hide(part []byte, more, last bool) (int, error) {
	if s.write == nil {
		return len(part), nil
	}
	waited := !more && int64(len(part)) == s.held
	if s.waits++; !waited {
		s.waits = 0
	}
	done, changed := s.mask.Part(part, last && !more || s.waits > 50 || s.waits > 5 && len(part) < 8)
	s.held = 0
	if !more {
		s.held = int64(len(part) - done)
	}
	if changed {
		if _, err := s.write.WriteAt(part[:done], s.pos); err != nil {
			return done, err
		}
	}
	return done, nil
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
		s.pos, s.punched, s.held, s.mask = 0, 0, 0, secrets.Mask{}
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
