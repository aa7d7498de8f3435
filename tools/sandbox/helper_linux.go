package sandbox

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"codehand/tools/sandbox/cgroup"
	"codehand/tools/sandbox/kernel"
)

// A helper is the process between this one and a command: package kernel is what it does.
type helper struct {
	process   *os.Process
	first     *os.Process // that made process in namespaces and has ended; nil: there was none
	level     Level
	mark      mark          // of the command
	group     *cgroup.Group // of the helper and the command; nil: they have none
	nested    bool          // the first process moves into namespaces, as another child of ours
	child     int           // as the helper sees it
	messages  *bufio.Reader
	socket    *socket
	listening net.Listener // of NetworkList; nil: there is none
	terminal  *os.File     // of Cmd.Terminal; nil: there is none
	closing   sync.Once
}

// A socket is our end of the socket to a helper. It keeps the descriptors that come with what is read.
type socket struct {
	file   *os.File
	rights []int
}

func (s *socket) Read(b []byte) (n int, err error) {
	conn, err := s.file.SyscallConn()
	if err != nil {
		return 0, err
	}
	oob := make([]byte, unix.CmsgSpace(4))
	var more int
	waited := conn.Read(func(fd uintptr) bool {
		for err = unix.EINTR; errors.Is(err, unix.EINTR); {
			n, more, _, _, err = unix.Recvmsg(int(fd), b, oob, unix.MSG_CMSG_CLOEXEC)
		}
		return !errors.Is(err, unix.EAGAIN)
	})
	switch {
	case waited != nil:
		return 0, waited
	case err != nil:
		return 0, os.NewSyscallError("recvmsg", err)
	case n == 0:
		return 0, errEnded
	}
	if messages, err := unix.ParseSocketControlMessage(oob[:more]); err == nil {
		for _, m := range messages {
			rights, _ := unix.ParseUnixRights(&m) // none, if it is of another kind
			s.rights = append(s.rights, rights...)
		}
	}
	return n, nil
}

// errEnded means that the helper has ended.
var errEnded = errors.New("the helper ended")

// launch starts a helper, which confines and starts the command. attr has the streams and the environment of the
// command, dir is where it begins; nil: the root directory.
func launch(ctx context.Context, c Cmd, attr *os.ProcAttr, dir *os.File, m mark) (*helper, error) {
	level := c.level()
	spec := kernel.Spec{
		Level: int(level), Path: c.Path, Args: c.argv(), Env: attr.Env, Profile: c.Profile,
		Limits: limits(m, level, c.Limits, c.Profile), Memory: uint64(c.Limits.Memory),
		Identity: [2]int{os.Geteuid(), os.Getegid()}, Dir: dir != nil,
		Terminal: c.Terminal,
	}
	g, err := group(c)
	if err != nil {
		return nil, err
	}
	spec.Group = g != nil
	if spare := c.Spares.take(level, c.Profile); spare != nil {
		spare.group = g
		files := attr.Files
		if dir != nil {
			files = append(slices.Clip(files), dir)
		}
		err := spare.employ(ctx, spec, files)
		if !errors.Is(err, errSpare) {
			return spare, err
		}
	}
	h, theirs, err := newHelper(level)
	if err != nil {
		g.End()
		return nil, err
	}
	h.mark, h.group, spec.Nested = m, g, h.nested
	own := &os.ProcAttr{Env: kernel.Environ(), Files: append(slices.Clip(attr.Files), theirs), Sys: session()}
	if dir != nil {
		own.Files = append(own.Files, dir)
	}
	if !h.nested {
		spec.Namespaces(own.Sys)
	}
	if err := h.start(ctx, own, &spec, theirs); err != nil {
		return nil, err
	}
	return h, nil
}

// newHelper returns a helper that is not started yet, and its end of the socket.
func newHelper(level Level) (h *helper, theirs *os.File, err error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	theirs = os.NewFile(uintptr(ends[1]), "helper")
	if err := unix.SetNonblock(ends[0], true); err != nil {
		_, _ = theirs.Close(), unix.Close(ends[0])
		return nil, nil, os.NewSyscallError("fcntl", err)
	}
	s := &socket{file: os.NewFile(uintptr(ends[0]), "helper")}
	h = &helper{level: level, socket: s, messages: bufio.NewReader(s)}
	h.nested = level >= LevelFull && os.Geteuid() != 0 && isHidden()
	return h, theirs, nil
}

// helperTasks is how many threads a helper may need in the group of its command.
const helperTasks = 16

// group makes the group of a command; nil: it needs none.
func group(c Cmd) (*cgroup.Group, error) {
	if c.Groups == nil || c.level() < LevelKernel {
		return nil, nil
	}
	l := c.Groups.Limits()
	l.Processes = cmp.Or(c.Profile.Processes, l.Processes, moreProcesses) + helperTasks
	g, err := c.Groups.New(l)
	if err != nil {
		return nil, fmt.Errorf("%w: make a control group: %w", ErrConfine, err)
	}
	return g, nil
}

// join moves a helper that waits for its instructions into the group of its command.
func (h *helper) join(pid int) error {
	if err := h.group.Add(pid); err != nil {
		return fmt.Errorf("%w: enter the control group: %w", ErrConfine, err)
	}
	return nil
}

// hit adds to exit what the limits of the group did.
func (h *helper) hit(exit Exit) Exit {
	if exit.Hit = h.group.Hit(); exit.Hit.Processes > 0 {
		exit.Hit.Processes -= helperTasks
	}
	return exit
}

// isHidden reports whether Hide was called.
func isHidden() bool {
	n, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	return err != nil || n == 0
}

// start starts the helper and returns when the command runs. After an error neither is left. It closes theirs, the
// helper's end of the socket: as long as that is open here, the death of the helper does not show.
func (h *helper) start(ctx context.Context, attr *os.ProcAttr, spec *kernel.Spec, theirs *os.File) error {
	var err error
	h.process, err = os.StartProcess("/proc/self/exe", kernel.Argv(int(h.level)), attr)
	_ = theirs.Close() // a socket holds no data
	if err != nil {
		h.close()
		return notStarted(h.level, err)
	}
	return h.within(ctx, func() error {
		if !h.nested {
			err = h.join(h.process.Pid)
		}
		if err == nil {
			err = h.instruct(spec)
		}
		if err == nil {
			err = h.started(spec)
		}
		return err
	})
}

// within runs do, which makes a helper start its command, and takes what listens for it. After an error nothing of both
// is left.
func (h *helper) within(ctx context.Context, do func() error) error {
	// A disk that does not answer must not hold the caller for ever.
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		_ = h.socket.file.SetDeadline(time.Unix(1, 0))
	})
	err := do()
	if err == nil {
		h.listening, err = h.listener()
	}
	if !stop() {
		<-stopped
		if err == nil { // the command runs, and its owner sees that ctx has ended
			_ = h.socket.file.SetDeadline(time.Time{})
		} else {
			err = context.Cause(ctx)
		}
	}
	if err != nil {
		h.abandon()
	}
	return err
}

// abandon ends a helper that has failed, and the command, which may have begun. It returns when nothing of both is
// left, at the latest after slowWait: then the kernel does not let them end, and they are collected when it does.
func (h *helper) abandon() {
	if h.listening != nil {
		_ = h.listening.Close()
	}
	if h.terminal != nil {
		_ = h.terminal.Close()
	}
	h.cut()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		h.collect()
	}()
	select {
	case <-ended:
	case <-time.After(slowWait):
	}
}

// collect waits for all that there is of a helper whose socket was cut, and kills what has not ended by itself after
// lastWait. From here on it alone uses h.process and h.first; the timer has what it kills for its own.
func (h *helper) collect() {
	late := killLate(h.process)
	// What it had begun to move into namespaces is our child, too, and is usually named before the socket ends.
	_ = h.socket.file.SetDeadline(time.Now().Add(slowWait))
	for m, err := h.next(); err == nil; m, err = h.next() {
		if m.Kind != kernel.Moved || h.first != nil {
			continue
		}
		if moved, err := os.FindProcess(m.Pid); err == nil {
			late.Stop()
			h.first, h.process = h.process, moved
			late = killLate(h.process, h.first)
		}
	}
	if h.nested && h.first == nil {
		h.collectUnnamed()
	}
	own := idOf(h.process.Pid)
	state, err := h.process.Wait()
	h.release()
	late.Stop()
	if h.level < LevelFull && (err != nil || !state.Exited()) {
		endLeft(own, h.mark)
	}
	h.close()
}

// endLeft ends what a helper that was killed had begun to start: it had no time to do so itself, and nothing else ends
// with it where there is no namespace of processes. Its process id may belong to another process by now, so the search
// does not use it.
func endLeft(helper id, m mark) {
	t := markedTree(helper, m)
	t.gone = true
	e := ending{look: t.look, asked: map[id]bool{}, ended: map[id]bool{}}
	e.force()
}

// killLate kills what has not ended after lastWait. What has ended and was collected is not touched.
func killLate(all ...*os.Process) *time.Timer {
	return time.AfterFunc(lastWait, func() {
		for _, p := range all {
			_ = p.Kill()
		}
	})
}

// collectUnnamed ends and collects what a helper began to move into namespaces and was killed before it named. Until it
// has instructions, that is our child in the group of the helper.
func (h *helper) collectUnnamed() {
	// A process that is not collected keeps its number, and so that of its group.
	for err := error(unix.EINTR); errors.Is(err, unix.EINTR); {
		err = unix.Waitid(unix.P_PID, h.process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
	}
	names, _ := filepath.Glob("/proc/[0-9]*") // the pattern is right
	for _, name := range names {
		pid, _ := strconv.Atoi(filepath.Base(name))
		s, ok := statOf(pid)
		if !ok || pid == h.process.Pid || s.parent != os.Getpid() || s.group != h.process.Pid {
			continue
		}
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill()    // its instructions do not come
			_, _ = p.Wait() // it was killed
		}
	}
}

// notStarted is why the helper did not start, without which no command is confined at any level: on a machine that
// runs our program by an interpreter, such as an emulator, the program does not start itself.
func notStarted(level Level, err error) error {
	step := "start the program that confines it"
	if level > LevelLimits {
		step = "make namespaces"
	}
	return fmt.Errorf("%w: %s: %w", ErrConfine, step, err)
}

func (h *helper) instruct(spec *kernel.Spec) error {
	line, err := spec.Encode()
	if err != nil {
		return err
	}
	_, err = h.socket.file.Write(append(line, '\n'))
	return err
}

// started waits until the helper says that the command runs.
func (h *helper) started(spec *kernel.Spec) error {
	for {
		m, err := h.next()
		if err != nil {
			return fmt.Errorf("%w: %w", ErrConfine, err)
		}
		switch m.Kind {
		case kernel.Moved:
			if err := h.moved(m); err != nil {
				return err
			}
			if err := h.join(m.Pid); err != nil {
				return err
			}
			spec.Nested = false
			if err := h.instruct(spec); err != nil {
				return err
			}
		case kernel.Opened:
			if err := h.takeTerminal(); err != nil {
				return err
			}
		case kernel.Started:
			h.child = m.Pid
			return nil
		case kernel.Failed:
			return startError(m)
		}
	}
}

// startError is why the helper started nothing.
func startError(m kernel.Message) error {
	err := errors.New(m.Step)
	if m.Errno != 0 {
		err = fmt.Errorf("%s: %w", m.Step, syscall.Errno(m.Errno))
	}
	if m.NoTerm {
		err = fmt.Errorf("%w: %w", ErrTerminal, err)
	}
	if m.Confining {
		err = fmt.Errorf("%w: %w", ErrConfine, err)
	}
	return err
}

// takeTerminal keeps the end of a terminal that came with the last message. What came before is a listening socket.
func (h *helper) takeTerminal() error {
	n := len(h.socket.rights) - 1
	if n < 0 {
		return fmt.Errorf("%w: it did not arrive", ErrTerminal)
	}
	fd := h.socket.rights[n]
	h.socket.rights = h.socket.rights[:n]
	if err := unix.SetNonblock(fd, true); err != nil { // so that a read ends with Close
		_ = unix.Close(fd)
		return os.NewSyscallError("fcntl", err)
	}
	h.terminal = os.NewFile(uintptr(fd), "terminal")
	return nil
}

// listener returns the listening socket that came with a message; nil: none did.
func (h *helper) listener() (net.Listener, error) {
	if len(h.socket.rights) == 0 {
		return nil, nil
	}
	f := os.NewFile(uintptr(h.socket.rights[0]), "listener")
	h.socket.rights = h.socket.rights[1:]
	defer func() { _ = f.Close() }() // the listener has a copy
	return net.FileListener(f)
}

func (h *helper) next() (m kernel.Message, err error) {
	line, err := h.messages.ReadBytes('\n')
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(line, &m)
}

// childPid returns the number of the command; 0: it was collected already, or the kernel does not tell. A helper in a
// namespace of its own counts otherwise than we do, and what a command left behind is its child, too.
func (h *helper) childPid() int {
	if h.level < LevelFull {
		return h.child
	}
	number := strconv.Itoa(h.process.Pid)
	for field := range bytes.FieldsSeq(procFile(h.process.Pid, "task/"+number+"/children")) {
		if pid, _ := strconv.Atoi(string(field)); innerPid(pid) == h.child {
			return pid
		}
	}
	return 0
}

// innerPid returns the number of a process in its own namespace; 0: there is no such process.
func innerPid(pid int) int {
	for line := range bytes.Lines(procFile(pid, "status")) {
		if numbers, ok := bytes.CutPrefix(line, []byte("NSpid:")); ok {
			fields := bytes.Fields(numbers)
			n, _ := strconv.Atoi(string(fields[len(fields)-1])) // the kernel writes numbers
			return n
		}
	}
	return 0
}

// exited waits for the end of the command. alone: it left no process behind. told is false if the helper ended without
// a word.
func (h *helper) exited() (exit Exit, alone, told bool) {
	for {
		m, err := h.next()
		if err != nil {
			return Exit{}, false, false
		}
		if m.Kind == kernel.Exited {
			exit.Code = m.Code
			if m.Signal != 0 {
				exit.Signal = SignalName(m.Signal)
			}
			return h.hit(exit), m.Alone, true
		}
	}
}

// wait collects the helper. clean: nothing of the tree is left.
func (h *helper) wait() (exit Exit, clean bool) {
	state, err := h.process.Wait()
	h.release()
	exit = h.hit(exitOf(state, err))
	h.close()
	return exit, err == nil && (h.level >= LevelFull || state.Exited())
}

// release collects what made the helper.
func (h *helper) release() {
	if h.first != nil {
		_, _ = h.first.Wait() // it has ended
	}
}

// cut makes the helper end the command and all that it left behind.
func (h *helper) cut() {
	conn, err := h.socket.file.SyscallConn()
	if err != nil {
		return // the helper has ended
	}
	_ = conn.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_WR) })
}

// kill ends the helper, which has not ended what it should.
func (h *helper) kill() { _ = h.process.Kill() }

func (h *helper) close() {
	h.closing.Do(func() {
		_ = h.socket.file.Close()
		for _, fd := range h.socket.rights {
			_ = unix.Close(fd)
		}
		h.group.End()
	})
}
