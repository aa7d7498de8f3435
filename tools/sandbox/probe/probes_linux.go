package probe

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Gaps, as reports name them: what a process can reach whose level does not forbid it.
const (
	Environment      = "environment"
	FileSize         = "file-size"
	WritesOutside    = "writes-outside"
	ReadsOutside     = "reads-outside"
	ReadOnlyRoots    = "read-only-roots"
	NetworkGap       = "network"
	Sockets          = "sockets"
	Processes        = "processes"
	KernelCalls      = "kernel-calls"
	MetadataOutside  = "metadata-outside"
	ProtectedNames   = "protected-names"
	HiddenPaths      = "hidden-paths"
	ProcessesVisible = "processes-visible"
	Interfaces       = "network-visible"
	Privileges       = "privileges"
	IPC              = "ipc"
	Daemons          = "daemons"
	ReadableSockets  = "readable-sockets"
)

// Levels, as package sandbox counts them.
const (
	limits = 1 + iota
	walls
	full
)

// Probes are what is tried at the start: one attempt for each thing that a level promises to forbid.
func Probes() []Attempt {
	var list []Attempt
	add := func(level int, gap, name string, try func(*Scene) error) *Attempt {
		list = append(list, Attempt{Name: name, Level: level, Gap: gap, Try: try})
		return &list[len(list)-1]
	}
	add(limits, Environment, "see a variable of the server", foreignVariable)
	add(limits, FileSize, "make a huge file", hugeFile)

	add(walls, ReadsOutside, "read outside", func(s *Scene) error { return s.reads(s.Unlisted + "/secret") })
	add(walls, NetworkGap, "connect by TCP", func(s *Scene) error { return connectTCP(s, unix.IPPROTO_TCP) })
	add(walls, NetworkGap, "connect by MPTCP", func(s *Scene) error { return connectTCP(s, unix.IPPROTO_MPTCP) })
	add(walls, NetworkGap, "send by UDP", echoUDP)
	add(walls, Sockets, "connect to a socket outside", func(s *Scene) error { return connectPath(s.Unlisted) })
	add(walls, Sockets, "connect to a socket in a readable directory", func(s *Scene) error {
		return connectPath(s.Seen)
	}).Reads = true
	// What may make sockets of its own can also connect to those that it sees, until Landlock knows their paths.
	add(full+1, ReadableSockets, "connect to a socket in a readable directory from a root", func(s *Scene) error {
		return connectPath(s.Seen)
	}).Saves = true
	add(walls, Sockets, "connect to an abstract socket", connectAbstract)
	add(walls, Processes, "send a signal to a process outside", signalVictim)
	add(walls, Processes, "read the environment of a process outside", environVictim)
	add(walls, Processes, "trace a process outside", traceVictim)
	add(walls, KernelCalls, "io_uring_setup", func(*Scene) error { return call(unix.SYS_IO_URING_SETUP, 0, 0, 0) })
	add(walls, KernelCalls, "make a user namespace", func(*Scene) error { return namespace(unix.CLONE_NEWUSER) })
	add(walls, KernelCalls, "mount", func(s *Scene) error {
		return reached(unix.Mount("none", s.Root+"/none", "tmpfs", 0, ""), unix.ENOENT)
	})
	for _, way := range fileWays {
		add(walls, WritesOutside, way.name+" outside", func(s *Scene) error { return way.try(s.Seen) })
		add(walls, ReadOnlyRoots, way.name+" in the root", func(s *Scene) error { return way.try(s.Root) }).Reads = true
	}

	add(full, MetadataOutside, "change a mode outside", func(s *Scene) error { return os.Chmod(s.Seen+"/mode", 0o640) })
	add(full, MetadataOutside, "change a time outside", func(s *Scene) error {
		return os.Chtimes(s.Seen+"/times", time.Unix(1, 0), time.Unix(1, 0))
	})
	add(full, MetadataOutside, "set an attribute outside", func(s *Scene) error {
		err := unix.Setxattr(s.Seen+"/attribute", "user.probe", []byte("1"), 0)
		if errors.Is(err, unix.ENOTSUP) {
			return ErrAbsent
		}
		return err
	})
	add(full, ProtectedNames, "write .git/config", func(s *Scene) error {
		return appendTo(s.Root + "/.git/config")
	}).Saves = true
	add(full, ProtectedNames, "rename .git", func(s *Scene) error {
		return there(os.Rename, s.Root+"/.git", s.Root+"/x")
	}).Saves = true
	add(full, HiddenPaths, "read a hidden file", func(s *Scene) error { return s.reads(s.Hidden + "/secret") })
	add(full, ProcessesVisible, "see a process outside", seeVictim)
	add(full, Privileges, "have a capability", capability)
	add(full, Privileges, "gain privileges by a setuid program", newPrivileges)
	add(full, Interfaces, "see the machine's network", func(s *Scene) error { return same("net", s.Net) })
	add(full, IPC, "share memory and queues with processes outside", func(s *Scene) error { return same("ipc", s.IPC) })
	// The last one: it is judged by whether the output ends with the process.
	add(limits, Daemons, Daemon, startDaemon)
	return list
}

// Daemon is the attempt that leaves a process behind, with the output of the one that tried. The output ends only when
// the process has ended, so its reader sees whether it lives.
const Daemon = "leave a daemon behind"

// startDaemon leaves a process in a session of its own. It is no success yet.
func startDaemon(*Scene) error {
	const self = "/proc/self/exe"
	_, err := syscall.ForkExec(self, []string{self, daemon}, &syscall.ProcAttr{
		Files: []uintptr{0, 1, 1}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: the output tells", ErrAbsent)
}

// reached says whether the kernel came to look at the arguments of a call, which are such that nothing happens.
func reached(err error, as ...error) error {
	for _, e := range as {
		if errors.Is(err, e) {
			return nil
		}
	}
	return err
}

// call makes a system call whose arguments are wrong. Any error but a refusal means that it was let through.
func call(number uintptr, args ...uintptr) error {
	args = append(args, 0, 0, 0, 0, 0, 0)
	_, _, no := unix.Syscall6(number, args[0], args[1], args[2], args[3], args[4], args[5])
	switch no {
	case unix.EPERM, unix.EACCES, unix.ENOSYS:
		return no
	}
	return nil
}

// namespace makes a namespace for a child that is no program.
func namespace(flag uintptr) error {
	attr := &syscall.ProcAttr{Sys: &syscall.SysProcAttr{Cloneflags: flag}}
	_, err := syscall.ForkExec("/proc/self/none", []string{"none"}, attr)
	return reached(err, unix.ENOENT)
}

// there does something to a path and back again.
func there(do func(from, to string) error, from, to string) error {
	err := do(from, to)
	if err == nil {
		_ = do(to, from)
	}
	return err
}

// reads reports whether a file can be read that holds the token.
func (s *Scene) reads(path string) error {
	text, err := os.ReadFile(path)
	if err == nil && !strings.Contains(string(text), s.Token) {
		return wrong("%s holds something else", path)
	}
	return err
}

// samePIDs reports whether numbers of processes mean what they mean outside.
func (s *Scene) samePIDs() bool {
	return same("pid", s.PIDs) == nil
}

// same reports whether this process is in a namespace of the server.
func same(kind, server string) error {
	if name, err := os.Readlink("/proc/self/ns/" + kind); err == nil && name != server {
		return wrong("it is in another one")
	}
	return nil
}

// victim does something to the process outside.
func (s *Scene) victim(do func(pid int) error) error {
	if !s.samePIDs() {
		return unix.ESRCH
	}
	return do(s.Victim)
}

func foreignVariable(s *Scene) error {
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if !slices.Contains(s.Variables, name) {
			return nil
		}
	}
	return wrong("there is none")
}

func hugeFile(*Scene) error {
	signal.Ignore(unix.SIGXFSZ)
	fd, err := unix.MemfdCreate("huge", unix.MFD_CLOEXEC)
	if err != nil {
		return ErrAbsent
	}
	defer func() { _ = unix.Close(fd) }()
	return unix.Ftruncate(fd, 1<<40)
}

func connectTCP(s *Scene, protocol int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, protocol)
	if errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.ENOPROTOOPT) {
		return fmt.Errorf("%w: %w", ErrAbsent, err) // of this kernel
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	err = unix.Connect(fd, &unix.SockaddrInet4{Port: s.TCP, Addr: [4]byte{127, 0, 0, 1}})
	if own, _ := unix.Getsockname(fd); err == nil && metItself(own, s.TCP) {
		return connectTCP(s, protocol) // while this one holds that port
	}
	return err
}

// metItself says that a socket got the port as its own which it was to reach. In a network of its own, where nothing
// listens, it then reaches itself, once in some 28,000 times.
func metItself(own unix.Sockaddr, port int) bool {
	at, is := own.(*unix.SockaddrInet4)
	return is && at.Port == port
}

func echoUDP(s *Scene) error {
	c, err := net.Dial("udp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(s.UDP)))
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if own, is := c.LocalAddr().(*net.UDPAddr); is && own.Port == s.UDP {
		return echoUDP(s) // as metItself, while this one holds that port
	}
	_ = c.SetDeadline(time.Now().Add(time.Second)) // loopback answers at once, or refuses at once
	if _, err := c.Write([]byte(s.Token)); err != nil {
		return err
	}
	_, err = c.Read(make([]byte, 64))
	return err
}

func connectPath(dir string) error {
	path := dir + SocketName
	if len(path) > SocketMost {
		return ErrAbsent
	}
	return connectUnix(path)
}

func connectAbstract(s *Scene) error { return connectUnix(s.Abstract) }

func connectUnix(address string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return unix.Connect(fd, &unix.SockaddrUnix{Name: address})
}

func signalVictim(s *Scene) error {
	return s.victim(func(pid int) error { return unix.Kill(pid, 0) })
}

func environVictim(s *Scene) error { return s.reads("/proc/" + strconv.Itoa(s.Victim) + "/environ") }

// traceVictim does not stop it, and lets it go with the thread that traces.
func traceVictim(s *Scene) error {
	return s.victim(func(pid int) error {
		_, _, no := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(pid), 0, 0, 0, 0)
		if no != 0 {
			return no
		}
		return nil
	})
}

func seeVictim(s *Scene) error {
	return s.victim(func(pid int) error {
		_, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return err
	})
}

// status returns the lines of /proc/self/status whose names have a prefix.
func status(prefix string) (map[string]string, error) {
	text, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		return nil, err
	}
	fields := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, value, _ := strings.Cut(line, ":"); strings.HasPrefix(name, prefix) {
			fields[name] = strings.TrimSpace(value)
		}
	}
	return fields, nil
}

// capability looks at all five sets. Without /proc it cannot tell.
func capability(*Scene) error {
	sets, err := status("Cap")
	if err != nil || len(sets) < 5 {
		return nil //nolint:nilerr // an attempt without an error has succeeded, and so has what cannot be ruled out
	}
	for _, set := range sets {
		if strings.Trim(set, "0") != "" {
			return nil
		}
	}
	return wrong("all sets are empty")
}

func newPrivileges(*Scene) error {
	if n, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err == nil && n == 1 {
		return wrong("new privileges are forbidden")
	}
	return nil
}

func appendTo(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString("\n")
	return errors.Join(err, f.Close())
}

func makeFile(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(path))
}

// fileWays are ways to change what is in a directory.
var fileWays = []struct {
	name string
	try  func(dir string) error
}{
	{"create a file", func(dir string) error { return makeFile(dir + "/made") }},
	{"overwrite a file", func(dir string) error { return appendTo(dir + "/overwrite") }},
	{"truncate a file", func(dir string) error { return os.Truncate(dir+"/truncate", 0) }},
	{"rename a file", func(dir string) error { return there(os.Rename, dir+"/rename", dir+"/renamed") }},
	{"link a file", func(dir string) error {
		if err := os.Link(dir+"/link", dir+"/linked"); err != nil {
			return err
		}
		return os.Remove(dir + "/linked")
	}},
	{"unlink a file", func(dir string) error { return os.Remove(dir + "/unlink") }},
}
