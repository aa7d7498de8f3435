package listen

import (
	"bytes"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// holder returns the pid of the codehand that listens on an address; 0: another program does, or it cannot be seen. A
// codehand hides what it has open from everybody but root (sandbox.Hide), so for others the only one that runs is a
// guess, and sure is false.
func holder(a address) (pid int, sure bool) {
	var inodes []string
	switch a.network {
	case "unix":
		inodes = unixInodes(a.at)
	case "tcp":
		to, err := netip.ParseAddrPort(a.at)
		if err != nil {
			return 0, false
		}
		inodes = append(tcpInodes("/proc/net/tcp", to.Port()), tcpInodes("/proc/net/tcp6", to.Port())...)
	}
	if len(inodes) == 0 {
		return 0, false
	}
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, false
	}
	var hidden []int
	for _, p := range processes {
		name, err := os.ReadFile(p + "/comm")
		if err != nil || string(bytes.TrimSpace(name)) != "codehand" {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(p))
		if err != nil || pid == os.Getpid() {
			continue
		}
		fds, err := os.ReadDir(p + "/fd")
		if err != nil {
			hidden = append(hidden, pid)
			continue
		}
		for _, fd := range fds {
			to, err := os.Readlink(p + "/fd/" + fd.Name())
			if err != nil {
				continue
			}
			for _, inode := range inodes {
				if to == "socket:["+inode+"]" {
					return pid, true
				}
			}
		}
	}
	if len(hidden) == 1 {
		return hidden[0], false
	}
	return 0, false
}

// tcpInodes returns the sockets that listen on a port. The columns are those of proc(5): the second is the local
// address in hex, the fourth the state, 0A for listening, and the tenth the inode.
func tcpInodes(table string, port uint16) []string {
	suffix := ":" + strings.ToUpper(strconv.FormatUint(0x10000|uint64(port), 16)[1:])
	return inodes(table, func(f []string) (string, bool) {
		if len(f) < 10 || f[3] != "0A" || !strings.HasSuffix(f[1], suffix) {
			return "", false
		}
		return f[9], true
	})
}

// unixInodes returns the sockets at a path: the seventh column is the inode, and the eighth the path.
func unixInodes(path string) []string {
	return inodes("/proc/net/unix", func(f []string) (string, bool) {
		if len(f) != 8 || f[7] != path {
			return "", false
		}
		return f[6], true
	})
}

func inodes(table string, pick func(fields []string) (inode string, ok bool)) []string {
	text, err := os.ReadFile(table)
	if err != nil {
		return nil
	}
	var found []string
	for line := range strings.Lines(string(text)) {
		if inode, ok := pick(strings.Fields(line)); ok {
			found = append(found, inode)
		}
	}
	return found
}
