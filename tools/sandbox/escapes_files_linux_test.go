package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"codehand/tools/sandbox/probe"
)

// opens opens a file for writing, and leaves it as it is.
func opens(path string, flags ...int) error {
	flag := unix.O_WRONLY
	for _, f := range flags {
		flag |= f
	}
	fd, err := unix.Open(path, flag|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// reopens opens what a descriptor leads to, for writing.
func reopens(fd int) error { return opens("/proc/self/fd/" + strconv.Itoa(fd)) }

// fileEscapes change what is outside, or read it. Each has a canary of its own, named after it.
func fileEscapes() []escape {
	var list []escape
	// In the read-only profile a root is as much outside as the rest.
	both := func(name string, level int, gap string, try func(s *probe.Scene, path string) error) {
		here := escape{Attempt: probe.Attempt{Name: name + " outside", Level: level, Gap: gap}}
		here.Try = func(s *probe.Scene) error { return try(s, s.Seen+"/"+slug(here.Name)) }
		root := escape{Attempt: probe.Attempt{Name: name + " in the root", Level: level, Gap: gap, Reads: true}}
		if level == 2 {
			root.Gap = probe.ReadOnlyRoots
		}
		root.Try = func(s *probe.Scene) error { return try(s, s.Root+"/"+slug(root.Name)) }
		list = append(list, here, root)
	}
	write := func(name string, try func(s *probe.Scene, path string) error) {
		both(name, 2, probe.WritesOutside, try)
	}
	mark := func(name string, try func(s *probe.Scene, path string) error) {
		both(name, 3, probe.MetadataOutside, try)
	}

	write("append", func(_ *probe.Scene, p string) error { return opens(p, unix.O_APPEND) })
	write("open and truncate", func(_ *probe.Scene, p string) error { return opens(p, unix.O_TRUNC) })
	write("make a directory", func(_ *probe.Scene, p string) error { return os.Mkdir(p+"-new", 0o700) })
	write("remove a directory", func(_ *probe.Scene, p string) error { return os.Remove(filepath.Dir(p) + "/empty") })
	write("make a link", func(_ *probe.Scene, p string) error { return os.Symlink("x", p+"-new") })
	write("make a pipe", func(_ *probe.Scene, p string) error { return unix.Mkfifo(p+"-new", 0o600) })
	write("make a socket", func(_ *probe.Scene, p string) error { return unix.Mknod(p+"-new", unix.S_IFSOCK|0o600, 0) })
	write("make a file without a name", func(_ *probe.Scene, p string) error {
		return opens(filepath.Dir(p), unix.O_TMPFILE)
	})
	write("exchange two files", func(_ *probe.Scene, p string) error {
		return unix.Renameat2(unix.AT_FDCWD, p, unix.AT_FDCWD, filepath.Dir(p)+"/mode", unix.RENAME_EXCHANGE)
	})
	write("reopen a file for writing", func(_ *probe.Scene, p string) error {
		fd, err := unix.Open(p, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return reopens(fd)
	})
	write("open by a handle of the directory", func(_ *probe.Scene, p string) error {
		dir, err := unix.Open(filepath.Dir(p), unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(dir)
		fd, err := unix.Openat(dir, filepath.Base(p), unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		return unix.Close(fd)
	})
	write("open through /proc/self/root", func(_ *probe.Scene, p string) error { return opens("/proc/self/root" + p) })
	write("open through the root of another process", func(s *probe.Scene, p string) error {
		return opens("/proc/" + strconv.Itoa(s.Victim) + "/root" + p)
	})
	write("open from the working directory", func(s *probe.Scene, p string) error {
		rel, err := filepath.Rel(s.Root, p)
		if err != nil {
			return err
		}
		return opens("/proc/self/cwd/" + rel)
	})
	write("map and write", func(_ *probe.Scene, p string) error {
		fd, err := unix.Open(p, unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		b, err := unix.Mmap(fd, 0, 1, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			return err
		}
		b[0] = 'x'
		return unix.Munmap(b)
	})

	mark("chmod through a descriptor", func(_ *probe.Scene, p string) error {
		fd, err := unix.Open(p, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Fchmod(fd, 0o640)
	})
	mark("chmod through /proc", func(_ *probe.Scene, p string) error {
		fd, err := unix.Open(p, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), 0o640)
	})
	mark("change the owner", func(_ *probe.Scene, p string) error { return os.Chown(p, -1, os.Getegid()) })
	mark("change the times of the directory", func(_ *probe.Scene, p string) error {
		return os.Chtimes(filepath.Dir(p), time.Unix(1, 0), time.Unix(1, 0))
	})
	mark("set an attribute", func(_ *probe.Scene, p string) error {
		return absentIf(unix.Setxattr(p, "user.escape", []byte("x"), 0), unix.ENOTSUP)
	})
	mark("set flags of the file system", func(_ *probe.Scene, p string) error {
		fd, err := unix.Open(p, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		const noDump = 0x40
		now, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
		if err != nil {
			return absentIf(err, unix.ENOTTY, unix.ENOTSUP)
		}
		return absentIf(unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, now|noDump), unix.ENOTTY, unix.ENOTSUP)
	})

	add := func(level int, gap, name string, try func(s *probe.Scene) error) {
		list = append(list, escape{Attempt: probe.Attempt{Name: name, Level: level, Gap: gap, Try: try}})
	}
	add(2, probe.WritesOutside, "write through a link in the root", func(s *probe.Scene) error {
		return opens(s.Root + "/to-seen/mode")
	})
	add(2, probe.WritesOutside, "write where a private temporary directory should be", func(s *probe.Scene) error {
		return opens("/var/tmp/"+filepath.Base(s.Token), unix.O_CREAT|unix.O_EXCL)
	})
	list[len(list)-1].done = func(s *probe.Scene) bool { return appeared("/var/tmp/" + s.Token) }
	add(2, probe.WritesOutside, "write in shared memory", func(s *probe.Scene) error {
		return opens("/dev/shm/"+s.Token+"-made", unix.O_CREAT|unix.O_EXCL)
	})
	list[len(list)-1].done = func(s *probe.Scene) bool { return appeared("/dev/shm/" + s.Token + "-made") }
	add(2, probe.ReadsOutside, "list a directory outside", func(s *probe.Scene) error { return names(s.Unlisted) })
	add(2, probe.ReadsOutside, "read through a link in the root", func(s *probe.Scene) error {
		return holds(s.Root+"/to-unlisted/secret", s.Token)
	})
	add(2, probe.ReadsOutside, "read through /proc/self/root", func(s *probe.Scene) error {
		return holds("/proc/self/root"+s.Unlisted+"/secret", s.Token)
	})
	add(2, probe.ReadsOutside, "read while a link is exchanged", readSwapped)
	add(2, probe.ReadsOutside, "read shared memory of others", func(s *probe.Scene) error {
		return holds("/dev/shm/"+s.Token, s.Token)
	})
	add(2, probe.ReadsOutside, "run a program outside", func(s *probe.Scene) error {
		pid, err := syscall.ForkExec(s.Unlisted+"/program", []string{"program"}, nil)
		if err == nil {
			_, err = unix.Wait4(pid, nil, 0, nil)
		}
		return err
	})
	add(3, probe.MetadataOutside, "look at a file outside", func(s *probe.Scene) error {
		_, err := os.Stat(s.Unlisted + "/secret")
		return err
	})
	add(3, probe.MetadataOutside, "watch a directory outside", func(s *probe.Scene) error { return watch(s.Unlisted) })
	add(3, probe.HiddenPaths, "list a hidden directory", func(s *probe.Scene) error { return names(s.Hidden) })
	add(3, probe.HiddenPaths, "read a hidden file through a link", func(s *probe.Scene) error {
		return holds(s.Root+"/to-hidden/secret", s.Token)
	})
	add(3, probe.HiddenPaths, "watch a hidden directory", func(s *probe.Scene) error { return watch(s.Hidden) })
	add(3, probe.HiddenPaths, "tell a hidden name from one that is not there", func(s *probe.Scene) error {
		_, there := os.Stat(s.Hidden + "/secret")
		_, missing := os.Stat(s.Hidden + "/nothing")
		if errors.Is(there, errnoOf(missing)) {
			return errors.New("both give the same error")
		}
		return nil
	})
	add(3, probe.HiddenPaths, "move a hidden directory away", func(s *probe.Scene) error {
		return os.Rename(s.Hidden, s.Root+"/hidden")
	})
	list[len(list)-1].free = "the parent is not writable below level 1"
	return append(list, handleEscapes()...)
}

// handleEscapes use descriptors that the process was born with, and names of files that are no paths.
func handleEscapes() []escape {
	return []escape{
		{Attempt: probe.Attempt{Name: "have a descriptor of the server", Level: 1, Gap: "descriptors", Try: inherited}, free: "every level forbids it"},
		{Attempt: probe.Attempt{Name: "write the file that is the input", Level: 2, Gap: probe.WritesOutside, Try: func(*probe.Scene) error {
			return reopens(0)
		}}},
		{Attempt: probe.Attempt{Name: "change the mode of a device", Level: 3, Gap: probe.MetadataOutside, Try: func(*probe.Scene) error {
			return os.Chmod(os.DevNull, 0o666) // as it is
		}}, root: true},
		{Attempt: probe.Attempt{Name: "change the mode of a device that is a stream", Level: 3, Gap: probe.MetadataOutside, Try: func(*probe.Scene) error {
			return unix.Fchmod(2, 0o666)
		}}, root: true},
		{Attempt: probe.Attempt{Name: "open by a number of the file system", Level: 2, Gap: probe.ReadsOutside, Try: byHandle}, root: true},
		{Attempt: probe.Attempt{Name: "overwrite a program by a process that has ended", Level: 2, Gap: probe.WritesOutside, Try: overwriteEnded}},
		{Attempt: probe.Attempt{Name: "overwrite the program of the helper", Level: 2, Gap: probe.WritesOutside, Try: func(*probe.Scene) error {
			return unlessAs(opens("/proc/"+strconv.Itoa(os.Getppid())+"/exe"), unix.ETXTBSY)
		}}, root: true},
	}
}

// overwriteEnded opens the program of a process by /proc, and writes to it after the process has ended.
func overwriteEnded(s *probe.Scene) error {
	pid, err := syscall.ForkExec(s.Seen+"/sleep", []string{"sleep", "60"}, &syscall.ProcAttr{Env: []string{}})
	if err != nil {
		return err
	}
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/exe", unix.O_PATH|unix.O_CLOEXEC, 0)
	_ = unix.Kill(pid, unix.SIGKILL)
	_, _ = unix.Wait4(pid, nil, 0, nil)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return reopens(fd)
}

func errnoOf(err error) error {
	var no syscall.Errno
	if errors.As(err, &no) {
		return no
	}
	return errors.New("no error")
}

func absentIf(err error, those ...error) error {
	if unlessAs(err, those...) == nil && err != nil {
		return probe.ErrAbsent
	}
	return err
}

func unlessAs(err error, those ...error) error {
	for _, e := range those {
		if errors.Is(err, e) {
			return nil
		}
	}
	return err
}

func names(dir string) error {
	list, err := os.ReadDir(dir)
	if err == nil && len(list) == 0 {
		return errors.New("it is empty")
	}
	return err
}

func holds(path, token string) error {
	text, err := os.ReadFile(path)
	if err == nil && string(text) != token {
		return errors.New("it holds something else")
	}
	return err
}

// appeared reports whether there is a file, and removes it.
func appeared(path string) bool { return os.Remove(path) == nil }

func watch(dir string) error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.InotifyAddWatch(fd, dir, unix.IN_CREATE|unix.IN_OPEN)
	return err
}

// readSwapped reads through a name that leads to a file in the root and to one outside, by turns.
func readSwapped(s *probe.Scene) error {
	place := s.Root
	if !s.Write {
		var err error
		if place, err = os.MkdirTemp("", "swap"); err != nil {
			place = "" // there is nowhere to make a link
		}
		defer os.RemoveAll(place)
	}
	name := place + "/swapped"
	for range 2000 {
		for _, to := range []string{s.Root, s.Unlisted} {
			if place == "" {
				name = s.Root + "/to-unlisted"
			} else {
				_ = os.Remove(name)
				_ = os.Symlink(to, name)
			}
			if holds(name+"/secret", s.Token) == nil {
				return nil
			}
		}
	}
	return errors.New("2000 times it led nowhere")
}

// inherited looks for descriptors that no process needs. Go opens settings of its group of processes by itself.
func inherited(*probe.Scene) error {
	for fd := 3; fd < 256; fd++ {
		to, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
		if err == nil && !strings.HasPrefix(to, "anon_inode:") && !strings.HasPrefix(to, "/sys/fs/cgroup/") {
			return nil
		}
	}
	return errors.New("there is none")
}

// byHandle opens a file by the number that its file system gives it.
func byHandle(s *probe.Scene) error {
	handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, s.Unlisted+"/secret", 0)
	if err != nil {
		return err
	}
	dir, err := unix.Open(s.Seen, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	fd, err := unix.OpenByHandleAt(dir, handle, unix.O_RDONLY|unix.O_CLOEXEC)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// protectedEscapes change what a root holds and no command may change.
func protectedEscapes() []escape {
	var list []escape
	add := func(name string, try func(root string) error) {
		list = append(list, escape{Attempt: probe.Attempt{
			Name: name, Level: 3, Gap: probe.ProtectedNames, Saves: true,
			Try: func(s *probe.Scene) error { return try(s.Root) },
		}})
	}
	add("make a hook", func(root string) error { return opens(root+"/.git/hooks/post-commit", unix.O_CREAT|unix.O_EXCL) })
	add("overwrite a hook", func(root string) error { return opens(root + "/.git/hooks/pre-commit") })
	add("rename the directory of hooks", func(root string) error { return thereAndBack(root+"/.git/hooks", root+"/.git/x") })
	add("truncate a protected file", func(root string) error { return os.Truncate(root+"/.git/config", 1) })
	add("rename over a protected file", func(root string) error {
		return os.Rename(root+"/"+slug("rename over a protected file"), root+"/.git/config")
	})
	add("change the mode of a protected file", func(root string) error { return os.Chmod(root+"/.git/config", 0o640) })
	add("link a protected file and write it there", func(root string) error {
		if err := os.Link(root+"/.git/config", root+"/config-link"); err != nil {
			return err
		}
		return opens(root + "/config-link")
	})
	add("open a protected file by a handle of its directory", func(root string) error {
		dir, err := unix.Open(root+"/.git", unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(dir)
		fd, err := unix.Openat(dir, "config", unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		return unix.Close(fd)
	})
	add("rename what contains a protected file", func(root string) error { return thereAndBack(root+"/below", root+"/other") })
	add("exchange .git for another directory", func(root string) error {
		return exchangeAndBack(root+"/.git", root+"/place")
	})
	add("put a link in the place of a protected directory", func(root string) error {
		if err := os.Symlink("place", root+"/hooks-link"); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		return exchangeAndBack(root+"/hooks-link", root+"/.git/hooks")
	})
	add("remove a protected file", func(root string) error { return os.Remove(root + "/below/.git/config") })
	return list
}

func thereAndBack(from, to string) error {
	err := os.Rename(from, to)
	if err == nil {
		err = os.Rename(to, from)
	}
	return err
}

func exchangeAndBack(a, b string) error {
	exchange := func() error { return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE) }
	err := exchange()
	if err == nil {
		err = exchange()
	}
	return err
}
