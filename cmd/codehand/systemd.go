package main

import (
	"fmt"
	"net"
	"os"
	"strconv"
)

// firstSocket is the descriptor of the first socket that systemd passes: sd_listen_fds(3).
const firstSocket = 3

// systemdSockets returns the sockets that systemd opened for this process, and forgets about them, so that no child
// takes them for its own.
func systemdSockets() ([]net.Listener, error) {
	pid, count := os.Getenv("LISTEN_PID"), os.Getenv("LISTEN_FDS")
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		if err := os.Unsetenv(name); err != nil {
			return nil, err
		}
	}
	if pid != strconv.Itoa(os.Getpid()) {
		return nil, nil // they are another process's
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 0 {
		return nil, fmt.Errorf("LISTEN_FDS=%q: must be a whole number", count)
	}
	var all []net.Listener
	for fd := firstSocket; fd < firstSocket+n; fd++ {
		f := os.NewFile(uintptr(fd), "LISTEN_FD_"+strconv.Itoa(fd))
		l, err := net.FileListener(f) // has a descriptor of its own, which children do not inherit
		_ = f.Close()                 // so this one is of no use
		if err != nil {
			return nil, fmt.Errorf("descriptor %d of systemd: %w", fd, err)
		}
		all = append(all, l)
	}
	return all, nil
}

// notify tells systemd about a unit with Type=notify: sd_notify(3). Elsewhere it does nothing.
func (run *serving) notify(state string) {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return
	}
	c, err := net.Dial("unixgram", path) // a leading @ means what systemd means by it
	if err == nil {
		_, err = c.Write([]byte(state))
		_ = c.Close() // all was written
	}
	if err != nil {
		run.say("cannot tell systemd %s: %v", state, err)
	}
}
