package kernel

import (
	"errors"

	"golang.org/x/sys/unix"
)

// A terminalError is a terminal that the system does not give.
type terminalError struct{ error }

func (e *terminalError) Unwrap() error { return e.error }

// openTerminal makes the command's terminal. At LevelFull it is one of the command's own /dev/pts, so that the command
// finds it by its name and nothing of it is outside. It becomes the controlling terminal of the command's session,
// which is a new one: it never has to do with a terminal of the server. The server gets the other end.
func (h *helper) openTerminal() error {
	ours, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return failed(err, "open /dev/ptmx")
	}
	defer func() { _ = unix.Close(ours) }() // the server has a copy
	if err := unix.IoctlSetPointerInt(ours, unix.TIOCSPTLCK, 0); err != nil {
		return failed(err, "unlock the terminal")
	}
	size := &unix.Winsize{Col: h.spec.Terminal.Columns, Row: h.spec.Terminal.Rows}
	if err := unix.IoctlSetWinsize(ours, unix.TIOCSWINSZ, size); err != nil {
		return failed(err, "set the size of the terminal")
	}
	// Not by its name, which means nothing where /dev/pts is of another instance.
	const flags = unix.O_RDWR | unix.O_NOCTTY | unix.O_CLOEXEC
	tty, _, no := unix.Syscall(unix.SYS_IOCTL, uintptr(ours), unix.TIOCGPTPEER, flags)
	if no != 0 {
		return failed(no, "open the terminal")
	}
	h.tty = int(tty)
	if mode, err := unix.IoctlGetTermios(h.tty, unix.TCGETS); err == nil {
		mode.Iflag |= unix.IUTF8 // the key that takes back a character takes back a whole one
		_ = unix.IoctlSetTermios(h.tty, unix.TCSETS, mode)
	}
	if h.tty <= 2 || h.tty == controlFD || h.tty == dirFD { // never: these are in use
		return errors.New("the terminal has the number of a stream")
	}
	h.tell(Message{Kind: Opened}, ours)
	return nil
}
