package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"codehand/server/pipeline"
)

// Options of an audit log.
type Options struct {
	Dir     string    // absolute, mode 0700, made if it is missing; "-": lines go to out
	Out     io.Writer // only if dir is "-"; never rotated, its chain begins anew
	Replica string    // in the file name and in every line: letters, digits, dot, dash, underscore
	Node    string    // name of this machine among several, in every line, of the same characters; "": it is alone
	// how long after a line it is safe on the disk at the latest; 0: before it counts; <0: never asked for
	Sync   time.Duration
	Rotate int64          // bytes after which a new file begins; 0: only at midnight
	Keep   time.Duration  // older files are deleted; 0: none
	Digest bool           // commands only as hash and first word
	Start  map[string]any // fields of the line serve.start
	Check  bool           // only find out whether there could be a log: no line is written, and no file left
	Log    *slog.Logger   // nil: nothing is logged
}

// An Log writes one JSON object a line, each bound to the one before. It is safe for concurrent use.
//
// A line that cannot be written leaves nothing behind. If it says what has happened, it is kept, and written with the
// next line that can be; one that says what is about to happen is not, since then it does not happen.
type Log struct {
	o       Options
	path    string                            // of the file that is written; "": o.out
	create  func(path string) (output, error) // a test can put in its own
	failure atomic.Pointer[failure]           // of the last write, or that it is closed; nil: it went well
	dirty   chan struct{}                     // a line waits for its sync
	quit    chan struct{}                     // closed by close
	behind  sync.WaitGroup                    // the goroutine that syncs, and rotates at midnight

	mu sync.Mutex // covers what follows
	current
	closed  bool
	seq     int64  // of the next line
	prev    string // SHA-256 of the last line, hex
	opening bool   // serve.start was not yet written
	pending []logLine
	lost    int64 // lines that were neither written nor kept
}

// current is the file that is written.
type current struct {
	file     output    // nil: it could not be opened
	size     int64     // of the file
	torn     bool      // the file ends with half a line, which could not be taken back
	begun    time.Time // of the file's first line
	midnight time.Time // after it
	retry    time.Time // no new file is begun before
}

// An output is what a log needs of a file.
type output interface {
	io.WriteCloser
	Sync() error
	Truncate(size int64) error
}

type failure struct{ err error }

// maxPending is how many lines are kept while nothing can be written.
const maxPending = 256

// noLine is what the first line of all is bound to.
var noLine = strings.Repeat("0", 2*sha256.Size)

var errClosed = errors.New("the audit log is closed")

// Open continues the chain of the replica, writes serve.start and starts the goroutine that close ends. An error
// says that there is no log; nothing is left open.
func Open(o Options) (*Log, error) {
	a := newLog(o)
	if err := a.open(); err != nil {
		return nil, err
	}
	return a, nil
}

func newLog(o Options) *Log {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Log{
		o: o, create: createFile, prev: noLine, seq: 1,
		dirty: make(chan struct{}, 1), quit: make(chan struct{}),
	}
}

func (a *Log) open() error {
	switch {
	case !replicaName().MatchString(a.o.Replica):
		return fmt.Errorf("audit log: replica %q: only letters, digits, dot, dash and underscore, at most 64",
			a.o.Replica)
	case a.o.Node != "" && !replicaName().MatchString(a.o.Node):
		return fmt.Errorf("audit log: node %q: only letters, digits, dot, dash and underscore, at most 64", a.o.Node)
	case a.o.Check:
		if err := a.check(); err != nil {
			return err
		}
		a.file = streamFile{io.Discard}
	case a.o.Dir == "-":
		if a.o.Out == nil {
			return errors.New("audit log: no output")
		}
		a.file = streamFile{a.o.Out}
	default:
		if err := a.openDir(); err != nil {
			return err
		}
	}
	a.opening = true
	err := a.write(eventLine(time.Now(), eventStart, a.by(), a.o.Start), false)
	a.opening = false
	if err != nil {
		return errors.Join(err, a.shut())
	}
	a.behind.Go(a.tend)
	return nil
}

// by says who writes the lines.
func (a *Log) by() maker { return maker{a.o.Replica, a.o.Node} }

func replicaName() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`) }

// openDir finds where the chain ends, and opens the file that goes on.
func (a *Log) openDir() error {
	if err := a.makeDir(); err != nil {
		return err
	}
	a.path = filepath.Join(a.o.Dir, fileName(a.o.Replica, time.Time{}))
	end, err := findEnd(a.o.Dir, a.o.Replica)
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	if err := cutTorn(a.path, end, a.o.Log); err != nil {
		return err
	}
	a.seq, a.prev, a.size = end.seq+1, end.hash, end.size
	a.born(end.begun)
	a.prune(time.Now())
	return nil
}

// check finds out whether lines could be written, and lets none be.
func (a *Log) check() error {
	if a.o.Dir == "-" {
		return nil
	}
	if err := a.makeDir(); err != nil {
		return err
	}
	f, err := os.CreateTemp(a.o.Dir, ".check-*")
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	return nil
}

// makeDir makes the directory if it is missing, and refuses one that others can read.
func (a *Log) makeDir() error {
	if err := os.Mkdir(a.o.Dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("audit log: %w", err)
	}
	info, err := os.Lstat(a.o.Dir)
	switch {
	case err != nil:
		return fmt.Errorf("audit log: %w", err)
	case !info.IsDir():
		return fmt.Errorf("audit log: %s is not a directory", a.o.Dir)
	case openToOthers(info):
		return fmt.Errorf("audit log: %s has mode %04o; run chmod 700 on it", a.o.Dir, info.Mode().Perm())
	}
	return nil
}

// Mend removes the half line that a replica left at the end of its file when it was killed. No call got an answer for
// such a line. The replica must be dead. dir may be missing; a log that is no directory has nothing to mend.
func Mend(dir, replica string, log *slog.Logger) error {
	if dir == "-" || !replicaName().MatchString(replica) {
		return nil
	}
	path := filepath.Join(dir, fileName(replica, time.Time{}))
	_, whole, err := lastLine(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	return cutTorn(path, chainEnd{size: whole, torn: info.Size() - whole}, log)
}

// cutTorn removes the half line at the end of a file.
func cutTorn(path string, end chainEnd, log *slog.Logger) error {
	if end.torn == 0 {
		return nil
	}
	log.Warn("audit log: removing an incomplete last line", "file", path, "bytes", end.torn)
	if err := os.Truncate(path, end.size); err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	return nil
}

// createFile opens a file for appending, and makes it if it is missing.
func createFile(path string) (output, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|noFollow, 0o600)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%s is not a regular file", path), err, f.Close())
	}
	return f, nil
}

// A streamFile is an output that is no file: nothing can be taken back from it, and it is as safe as it gets.
type streamFile struct{ io.Writer }

func (streamFile) Close() error         { return nil } // it belongs to the caller that opened it
func (streamFile) Sync() error          { return nil }
func (streamFile) Truncate(int64) error { return errors.ErrUnsupported }

// Call writes call.start or call.done.
func (a *Log) Call(r pipeline.Record) error {
	if r.Started {
		return a.write(startLine(time.Now(), a.by(), r, a.o.Digest), false)
	}
	return a.write(doneLine(time.Now(), a.by(), r, a.o.Digest), true)
}

// Event writes a line that is not of a call: auth.fail, session.start and the like; serve.start, serve.stop and rotate
// are written by the log itself. fields are plain values: strings, numbers, booleans, lists of strings. They must hold
// no secret and no content, and none of the names v, seq, t, ev, rep, node, lost, cut and prev.
func (a *Log) Event(ev string, fields map[string]any) error {
	return a.write(eventLine(time.Now(), ev, a.by(), fields), true)
}

// Failed says why the last write failed, or that there will be none; nil: it did not. It does not wait for a write that
// is under way.
func (a *Log) Failed() error {
	if f := a.failure.Load(); f != nil {
		return f.err
	}
	return nil
}

// Close writes serve.stop, brings all to the disk and ends the goroutine. The second time it does nothing.
func (a *Log) Close() error {
	err := a.Event("serve.stop", nil)
	if errors.Is(err, errClosed) {
		return nil
	}
	return errors.Join(err, a.shut())
}

func (a *Log) shut() error {
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return nil
	}
	a.closed = true
	a.failure.Store(&failure{errClosed}) // no call may be made that cannot be recorded
	f := a.file
	a.file = nil
	a.mu.Unlock()
	close(a.quit)
	a.behind.Wait()
	if f == nil {
		return nil
	}
	var err error
	if a.o.Sync >= 0 {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// write puts a line behind all that wait. keep: if it cannot be written now, it waits, too.
func (a *Log) write(line logLine, keep bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return errClosed
	}
	written, err := false, a.catchUp()
	if err == nil {
		written, err = a.put(line)
	}
	if err == nil {
		a.failure.Store(nil)
		return nil
	}
	a.failure.Store(&failure{err})
	switch {
	case written || !keep:
	case len(a.pending) < maxPending:
		a.pending = append(a.pending, line)
	default:
		a.lost++
	}
	return err
}

// catchUp writes what waits.
func (a *Log) catchUp() error {
	for len(a.pending) > 0 {
		written, err := a.put(a.pending[0])
		if written {
			a.pending = a.pending[1:]
		}
		if err != nil {
			return err
		}
	}
	a.pending = nil
	return nil
}

// put writes a line at the end of the chain. written may be true together with an error: the line is in the file, and
// it is not known whether it is on the disk.
func (a *Log) put(line logLine) (written bool, err error) {
	now := time.Now()
	if a.path != "" {
		if err := a.prepare(now, int64(len(line)+maxFrame)); err != nil {
			return false, err
		}
	}
	return a.append(line)
}

// prepare sees to it that there is a file of today with room for more bytes, and with a first line that says what came
// before.
func (a *Log) prepare(now time.Time, more int64) error {
	full := a.o.Rotate > 0 && a.size+more > a.o.Rotate
	if a.size > 0 && (full || !now.Before(a.midnight)) && !now.Before(a.retry) {
		if err := a.setAside(); err != nil {
			// The old file does as well for a while.
			a.o.Log.Warn("audit log: begin a new file", "error", err)
			a.retry = now.Add(time.Minute)
		}
		a.prune(now)
	}
	if a.file == nil {
		f, err := a.create(a.path)
		if err != nil {
			return fmt.Errorf("audit log: %w", err)
		}
		a.file = f
	}
	if a.size > 0 {
		return nil
	}
	a.born(now)
	if a.opening {
		return nil // serve.start comes
	}
	_, err := a.append(eventLine(now, eventRotate, a.by(), nil))
	return err
}

// born notes when the file began.
func (a *Log) born(t time.Time) {
	a.begun = t.UTC()
	y, m, d := a.begun.Date()
	a.midnight = time.Date(y, m, d+1, 0, 0, 0, 0, time.UTC)
}

// setAside gives the file the name that it keeps. It is closed before, because an open file cannot be renamed
// everywhere.
func (a *Log) setAside() error {
	if a.file != nil {
		var err error
		if a.o.Sync >= 0 {
			err = a.file.Sync()
		}
		if err = errors.Join(err, a.file.Close()); err != nil {
			a.o.Log.Warn("audit log: close a file", "error", err)
		}
		a.file = nil
	}
	name := fileName(a.o.Replica, a.begun)
	for n := 1; exists(filepath.Join(a.o.Dir, name)); n++ {
		name = fileName(a.o.Replica, a.begun.Add(time.Duration(n)*time.Microsecond))
	}
	if err := os.Rename(a.path, filepath.Join(a.o.Dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	a.size, a.torn = 0, false
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, os.ErrNotExist)
}

// prune deletes files that are older than the operator keeps, of other replicas, too: one that is alive begins a new
// file every day.
func (a *Log) prune(now time.Time) {
	if a.o.Keep <= 0 {
		return
	}
	files, err := listFiles(a.o.Dir)
	for _, f := range files {
		if path := filepath.Join(a.o.Dir, f.name); path != a.path && now.Sub(f.changed) > a.o.Keep {
			err = errors.Join(err, os.Remove(path))
		}
	}
	if err != nil {
		a.o.Log.Warn("audit log: delete old files", "error", err)
	}
}

// append writes a line with its place in the chain.
func (a *Log) append(line logLine) (written bool, err error) {
	if a.torn {
		if err := a.mend(); err != nil {
			return false, fmt.Errorf("audit log: take back half a line: %w", err)
		}
	}
	var head [maxHead]byte
	begin := strconv.AppendInt(append(head[:0], `{"v":1,"seq":`...), a.seq, 10)
	full := line[maxHead-len(begin):] // the room before the fields; a line that is written again has it again
	copy(full, begin)
	if a.lost > 0 {
		full = append(full, `,"lost":`...)
		full = strconv.AppendInt(full, a.lost, 10)
	}
	full = append(full, `,"prev":"`...)
	full = append(full, a.prev...)
	full = append(full, '"', '}', '\n')
	n, err := a.file.Write(full)
	if err == nil && n < len(full) {
		err = io.ErrShortWrite
	}
	if err != nil {
		if a.torn = n > 0; a.torn {
			_ = a.mend() // or else before the next line
		}
		return false, fmt.Errorf("audit log: %w", err)
	}
	a.size += int64(n)
	a.seq++
	a.prev = hashLine(full[:n-1])
	a.lost = 0
	if a.path == "" {
		return true, nil
	}
	if a.o.Sync == 0 {
		if err := a.file.Sync(); err != nil {
			return true, fmt.Errorf("audit log: %w", err)
		}
	}
	if a.o.Sync > 0 {
		select {
		case a.dirty <- struct{}{}:
		default:
		}
	}
	return true, nil
}

// mend takes back the half line at the end of a file. An output that is no file gets a line end after it, so that the
// next line begins properly.
func (a *Log) mend() error {
	err := a.file.Truncate(a.size)
	switch {
	case err == nil:
	case a.path == "":
		_, err = a.file.Write([]byte{'\n'})
	default:
		err = os.Truncate(a.path, a.size) // a handle for appending only has no right to cut, on some systems
	}
	a.torn = err != nil
	return err
}

func hashLine(line []byte) string {
	sum := sha256.Sum256(line)
	return hex.EncodeToString(sum[:])
}

// tend brings lines to the disk in time, and begins a new file at midnight even without calls.
func (a *Log) tend() {
	if a.path == "" {
		return
	}
	day := time.NewTimer(a.untilMidnight())
	defer day.Stop()
	wait := time.NewTimer(0)
	defer wait.Stop()
	<-wait.C
	for {
		select {
		case <-a.quit:
			return
		case <-a.dirty:
			wait.Reset(a.o.Sync)
			select {
			case <-a.quit:
				return // close syncs
			case <-wait.C:
				a.flush()
			}
		case <-day.C:
			a.turn()
			day.Reset(a.untilMidnight())
		}
	}
}

// untilMidnight is how long the file may still be written; at least a second, whatever the clock does.
func (a *Log) untilMidnight() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return max(time.Until(a.midnight), time.Second)
}

// flush syncs, and other goroutines can write meanwhile.
func (a *Log) flush() {
	a.mu.Lock()
	f := a.file
	a.mu.Unlock()
	if f == nil {
		return
	}
	if err := f.Sync(); err != nil && !errors.Is(err, os.ErrClosed) { // closed: it was synced before
		a.failure.Store(&failure{fmt.Errorf("audit log: %w", err)})
	}
}

// turn begins the file of a new day.
func (a *Log) turn() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return
	}
	if err := a.prepare(time.Now(), 0); err != nil {
		a.failure.Store(&failure{err})
	}
}
