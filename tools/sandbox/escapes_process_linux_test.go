package sandbox

import (
	"errors"
	"net"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"codehand/tools/sandbox/probe"
)

// call makes a system call.
func call(number uintptr, args ...uintptr) error {
	args = append(args, 0, 0, 0, 0, 0, 0)
	_, _, no := unix.Syscall6(number, args[0], args[1], args[2], args[3], args[4], args[5])
	if no != 0 {
		return no
	}
	return nil
}

// letsThrough says whether a system call with wrong arguments is let through: every error but a refusal says so.
func letsThrough(number uintptr, args ...uintptr) error {
	err := call(number, args...)
	return onlyAs(err, unix.EPERM, unix.EACCES, unix.ENOSYS)
}

func onlyAs(err error, those ...error) error {
	if err == nil || unlessAs(err, those...) != nil {
		return nil
	}
	return err
}

// sameNamespace reports whether this process is in the namespace of the server.
func sameNamespace(kind, server string) bool {
	name, err := os.Readlink("/proc/self/ns/" + kind)
	return err != nil || name == server
}

// processEscapes reach for a process of the same user outside, or for the helper.
func processEscapes() []escape {
	const lowest = 19 // a priority that each process may be given, also where the tests run under nice
	var list []escape
	victim := func(level int, gap, name string, try func(s *probe.Scene, pid int) error) {
		list = append(list, escape{Attempt: probe.Attempt{Name: name, Level: level, Gap: gap, Try: func(s *probe.Scene) error {
			if !sameNamespace("pid", s.PIDs) {
				return unix.ESRCH // that number means no process here
			}
			return try(s, s.Victim)
		}}})
	}
	file := func(name, entry string, level int, gap string, flag int) {
		list = append(list, escape{Attempt: probe.Attempt{Name: name, Level: level, Gap: gap, Try: func(s *probe.Scene) error {
			fd, err := unix.Open("/proc/"+strconv.Itoa(s.Victim)+"/"+entry, flag|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			if !sameNamespace("pid", s.PIDs) && os.Getpid() == s.Victim {
				return unix.ESRCH
			}
			return unix.Close(fd)
		}}})
	}
	file("open the memory of a process outside", "mem", 2, probe.Processes, unix.O_RDWR)
	file("list the memory of a process outside", "maps", 2, probe.Processes, unix.O_RDONLY)
	file("enter the root of a process outside", "root/etc", 2, probe.Processes, unix.O_RDONLY)
	file("enter the directory of a process outside", "cwd", 2, probe.Processes, unix.O_RDONLY)
	file("open a descriptor of a process outside", "fd/0", 2, probe.Processes, unix.O_RDONLY|unix.O_NONBLOCK)
	file("read the command line of a process outside", "cmdline", 3, probe.ProcessesVisible, unix.O_RDONLY)

	victim(2, probe.Processes, "send a signal through a descriptor of a process", func(_ *probe.Scene, pid int) error {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.PidfdSendSignal(fd, 0, nil, 0)
	})
	victim(2, probe.Processes, "send a signal to a thread", func(_ *probe.Scene, pid int) error { return unix.Tgkill(pid, pid, 0) })
	victim(2, probe.Processes, "send a signal to a group", func(_ *probe.Scene, pid int) error {
		group, err := unix.Getpgid(pid)
		if err != nil {
			return err
		}
		return unix.Kill(-group, 0)
	})
	victim(2, probe.Processes, "take a descriptor of a process outside", func(_ *probe.Scene, pid int) error {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		taken, err := unix.PidfdGetfd(fd, 0, 0)
		if err != nil {
			return err
		}
		return unix.Close(taken)
	})
	victim(2, probe.Processes, "read the memory of a process outside", func(_ *probe.Scene, pid int) error {
		return vmCall(unix.SYS_PROCESS_VM_READV, pid)
	})
	victim(2, probe.Processes, "write the memory of a process outside", func(_ *probe.Scene, pid int) error {
		return vmCall(unix.SYS_PROCESS_VM_WRITEV, pid)
	})
	victim(2, probe.KernelCalls, "compare processes", func(_ *probe.Scene, pid int) error {
		return onlyAs(call(unix.SYS_KCMP, uintptr(os.Getpid()), uintptr(pid), 0, 0, 0), unix.EPERM, unix.EACCES)
	})
	victim(2, probe.Processes, "change the priority of a process outside", func(_ *probe.Scene, pid int) error {
		return unix.Setpriority(unix.PRIO_PROCESS, pid, lowest)
	})
	victim(2, probe.Processes, "change the priority of a group outside", func(_ *probe.Scene, pid int) error {
		group, err := unix.Getpgid(pid)
		if err != nil {
			return err
		}
		return unix.Setpriority(unix.PRIO_PGRP, group, lowest)
	})
	victim(2, probe.Processes, "change the priority of all of a user", func(_ *probe.Scene, _ int) error {
		return letsThrough(unix.SYS_SETPRIORITY, unix.PRIO_USER, 1<<30, 1) // there is no such user
	})
	victim(2, probe.Processes, "change the priority of a process outside at its disk", func(_ *probe.Scene, pid int) error {
		return call(unix.SYS_IOPRIO_SET, 1, uintptr(pid), 3<<13)
	})
	victim(2, probe.Processes, "look at the limits of a process outside", func(_ *probe.Scene, pid int) error {
		var old unix.Rlimit
		return unix.Prlimit(pid, unix.RLIMIT_CORE, nil, &old)
	})
	victim(2, probe.Processes, "change the limits of a process outside", func(_ *probe.Scene, pid int) error {
		return unix.Prlimit(pid, unix.RLIMIT_CORE, &unix.Rlimit{}, nil)
	})
	victim(2, probe.Processes, "move a process outside to another processor", func(_ *probe.Scene, pid int) error {
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(pid, &set); err != nil {
			return err
		}
		return unix.SchedSetaffinity(pid, &set)
	})
	for name, number := range map[string]uintptr{
		"scheduler": unix.SYS_SCHED_SETSCHEDULER, "parameters": unix.SYS_SCHED_SETPARAM, "attributes": unix.SYS_SCHED_SETATTR,
	} {
		victim(2, probe.Processes, "change the "+name+" of a process outside", func(_ *probe.Scene, pid int) error {
			return letsThrough(number, uintptr(pid))
		})
	}
	return append(list, helperEscapes()...)
}

// vmCall reads a byte of another process's memory, or writes one where nothing is mapped.
func vmCall(number uintptr, pid int) error {
	var b [1]byte
	own := unix.Iovec{Base: &b[0], Len: 1}
	theirs := [2]uintptr{16, 1} // an address that no process has
	var pin runtime.Pinner
	pin.Pin(&b[0])
	defer pin.Unpin()
	err := call(number, uintptr(pid), uintptr(unsafe.Pointer(&own)), 1, uintptr(unsafe.Pointer(&theirs)), 1, 0)
	return unlessAs(err, unix.EFAULT)
}

// helperEscapes reach for the helper, which is not confined as its commands are.
func helperEscapes() []escape {
	var list []escape
	add := func(name string, try func(pid string) error) {
		list = append(list, escape{Attempt: probe.Attempt{
			Name: name, Level: 2, Gap: probe.Processes,
			Try: func(*probe.Scene) error { return try("/proc/" + strconv.Itoa(os.Getppid())) },
		}, root: true})
	}
	add("read the environment of the helper", func(at string) error {
		_, err := os.ReadFile(at + "/environ")
		return err
	})
	add("open the memory of the helper", func(at string) error { return opens(at + "/mem") })
	add("open a descriptor of the helper", func(at string) error {
		for fd := range 16 { // the third one is the socket to the server
			if _, err := os.Readlink(at + "/fd/" + strconv.Itoa(fd)); err == nil {
				return nil
			}
		}
		return unix.EACCES
	})
	add("enter the root of the helper", func(at string) error { return names(at + "/root/") })
	list = append(list,
		escape{Attempt: probe.Attempt{Name: "kill the helper", Level: 2, Gap: probe.Processes, Try: func(s *probe.Scene) error {
			if os.Getppid() == 1 && !sameNamespace("pid", s.PIDs) {
				return errors.New("the first process of a namespace takes no signal from it")
			}
			return unix.Kill(os.Getppid(), 0)
		}}},
		escape{Attempt: probe.Attempt{Name: "trace the helper", Level: 2, Gap: probe.Processes, Try: func(*probe.Scene) error {
			return call(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(os.Getppid()))
		}}, root: true},
	)
	return list
}

// Sockets that tests make besides those of a ground are named in Unlisted.
const passing = "passing" // gives each peer that connects a descriptor of Unlisted

// socketEscapes reach the network and sockets of others.
func socketEscapes() []escape {
	var list []escape
	add := func(gap, name string, try func(s *probe.Scene) error) {
		list = append(list, escape{Attempt: probe.Attempt{Name: name, Level: 2, Gap: gap, Try: try}})
	}
	add(probe.NetworkGap, "connect by TCP fast open", func(s *probe.Scene) error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN|unix.MSG_NOSIGNAL, &unix.SockaddrInet4{Port: s.TCP, Addr: [4]byte{127, 0, 0, 1}})
	})
	add(probe.NetworkGap, "listen for others", func(s *probe.Scene) error {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return err
		}
		_ = l.Close()
		if !sameNamespace("net", s.Net) {
			return errors.New("nobody else is there")
		}
		return nil
	})
	add(probe.NetworkGap, "ask the kernel for the sockets of others", func(s *probe.Scene) error {
		return ownFamily(s, unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_SOCK_DIAG)
	})
	list[len(list)-1].always = true
	add(probe.NetworkGap, "ask the kernel for routes", func(s *probe.Scene) error {
		return ownFamily(s, unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE)
	})
	add(probe.NetworkGap, "make a socket to the host of a virtual machine", func(*probe.Scene) error {
		return family(unix.AF_VSOCK, unix.SOCK_STREAM, 0)
	})
	list[len(list)-1].always = true
	add(probe.NetworkGap, "make a socket of the kernel's ciphers", func(*probe.Scene) error { return family(unix.AF_ALG, unix.SOCK_SEQPACKET, 0) })
	list[len(list)-1].always = true
	add(probe.NetworkGap, "make a socket of another kind", func(*probe.Scene) error {
		for number := range 46 {
			switch number {
			case unix.AF_UNSPEC, unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK:
				continue
			}
			for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_RAW, unix.SOCK_SEQPACKET} {
				if family(number, kind, 0) == nil {
					return nil
				}
			}
		}
		return unix.EAFNOSUPPORT
	})
	list[len(list)-1].always = true
	add(probe.NetworkGap, "make a pair of sockets of another kind", func(*probe.Scene) error {
		pair, err := unix.Socketpair(unix.AF_TIPC, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return absentIf(err, unix.EAFNOSUPPORT, unix.EOPNOTSUPP)
		}
		_ = unix.Close(pair[0])
		return unix.Close(pair[1])
	})
	list[len(list)-1].always = true
	add(probe.NetworkGap, "hide the family of a socket in upper bits", func(s *probe.Scene) error {
		fd, _, no := unix.Syscall(unix.SYS_SOCKET, unix.AF_INET|1<<32, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if no != 0 {
			return no
		}
		defer unix.Close(int(fd))
		return unix.Connect(int(fd), &unix.SockaddrInet4{Port: s.TCP, Addr: [4]byte{127, 0, 0, 1}})
	})
	add(probe.Sockets, "send to a socket by its path", func(s *probe.Scene) error {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Sendto(fd, []byte("x"), 0, &unix.SockaddrUnix{Name: s.Unlisted + "/datagrams"})
	})
	add(probe.Sockets, "connect to a socket through a link", func(s *probe.Scene) error {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Connect(fd, &unix.SockaddrUnix{Name: "to-unlisted" + probe.SocketName})
	})
	add(probe.Sockets, "get a descriptor from a process outside", receive)
	for _, raw := range []struct {
		name                   string
		family, kind, protocol int
	}{
		{"make a raw socket", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP},
		{"make a socket that sees all packets", unix.AF_PACKET, unix.SOCK_RAW, 0},
	} {
		add(probe.NetworkGap, raw.name, func(s *probe.Scene) error { return ownFamily(s, raw.family, raw.kind, raw.protocol) })
		list[len(list)-1].root, list[len(list)-1].always = true, true
	}
	return list
}

func family(number, kind, protocol int) error {
	fd, err := unix.Socket(number, kind|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// ownFamily is harmless in a net namespace without other processes.
func ownFamily(s *probe.Scene, number, kind, protocol int) error {
	err := family(number, kind, protocol)
	if err == nil && !sameNamespace("net", s.Net) {
		return errors.New("nobody else is there")
	}
	return err
}

// receive gets a directory from a process that may read it.
func receive(s *probe.Scene) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: s.Unlisted + "/" + passing}); err != nil {
		return err
	}
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(fd, make([]byte, 1), oob, 0)
	if err != nil {
		return err
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) == 0 {
		return errors.New("nothing came")
	}
	rights, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return err
	}
	secret, err := unix.Openat(rights[0], "secret", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return unix.Close(secret)
}

// stageProcesses makes whom the attempts above and those of machineEscapes talk to.
func stageProcesses(t *testing.T, s *probe.Scene) {
	t.Helper()
	datagrams, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: s.Unlisted + "/datagrams", Net: "unixgram"})
	must(t, err)
	t.Cleanup(func() { _ = datagrams.Close() })
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: s.Unlisted + "/" + passing, Net: "unix"})
	must(t, err)
	dir, err := os.Open(s.Unlisted)
	must(t, err)
	given := make(chan struct{})
	go func() {
		defer close(given)
		for {
			c, err := l.AcceptUnix()
			if err != nil {
				return
			}
			_, _, _ = c.WriteMsgUnix([]byte("x"), unix.UnixRights(int(dir.Fd())), nil)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-given; _ = dir.Close() })
	must(t, os.WriteFile("/dev/shm/"+s.Token, []byte(s.Token), 0o600))
	t.Cleanup(func() { _ = os.Remove("/dev/shm/" + s.Token) })
	stageQueues(t, s)
}

// shell runs a script in the root of the scene; descriptor extra is its number 9. MARK is a file outside, which tells
// whether the script came there.
func shell(s *probe.Scene, script string, extra ...int) error {
	files := []uintptr{0, 1, 2}
	if len(extra) > 0 {
		for len(files) < 9 {
			files = append(files, ^uintptr(0))
		}
		files = append(files, uintptr(extra[0]))
	}
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(null)
	for i := range 3 {
		files[i] = uintptr(null)
	}
	pid, err := syscall.ForkExec("/bin/sh", []string{"sh", "-c", script}, &syscall.ProcAttr{
		Dir: s.Root, Env: []string{"PATH=" + defaultPath, "HOME=" + s.Root, "SEEN=" + s.Seen, "ROOT=" + s.Root}, Files: files,
	})
	if err != nil {
		return err
	}
	var status unix.WaitStatus
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		_, err = unix.Wait4(pid, &status, 0, nil)
	}
	switch {
	case err != nil:
		return err
	case status.ExitStatus() == 127:
		return probe.ErrAbsent
	case status.ExitStatus() != 0:
		return errors.New("the script ended with " + strconv.Itoa(status.ExitStatus()))
	}
	return nil
}
