package peers

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"codehand/tools/sandbox"
)

// callerOf says whether a connection of our user or root is a confined command's. Its network may be ours, and what it
// calls would work for it outside of what it may reach.
//
// The socket's holder must be found outside of all such commands: a command can hide that it holds one, in a message
// that is under way or in a call that waits, but cannot give it to a process outside. That costs a look at all files
// that are open, so it is done only while such a command runs.
func callerOf(e end) Caller {
	if e.inode == "" {
		return ofProcess(e.pid)
	}
	if e.uid != os.Geteuid() {
		return Ours // root's, which we are not: no command of ours is
	}
	for try := range 3 { // the holder may be handing it on to a child
		if try > 0 {
			time.Sleep(lookAgain)
		}
		if !sandbox.ConfinedHere() {
			return Ours
		}
		if who := holderOf(e); who != Hidden {
			return who
		}
	}
	return Hidden
}

// ofProcess is who connected a Unix socket. The kernel noted the process then, and it may have ended since.
func ofProcess(pid int) Caller {
	switch confined, known := sandbox.Confined(pid); {
	case confined:
		return Confined
	case known || !sandbox.ConfinedHere():
		return Ours
	}
	return Hidden
}

// holderOf looks for the processes that have a socket open.
func holderOf(e end) Caller {
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return Hidden
	}
	who := Hidden
	for _, dir := range processes {
		holds, readable := has(dir, "socket:["+e.inode+"]")
		if !holds && (readable || !forwards(dir, e.uid)) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		switch confined, known := sandbox.Confined(pid); {
		case confined && holds:
			return Confined
		case known && !confined:
			who = Ours
		}
	}
	return who
}

// has says whether a process has a file open.
func has(dir, file string) (holds, readable bool) {
	open, err := os.Open(dir + "/fd")
	if err != nil {
		return false, os.IsNotExist(err)
	}
	defer func() { _ = open.Close() }() // only read
	names, err := open.Readdirnames(-1)
	if err != nil {
		return false, os.IsNotExist(err)
	}
	for _, name := range names {
		if to, err := os.Readlink(dir + "/fd/" + name); err == nil && to == file {
			return true, true
		}
	}
	return false, true
}

// forwards says whether a process of a user hides what it has open, as long as the user is not root, and connects for
// clients of this server: sshd, for `ssh -L`, and `codehand connect`.
func forwards(dir string, uid int) bool {
	status, err := os.ReadFile(dir + "/status")
	if err != nil || !bytes.Contains(status, []byte("\nUid:\t"+strconv.Itoa(uid)+"\t")) {
		return false
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(string(status), "Name:\t"), "\n")
	if strings.HasPrefix(name, "sshd") {
		return true
	}
	line, err := os.ReadFile(dir + "/cmdline")
	words := strings.Split(string(line), "\x00")
	return err == nil && name == "codehand" && len(words) > 1 && words[1] == "connect"
}
