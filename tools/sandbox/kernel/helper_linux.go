package kernel

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A helper is started for every command, so it does not wait until all packages of the server are initialised, which
// takes longer than its own work (BenchmarkStart). This package needs little, so it comes early. In any other process
// this is one comparison.
func init() {
	if len(os.Args) > 0 && os.Args[0] == Arg0 {
		syscall.Exit(help()) // at once: os.Exit of a program with the race detector waits a second
	}
}

// A stepError is why a command could not be started.
type stepError struct {
	step string
	err  error
}

func (e *stepError) Error() string { return e.step + ": " + e.err.Error() }
func (e *stepError) Unwrap() error { return e.err }

// A commandError is a command that cannot be started, confined or not.
type commandError struct{ error }

func (e *commandError) Unwrap() error { return e.error }

// failed says which step went wrong; nil for no error.
func failed(err error, step string, args ...any) error {
	if err == nil {
		return nil
	}
	return &stepError{fmt.Sprintf(step, args...), err}
}

// A helper is this process.
type helper struct {
	spec    Spec
	control *bufio.Reader
	child   int    // 0: none yet, or it was collected
	world   *world // of the command; nil: it has that of the server
	tty     int    // the command's end of its terminal; 0: it has none
}

// help does the work of a helper and returns its exit code. Its first thread, to which every init is locked, keeps what
// commands may not have: another one confines itself and starts the command.
func help() int {
	runtime.LockOSThread() // also against new threads that are made from this one
	unix.CloseOnExec(controlFD)
	unix.CloseOnExec(dirFD)
	s := &socket{}
	h := &helper{control: bufio.NewReader(s)}
	line, err := h.control.ReadBytes('\n')
	if err != nil {
		return 1 // the server died
	}
	if err := h.spec.decode(line); err != nil {
		return h.fail(failed(err, "read what shall be started"))
	}
	if h.spec.Passed {
		if err := h.adopt(s.rights); err != nil {
			return h.fail(err)
		}
	}
	if h.spec.Nested {
		if err := h.move(); err != nil {
			return h.fail(err)
		}
		return 0
	}
	// One that was moved was in the group of the one that moved it. Any other leads a session already.
	_, _ = unix.Setsid()
	if err := h.start(); err != nil {
		return h.fail(err)
	}
	return h.serve()
}

// A socket is our end of the socket to the server. It keeps the descriptors that come with what is read.
type socket struct{ rights []int }

func (s *socket) Read(b []byte) (int, error) {
	oob := make([]byte, unix.CmsgSpace(4*passed))
	for {
		n, more, _, _, err := unix.Recvmsg(controlFD, b, oob, unix.MSG_CMSG_CLOEXEC)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return 0, err
		case n == 0:
			return 0, errors.New("closed")
		}
		if messages, err := unix.ParseSocketControlMessage(oob[:more]); err == nil {
			for _, m := range messages {
				rights, _ := unix.ParseUnixRights(&m) // none, if it is of another kind
				s.rights = append(s.rights, rights...)
			}
		}
		return n, nil
	}
}

// passed is how many descriptors a spare helper gets at most: the streams and the working directory.
const passed = 4

// adopt puts descriptors that came over the socket where those of a command are.
func (h *helper) adopt(rights []int) error {
	targets := []int{0, 1, 2}
	if h.spec.Dir {
		targets = append(targets, dirFD)
	}
	if len(rights) != len(targets) {
		return failed(unix.EBADF, "get the streams")
	}
	for i, fd := range rights {
		flags := 0
		if targets[i] == dirFD {
			flags = unix.O_CLOEXEC
		}
		if err := unix.Dup3(fd, targets[i], flags); err != nil {
			return failed(err, "get the streams")
		}
		_ = unix.Close(fd)
	}
	return nil
}

func (h *helper) tell(m Message, rights ...int) {
	line, _ := json.Marshal(m) // of strings and numbers
	var oob []byte
	if len(rights) > 0 {
		oob = unix.UnixRights(rights...)
	}
	// A server that died reads nothing; the other goroutine sees that.
	_ = unix.Sendmsg(controlFD, append(line, '\n'), oob, nil, unix.MSG_NOSIGNAL)
}

// fail tells the server why nothing was started.
func (h *helper) fail(err error) int {
	var command *commandError
	var term *terminalError
	m := Message{Kind: Failed, Step: err.Error(), NoTerm: errors.As(err, &term)}
	m.Confining = !m.NoTerm && !errors.As(err, &command)
	var step *stepError
	var no syscall.Errno
	if errors.As(err, &step) {
		m.Step = step.step
	}
	if errors.As(err, &no) {
		m.Errno = int(no)
	} else {
		m.Step = err.Error()
	}
	h.tell(m)
	return 1
}

// Environ returns the environment of a helper. With the number of processors given, the runtime does not look for it; a
// helper makes too little garbage to collect any.
func Environ() []string { return []string{"GOMAXPROCS=2", "GOGC=off"} }

// namespaces are those of a command at LevelFull.
func (s *Spec) namespaces() uintptr {
	flags := uintptr(unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS |
		unix.CLONE_NEWCGROUP)
	if s.Profile.Network != NetworkOn {
		flags |= unix.CLONE_NEWNET
	}
	return flags
}

// Namespaces returns how a helper of this Spec is started; nil: as any process.
func (s *Spec) Namespaces(attr *syscall.SysProcAttr) {
	if s.Level < LevelFull {
		return
	}
	attr.Cloneflags = s.namespaces()
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: s.Identity[0], HostID: s.Identity[0], Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: s.Identity[1], HostID: s.Identity[1], Size: 1}}
	// A process that is not root loses the others when it becomes the helper.
	attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP, unix.CAP_SYS_RESOURCE}
}

// move starts the helper anew in namespaces, as a child of the server. A server that hides its memory and is not root
// cannot do that itself: the kernel lets it write no identity map for a child that has not become another program.
// It stays in the group of this process until it has instructions: by that the server finds it if this process is
// killed before it can tell.
func (h *helper) move() error {
	attr := &syscall.SysProcAttr{}
	h.spec.Namespaces(attr)
	attr.Cloneflags |= unix.CLONE_PARENT
	files := []uintptr{0, 1, 2, controlFD}
	if h.spec.Dir {
		files = append(files, dirFD)
	}
	next := &syscall.ProcAttr{Env: Environ(), Files: files, Sys: attr}
	pid, err := syscall.ForkExec("/proc/self/exe", Argv(h.spec.Level), next)
	if err != nil {
		return failed(err, "make namespaces")
	}
	h.tell(Message{Kind: Moved, Pid: pid})
	return nil
}

// start makes what the command runs in, and starts it.
func (h *helper) start() error {
	s := &h.spec
	if s.Level < LevelFull {
		// What the command leaves behind comes to us.
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return failed(err, "adopt orphans")
		}
	}
	// The command goes before the server when memory runs out.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	setLimits(s.Limits)
	if s.Level >= LevelFull && s.Profile.Network != NetworkOn {
		if err := h.loopback(); err != nil {
			return err
		}
	}
	if err := h.enter(); err != nil {
		return err
	}
	if s.Terminal != nil {
		if err := h.openTerminal(); err != nil {
			return &terminalError{err}
		}
	}
	// Commands run as the same user: they shall not look into this process.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return failed(err, "hide the helper")
	}
	if h.world != nil && len(h.world.covers) > 0 {
		h.world.listen()
		go h.world.coverAgain()
	}
	began := make(chan error)
	go func() {
		runtime.LockOSThread() // and the thread ends with this function
		began <- h.begin()
	}()
	if err := <-began; err != nil {
		return err
	}
	if h.tty != 0 { // else the server would not see that the command has closed it
		_ = unix.Close(h.tty)
	}
	go h.watch()
	ignoreSignals()
	h.tell(Message{Kind: Started, Pid: h.child})
	return nil
}

// begin confines its thread and starts the command from it. The kernel looks at the first thread of a process to decide
// who may send it a signal, so the first thread stays outside: else the command could kill the helper and outlive it.
func (h *helper) begin() error {
	if h.spec.Group && h.spec.Level >= LevelFull {
		// Namespaces are a thread's: this one has the command.
		if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
			return failed(err, "hide the control groups outside")
		}
	}
	if h.spec.Level >= LevelKernel {
		if err := confine(&h.spec, h.tty); err != nil {
			return err
		}
	}
	pid, err := h.execute()
	if err != nil {
		return &commandError{failed(err, "start %s", h.spec.Path)}
	}
	h.child = pid
	return nil
}

// execute starts the command. Its limit of memory is set by a shell that becomes it: this process would not survive the
// limit, since its runtime has reserved more than most programs need, and set from here it would come after the start.
func (h *helper) execute() (pid int, err error) {
	path, args := h.spec.Path, h.spec.Args
	if h.spec.Memory > 0 {
		limit := "ulimit -v " + strconv.FormatUint(h.spec.Memory/1024, 10) + ` && exec "$0" "$@"`
		path, args = "/bin/sh", append([]string{"sh", "-c", limit, path}, args[1:]...)
	}
	attr := &syscall.ProcAttr{
		Env: h.spec.Env, Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true},
	}
	if h.tty != 0 {
		fd := uintptr(h.tty)
		attr.Files, attr.Sys.Setctty = []uintptr{fd, fd, fd}, true // Ctty 0: the first stream of the command
	}
	return syscall.ForkExec(path, args, attr)
}

func setLimits(limits []Limit) {
	for _, l := range limits {
		var old unix.Rlimit
		if unix.Getrlimit(l.Resource, &old) == nil {
			_ = unix.Setrlimit(l.Resource, &unix.Rlimit{Cur: min(l.Soft, old.Max), Max: min(l.Hard, old.Max)})
		}
	}
}

// loopback makes the command's own network, which is its loopback. For NetworkList the server gets a socket that
// listens there.
func (h *helper) loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return failed(err, "open a socket")
	}
	defer func() { _ = unix.Close(fd) }()
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return failed(err, "name the loopback")
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return failed(err, "start the loopback")
	}
	if h.spec.Profile.Network != NetworkList {
		return nil
	}
	err = unix.Bind(fd, &unix.SockaddrInet4{Port: proxyPort, Addr: [4]byte{127, 0, 0, 1}})
	if err == nil {
		err = unix.Listen(fd, unix.SOMAXCONN)
	}
	if err != nil {
		return failed(err, "listen on the loopback")
	}
	h.tell(Message{Kind: Listens}, fd)
	return nil
}

// enter goes to the working directory, at LevelFull in a tree of files of its own.
func (h *helper) enter() error {
	switch {
	case h.spec.Level >= LevelFull:
		w, err := build(&h.spec)
		h.world = w
		return err
	case h.spec.Dir:
		return failed(unix.Fchdir(dirFD), "enter the working directory")
	default:
		return failed(unix.Chdir("/"), "enter the root directory")
	}
}

// watch ends everything when the server closes the socket or dies. serve then collects what has ended.
func (h *helper) watch() {
	for {
		if _, err := h.control.ReadByte(); err != nil {
			break
		}
	}
	if h.spec.Level < LevelFull {
		killAll()
		return
	}
	_ = unix.Kill(-1, unix.SIGKILL) // all others of this namespace
}

// ignoreSignals keeps the helper alive when a whole group or service is asked to end: the command gets such a signal
// itself, and the server decides about the rest. The command was started before, or it would ignore them, too. Package
// os/signal would do it more plainly, and comes late when the program starts.
func ignoreSignals() {
	action := struct {
		handler, flags, restorer uintptr
		mask                     uint64
	}{handler: 1} // SIG_IGN
	for _, s := range []unix.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT} {
		// It cannot fail for these.
		_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
	}
}

// serve collects children until none is left, and tells how the command ended.
func (h *helper) serve() int {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return 0 // no process is left
		}
		if pid != h.child {
			continue
		}
		m := Message{Kind: Exited, Code: status.ExitStatus()}
		if status.Signaled() {
			m.Code, m.Signal = 128+int(status.Signal()), int(status.Signal())
		}
		h.child = 0 // another process can get its number
		m.Alone = alone()
		h.tell(m)
	}
}

// alone collects what has ended and reports whether this process has no children.
func alone() bool {
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		if errors.Is(err, unix.ECHILD) {
			return true
		}
		if err == nil && pid == 0 {
			return false
		}
	}
}

// killAll ends all descendants, until this process ends because none is left. As a subreaper it gets what they leave
// behind, so none is lost; but one look may miss a process whose parent ends meanwhile.
func killAll() {
	for {
		for _, pid := range descendants() {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		time.Sleep(time.Millisecond)
	}
}

// descendants returns the living processes below this one.
func descendants() []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }() // only read
	names, _ := dir.Readdirnames(-1)   // what could be read counts
	below := map[int][]int{}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		text, _ := os.ReadFile("/proc/" + name + "/stat")
		// The second field is the program's name in parentheses, which may itself hold blanks and parentheses.
		fields := strings.Fields(string(text[1+strings.LastIndexByte(string(text), ')'):]))
		if len(fields) < 2 || fields[0] == "Z" || fields[0] == "X" {
			continue
		}
		if parent, err := strconv.Atoi(fields[1]); err == nil {
			below[parent] = append(below[parent], pid)
		}
	}
	all := below[os.Getpid()]
	for i := 0; i < len(all); i++ {
		all = append(all, below[all[i]]...)
	}
	return all
}
