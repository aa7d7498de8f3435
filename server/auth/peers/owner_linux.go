package peers

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// tcpTables are the TCP sockets of this network namespace: an IPv4 client of a dual-stack listener is in the first
// one, one that uses an IPv6 socket for it in the second.
var tcpTables = [...]string{"/proc/net/tcp", "/proc/net/tcp6"}

// canLook says whether there are such tables.
func canLook() bool {
	_, err := os.Stat(tcpTables[0])
	return !errors.Is(err, fs.ErrNotExist)
}

// tcpOwner finds the other end of a connection, which is a socket of this machine.
func tcpOwner(remote, local netip.AddrPort) (end, error) {
	for i, name := range tcpTables {
		if i == 0 && remote.Addr().Is6() {
			continue // it cannot be there, and the kernel takes milliseconds for a table
		}
		f, err := os.Open(name)
		if i > 0 && errors.Is(err, fs.ErrNotExist) {
			continue // a kernel without IPv6
		} else if err != nil {
			return nowhere, err
		}
		found, err := findOwner(f, remote, local)
		_ = f.Close() // only read
		if err != nil || found != nowhere {
			return found, err
		}
	}
	return nowhere, nil
}

// established is the only state that counts. In the later ones a socket may have lost its process, and the kernel lists
// it with uid 0 and inode 0: a stranger who sends a request and hangs up would pass for root.
const established = "01"

// findOwner reads a table. Its columns: sl local_address rem_address st queues timer retrnsmt uid timeout inode ...
func findOwner(table io.Reader, remote, local netip.AddrPort) (end, error) {
	lines := bufio.NewScanner(table)
	for first := true; lines.Scan(); first = false {
		if first {
			continue
		}
		f := strings.Fields(lines.Text())
		if len(f) < 10 || f[3] != established || f[9] == "0" {
			continue
		}
		if at, err := parseSocket(f[1]); err != nil || at != remote {
			continue
		}
		if at, err := parseSocket(f[2]); err != nil || at != local {
			continue
		}
		uid, err := strconv.ParseUint(f[7], 10, 32)
		if err != nil {
			return nowhere, fmt.Errorf("table of sockets: uid %q", f[7])
		}
		return end{uid: int(uid), inode: f[9]}, nil
	}
	return nowhere, lines.Err()
}

// parseSocket reads an address as the kernel prints it: words of 32 bits in the byte order of the machine, and a port.
func parseSocket(text string) (netip.AddrPort, error) {
	address, port, _ := strings.Cut(text, ":")
	b, err := hex.DecodeString(address)
	if err != nil {
		return netip.AddrPort{}, err
	}
	for word := b; len(word) >= 4; word = word[4:] {
		binary.BigEndian.PutUint32(word, binary.NativeEndian.Uint32(word))
	}
	at, ok := netip.AddrFromSlice(b)
	n, err := strconv.ParseUint(port, 16, 16)
	if !ok || err != nil {
		return netip.AddrPort{}, fmt.Errorf("socket %q", text)
	}
	return netip.AddrPortFrom(at.Unmap(), uint16(n)), nil
}

// unixOwner returns who connected a Unix socket.
func unixOwner(c syscall.Conn) end {
	raw, err := c.SyscallConn()
	if err != nil {
		return nowhere
	}
	found := nowhere
	err = raw.Control(func(fd uintptr) {
		if cred, err := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED); err == nil {
			found = end{uid: int(cred.Uid), pid: int(cred.Pid)}
		}
	})
	if err != nil {
		return nowhere
	}
	return found
}
