package sandbox

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Programs returns what runs in the tree. known is false where the system does not tell all of it.
func (p *Process) Programs() (all []Program, known bool) {
	known, front := true, p.front()
	for _, m := range p.look() {
		argv := bytes.Split(bytes.TrimSuffix(procFile(m.pid, "cmdline"), []byte{0}), []byte{0})
		if len(argv[0]) == 0 { // it ends, or becomes another program
			known = known && !running(m.pid)
			continue
		}
		line := Program{Front: front == m.group}
		for _, word := range argv {
			line.Words = append(line.Words, string(word))
		}
		line.Name = filepath.Base(line.Words[0])
		if exe, err := os.Readlink("/proc/" + strconv.Itoa(m.pid) + "/exe"); err == nil {
			line.Name = filepath.Base(exe)
		}
		all = append(all, line)
	}
	return all, known
}

// front is the group of processes that may read the terminal; 0: unknown, or there is no terminal.
func (p *Process) front() (group int) {
	p.onTerminal(func(fd int) { group, _ = unix.IoctlGetInt(fd, unix.TIOCGPGRP) })
	return group
}

// onTerminal calls do with our end of the terminal, if that is open.
func (p *Process) onTerminal(do func(fd int)) {
	if p.helper.terminal == nil {
		return
	}
	if conn, err := p.helper.terminal.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) { do(int(fd)) }) // it was closed meanwhile
	}
}

// AsksSecretly says whether the terminal takes lines and does not show what is typed, as where a password is asked for.
func (p *Process) AsksSecretly() (secret bool) {
	p.onTerminal(func(fd int) {
		mode, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		secret = err == nil && mode.Lflag&unix.ICANON != 0 && mode.Lflag&unix.ECHO == 0
	})
	return secret
}

// ResizeTerminal changes the size of the terminal; what runs in front of it is told by a signal.
func (p *Process) ResizeTerminal(w Window) error {
	err := ErrTerminal
	p.onTerminal(func(fd int) {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: w.Columns, Row: w.Rows})
	})
	return err
}
