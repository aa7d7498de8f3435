package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"codehand/tools/sandbox/kernel"
)

// Spares keeps helpers that wait for a command: the start of a program and its namespaces take longer than everything
// that a profile asks for. One waits for each kind of namespaces that a command had lately, and each serves one
// command. A helper gets no data before its command, and holds no file of a session. It ends with the server, with
// Close, and when no command came for spareFor. It is safe for concurrent use. A nil Spares has none.
type Spares struct {
	making sync.WaitGroup

	mu      sync.Mutex
	waiting map[bool]*spare // by whether the network of the server is theirs
	busy    map[bool]bool   // one is being made
	closed  bool
}

// A spare is a helper that waits.
type spare struct {
	helper *helper
	mounts *os.File // tells whether mounts changed since: the helper has a copy of those that there were
	idle   *time.Timer
}

// spareFor is how long a helper waits for a command.
const spareFor = time.Minute

// NewSpares returns a Spares that makes the first helper after the first command at LevelFull.
func NewSpares() *Spares { return &Spares{waiting: map[bool]*spare{}, busy: map[bool]bool{}} }

// errSpare means that a helper could not be told what to start, so it started nothing.
var errSpare = errors.New("the waiting helper has ended")

// take returns a helper for a command, if one waits that is as good as a new one.
func (s *Spares) take(level Level, p *Profile) *helper {
	if s == nil || level < LevelFull {
		return nil
	}
	s.mu.Lock()
	found := s.waiting[p.Network == NetworkOn]
	delete(s.waiting, p.Network == NetworkOn)
	s.mu.Unlock()
	if found == nil {
		return nil
	}
	found.idle.Stop()
	changed := found.stale() || found.helper.ended()
	_ = found.mounts.Close() // only read
	if changed {
		s.making.Go(found.helper.abandon)
		return nil
	}
	return found.helper
}

// stale reports whether mounts have changed since the helper was made, or that is unknown.
func (w *spare) stale() bool {
	return polled(w.mounts, unix.POLLPRI)
}

// ended reports whether a helper that waits has closed its socket, or said something, which it never does.
func (h *helper) ended() bool {
	return polled(h.socket.file, unix.POLLIN|unix.POLLRDHUP)
}

// polled reports whether something of events, or an error, is there now; also if poll fails.
func polled(f *os.File, events int16) bool {
	conn, err := f.SyscallConn()
	if err != nil {
		return true
	}
	some := true
	err = conn.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd), Events: events}}
		for err := error(unix.EINTR); errors.Is(err, unix.EINTR); {
			_, err = unix.Poll(fds, 0)
			some = err != nil || fds[0].Revents&(events|unix.POLLERR|unix.POLLHUP|unix.POLLNVAL) != 0
		}
	})
	return some || err != nil
}

// fill makes a helper for the next command like c, if none waits. It does not wait for that.
func (s *Spares) fill(c Cmd) {
	if s == nil || c.level() < LevelFull {
		return
	}
	open := c.Profile.Network == NetworkOn
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.busy[open] || s.waiting[open] != nil {
		return
	}
	s.busy[open] = true
	s.making.Go(func() {
		w, err := newSpare(c.Profile.Network)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.busy, open)
		switch {
		case err != nil: // the next command starts its own, and says what is wrong
		case s.closed:
			s.making.Go(w.end)
		default:
			s.waiting[open] = w
			w.idle = time.AfterFunc(spareFor, func() { s.expire(open, w) })
		}
	})
}

// expire ends a helper that has waited for too long.
func (s *Spares) expire(open bool, w *spare) {
	s.mu.Lock()
	mine := s.waiting[open] == w
	if mine {
		delete(s.waiting, open)
		s.making.Add(1)
	}
	s.mu.Unlock()
	if mine {
		defer s.making.Done()
		w.end()
	}
}

// Close ends all helpers that wait, and makes no others.
func (s *Spares) Close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	s.closed = true
	for open, w := range s.waiting {
		w.idle.Stop()
		delete(s.waiting, open)
		s.making.Go(w.end)
	}
	s.mu.Unlock()
	s.making.Wait()
}

func (w *spare) end() {
	_ = w.mounts.Close() // only read
	w.helper.abandon()
}

// newSpare starts a helper that waits for instructions in its namespaces.
func newSpare(n Network) (w *spare, err error) {
	w = &spare{}
	if w.mounts, err = openMounts(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = w.mounts.Close() // only read
		}
	}()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = null.Close() }() // nothing was written to it
	h, theirs, err := newHelper(LevelFull)
	if err != nil {
		return nil, err
	}
	spec := kernel.Spec{
		Level: int(LevelFull), Profile: &Profile{Network: n}, Identity: [2]int{os.Geteuid(), os.Getegid()},
		Nested: h.nested, Dir: true,
	}
	// The last one keeps the number of the working directory free.
	attr := &os.ProcAttr{Env: kernel.Environ(), Files: []*os.File{null, null, null, theirs, null}, Sys: session()}
	if !h.nested {
		spec.Namespaces(attr.Sys)
	}
	closeOnExec()
	h.process, err = os.StartProcess("/proc/self/exe", kernel.Argv(int(h.level)), attr)
	_ = theirs.Close() // a socket holds no data
	if err != nil {
		h.close()
		return nil, err
	}
	w.helper = h
	if !h.nested {
		return w, nil
	}
	_ = h.socket.file.SetDeadline(time.Now().Add(slowWait))
	if err := h.settle(&spec); err != nil {
		h.abandon()
		return nil, err
	}
	_ = h.socket.file.SetDeadline(time.Time{})
	h.release()
	return w, nil
}

// openMounts returns a file that tells of changes of the mounts from now on, once each.
func openMounts() (*os.File, error) {
	// Not os.Open: the runtime would poll the file, too, and hear of the change instead of us.
	fd, err := unix.Open("/proc/self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("open", err)
	}
	return os.NewFile(uintptr(fd), "mountinfo"), nil
}

// settle makes a helper move into its namespaces.
func (h *helper) settle(spec *kernel.Spec) error {
	if err := h.instruct(spec); err != nil {
		return err
	}
	m, err := h.next()
	if err != nil {
		return err
	}
	if m.Kind != kernel.Moved {
		return startError(m)
	}
	return h.moved(m)
}

// moved notes that another process is the helper from now on.
func (h *helper) moved(m kernel.Message) (err error) {
	h.first = h.process
	h.process, err = os.FindProcess(m.Pid)
	return err
}

// employ makes a waiting helper start a command with files, its streams and perhaps its working directory. errSpare: it
// did not learn of that, and is gone; its group is not. After any other error nothing is left.
func (h *helper) employ(ctx context.Context, spec kernel.Spec, files []*os.File) error {
	spec.Passed = true
	if err := h.join(h.process.Pid); err == nil {
		err = h.pass(&spec, files)
		if err == nil {
			return h.within(ctx, func() error { return h.started(&spec) })
		}
	}
	h.group = nil
	h.abandon()
	return errSpare
}

// pass tells a helper what to start, together with descriptors.
func (h *helper) pass(spec *kernel.Spec, files []*os.File) error {
	line, err := spec.Encode()
	if err != nil {
		return err
	}
	line = append(line, '\n')
	var fds []int
	for _, f := range files {
		conn, err := f.SyscallConn()
		if err != nil {
			return err
		}
		// The caller keeps them open until the command runs.
		if err := conn.Control(func(fd uintptr) { fds = append(fds, int(fd)) }); err != nil {
			return err
		}
	}
	conn, err := h.socket.file.SyscallConn()
	if err != nil {
		return err
	}
	var sent int
	waited := conn.Write(func(fd uintptr) bool {
		for err = unix.EINTR; errors.Is(err, unix.EINTR); {
			sent, err = unix.SendmsgN(int(fd), line, unix.UnixRights(fds...), nil, unix.MSG_NOSIGNAL)
		}
		return !errors.Is(err, unix.EAGAIN)
	})
	if err = errors.Join(waited, err); err != nil {
		return fmt.Errorf("tell the helper: %w", err)
	}
	if sent < len(line) {
		_, err = h.socket.file.Write(line[sent:])
	}
	return err
}
