package shell

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
	"syscall"

	"codehand/tools/secrets"
)

const outSuffix, errSuffix, logSuffix = ".out", ".err", ".log"

// bufferSize is how much is copied at once, and all that a command's output takes of memory.
const bufferSize = 256 << 10

// An output is the three files of a command. run.go writes them; any goroutine may read.
type output struct {
	limits limits

	mu       sync.Mutex // covers all below, and the bytes in the files against being moved
	out, err spool
	log      *os.File
	events   *events // that are found in stdout; nil: it is no monitor
	path     string  // of the log
	size     int64   // bytes merged so far, also those that are not kept
	lines    int     // line ends in size
	punched  int64   // end of the part of the log that was released
	dropped  int64   // bytes that are missing in the log; set at the end
	marker   int64   // bytes of the line that stands for them
	buffer   []byte
	broken   bool  // a middle cannot be released
	fault    error // why the log lacks what was printed last; nil: it does not
	gone     error // why it lacks what no later look can bring; nil: it does not
	doubt    error // why the command may have been kept from printing; nil: there is no reason to think so
	pause    int   // looks until a log that could not be written is tried again
}

// open makes the files, all 0600 and new. echo gets a copy of what is printed, as it comes; nil: there is no copy.
func (o *output) open(base string, echo io.Writer) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.buffer = make([]byte, bufferSize)
	o.path = base + logSuffix
	o.out.echo, o.err.echo = echo, echo
	err := o.out.open(base+outSuffix, o.limits.masked)
	if err == nil {
		err = o.err.open(base+errSuffix, o.limits.masked)
	}
	if err == nil {
		o.log, err = os.OpenFile(o.path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	}
	return err
}

// take copies what is new and releases what need not be kept. A log that cannot be written now, on a full disk, is
// tried again at the next look; the spools hold what is missing until then. False: the command must be ended, because
// there is more output than can be kept, or a middle that cannot be released.
func (o *output) take() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.round(false)
}

// round is one look. What cannot all be written leaves the log as it was: a part would have a hole, which reads as
// zeros. After the last look the spools alone have the rest.
func (o *output) round(last bool) bool {
	fromErr, anewErr := o.err.grown() // first: what was printed to stdout before it is in this round then
	fromOut, anewOut := o.out.grown()
	if o.fault != nil && (anewOut || anewErr) {
		o.gone = o.fault // the command has truncated what was to be tried again
	}
	end := o.size + fromOut + fromErr
	if o.fault != nil && o.pause > 0 && !last {
		o.pause--
	} else {
		o.try(fromOut, fromErr, end, last)
	}
	for _, s := range []*spool{&o.out, &o.err} {
		o.release(s.file, s.pos, &s.punched)
	}
	o.release(o.log, o.size, &o.punched)
	return !o.broken && end <= o.limits.most && (o.fault == nil || end-o.size <= o.limits.keep)
}

// try copies what is new.
func (o *output) try(fromOut, fromErr, end int64, last bool) {
	size, lines, out, errs := o.size, o.lines, o.out, o.err
	o.fault = nil
	o.merge(&o.out, fromOut, end, last)
	o.merge(&o.err, fromErr, end, last)
	if o.fault == nil {
		return
	}
	o.size, o.lines, o.pause = size, lines, o.limits.pause
	if !last {
		o.out, o.err = out, errs
	}
}

// lose notes that the log is not whole. The first cause counts.
func (o *output) lose(err error) {
	if o.fault == nil {
		o.fault = err
	}
}

// lost says why the log is not whole, as the system said it; "": it is.
func (o *output) lost() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.gone != nil {
		return said(o.gone)
	}
	return said(o.fault)
}

// doubted says likewise why the command may have been kept from printing.
func (o *output) doubted() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return said(o.doubt)
}

// said is an error without the path, which is one of ours.
func said(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error()
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// maxCounted is how many new bytes of one stream are read in a round, apart from the head. A file can become gigabytes
// long in one step if it is made with a hole; line ends are not counted then.
const maxCounted = 256 << 20

// merge appends n new bytes of s to the log. What will lie in the middle when the round ends, at end, is counted but
// not written; nor is anything after a write that failed.
func (o *output) merge(s *spool, n, end int64, last bool) {
	k := o.limits.kept(end)
	tail := k.tail - 2*secrets.MaxHeld // what is held back of both streams comes later than end says
	for n > 0 {
		if skip := min(n-maxCounted, tail-o.size); skip > 0 && o.size >= k.head {
			s.pos, o.size, n, s.mask = s.pos+skip, o.size+skip, n-skip, secrets.Mask{}
		}
		got, err := s.file.ReadAt(o.buffer[:min(n, bufferSize)], s.pos)
		got, hideErr := s.hide(o.buffer[:got], n > int64(got), last)
		part := o.buffer[:got]
		if hideErr != nil {
			o.lose(hideErr)
		}
		if from, to := o.size, o.size+int64(got); from < k.head || to > tail {
			if o.fault == nil {
				_, o.fault = o.log.WriteAt(part, from)
			}
		}
		if o.fault != nil && !last {
			return
		}
		if s.echo != nil {
			_, _ = s.echo.Write(part) // the result has it in any case
		}
		if s == &o.out && o.events != nil {
			o.events.add(s.base+s.pos, part)
		}
		count := bytes.Count(part, []byte{'\n'})
		s.pos, s.lines = s.pos+int64(got), s.lines+count
		if got > 0 {
			s.part = part[got-1] != '\n'
		}
		o.size, o.lines = o.size+int64(got), o.lines+count
		n -= int64(got)
		if err != nil && !errors.Is(err, io.EOF) {
			o.lose(err)
		}
		if err != nil || got == 0 { // truncated meanwhile; the next round sees it
			return
		}
	}
}

// release gives the disk back what lies between the kept ends of a file.
func (o *output) release(f *os.File, size int64, punched *int64) {
	k := o.limits.kept(size)
	from := max(k.head, *punched)
	if k.head == size || k.tail-from < punchStep {
		return
	}
	if err := punch(f, from, k.tail-from); err != nil {
		o.broken = true
	}
	*punched = k.tail
}

// punchStep is the least that is released at once; file systems release whole blocks only.
const punchStep = 64 << 10

// finish takes the rest, closes the files and closes up the log.
func (o *output) finish() {
	o.mu.Lock()
	defer o.mu.Unlock()
	_ = o.round(true) // the command has ended
	if o.fault != nil {
		o.cut(o.size) // what was written of the last look
	}
	if k := o.limits.kept(o.size); k.head < o.size {
		if err := o.closeUp(k); err != nil {
			o.lose(err)
			o.cut(k.head)
		}
	}
	o.doubt = o.probe()
	o.closeFiles()
}

// probeBytes is more than a file can have room for on a full disk: the rest of its last block.
const probeBytes = 64 << 10

// probe says whether the disk is full. A command seldom tells that it could not print. Only this process reads the
// spool.
func (o *output) probe() error {
	info, err := o.out.file.Stat()
	if err == nil {
		_, err = o.out.file.Write(o.buffer[:probeBytes])
		_ = o.out.file.Truncate(info.Size()) // which is less, so it needs no room
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return err
	}
	return nil
}

// cut makes the log end there, which a full disk does not keep it from.
func (o *output) cut(size int64) {
	if err := os.Truncate(o.path, size); err != nil {
		return // it has been told that it is not whole
	}
	if o.size > size {
		k := kept{size: size, head: size, tail: size}
		o.size = size
		o.lines, _ = k.count(o.log, 0, size) // of what can be read
	}
}

// closeUp replaces the hole in the log by a line, so that programs which do not know of it read a text.
func (o *output) closeUp(k kept) error {
	dropped := k.tail - k.head
	marker := gapLine(dropped)
	if _, err := o.log.WriteAt([]byte(marker), k.head); err != nil {
		return err
	}
	to := k.head + int64(len(marker)) // before tail, because a gap is longer than its marker
	for from := k.tail; from < k.size; {
		n, err := o.log.ReadAt(o.buffer[:min(bufferSize, k.size-from)], from)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if n == 0 {
			return io.ErrUnexpectedEOF
		}
		if _, err := o.log.WriteAt(o.buffer[:n], to); err != nil {
			return err
		}
		from, to = from+int64(n), to+int64(n)
	}
	o.dropped, o.marker = dropped, int64(len(marker))
	return o.log.Truncate(to)
}

// closeFiles also forgets the buffer: ended jobs are kept for a day.
func (o *output) closeFiles() {
	for _, f := range []*os.File{o.out.file, o.err.file, o.out.write, o.err.write, o.log} {
		if f != nil {
			_ = f.Close() // what was written is read again, and not promised to outlast a crash of the machine
		}
	}
	o.buffer = nil
}

// close is for a command that did not start.
func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closeFiles()
}

// printed returns how much there is so far.
func (o *output) printed() Printed {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := Printed{Out: o.out.base + o.out.pos, Err: o.err.base + o.err.pos, Dropped: o.dropped,
		Lines: o.out.lines + o.err.lines}
	for _, s := range []*spool{&o.out, &o.err} {
		if s.part {
			p.Lines++
		}
	}
	return p
}

// layout says where the log's bytes are. The caller holds the lock.
func (o *output) layout() kept {
	k := o.limits.kept(o.size)
	if o.dropped > 0 {
		k.shift = o.dropped - o.marker
	}
	return k
}

// lastBytes is how far back the last line is looked for.
const lastBytes = 4096

// lastLines returns the last line of each stream with something on it; a CR ends a line, too.
func (o *output) lastLines() (out, err string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.out.lastLine(o.limits), o.err.lastLine(o.limits)
}
