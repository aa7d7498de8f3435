package peers

import (
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"codehand/filestate/leaktest"
)

const tableHead = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"

// stranger is a user who is neither root nor who runs the tests.
const stranger = 54321

func TestFindOwner(t *testing.T) {
	t.Parallel()
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("the tables are those of a little-endian machine")
	}
	const rest = " 1 0000000000000000 100 0 0 10 0\n"
	v4 := tableHead +
		"   0: 0100007F:1D09 00000000:0000 0A 00000000:00000000 00:00000000 00000000   500        0 100" + rest + // listening
		"   1: 0100007F:1D09 0100007F:C350 01 00000000:00000000 00:00000000 00000000   500        0 101" + rest + // our side
		"   2: 0100007F:C350 0100007F:1D09 01 00000000:00000000 00:00000000 00000000  1001        0 102" + rest +
		"   3: 0100007F:C351 0100007F:1D09 06 00000000:00000000 03:00000F3B 00000000     0        0 0 3 0000000000000000\n" + // TIME_WAIT
		"   4: 0100007F:C352 0100007F:1D09 05 00000000:00000000 00:00000000 00000000  1001        0 104" + rest + // FIN_WAIT2
		"   5: 0100007F:C353 0100007F:1D09 01 00000000:00000000 00:00000000 00000000     0        0 0" + rest + // an orphan
		"   6: 0100007F:C354 0100007F:1D0A 01 00000000:00000000 00:00000000 00000000  1002        0 106" + rest +
		"   7: 0100007F:C355\n"
	v6 := tableHead +
		"   0: 00000000000000000000000001000000:C350 00000000000000000000000001000000:1D09 01 00000000:00000000 00:00000000 00000000  1003        0 110" + rest +
		"   1: 0000000000000000FFFF00000100007F:C360 0000000000000000FFFF00000100007F:1D09 01 00000000:00000000 00:00000000 00000000  1004        0 111" + rest +
		"   2: B80D0120000000000000000001000000:C350 B80D0120000000000000000002000000:1D09 01 00000000:00000000 00:00000000 00000000  1005        0 112" + rest
	for _, c := range []struct {
		table, remote, local string
		want                 end
	}{
		{v4, "127.0.0.1:50000", "127.0.0.1:7433", end{uid: 1001, inode: "102"}},
		{v4, "127.0.0.1:50001", "127.0.0.1:7433", nowhere}, // hung up: the kernel says root
		{v4, "127.0.0.1:50002", "127.0.0.1:7433", nowhere},
		{v4, "127.0.0.1:50003", "127.0.0.1:7433", nowhere},
		{v4, "127.0.0.1:50004", "127.0.0.1:7433", nowhere}, // towards another port
		{v4, "127.0.0.1:50004", "127.0.0.1:7434", end{uid: 1002, inode: "106"}},
		{v4, "127.0.0.1:50005", "127.0.0.1:7433", nowhere},
		{v4, "127.0.0.2:50000", "127.0.0.1:7433", nowhere},
		{v4, "127.0.0.1:50000", "127.0.0.2:7433", nowhere},
		{v6, "[::1]:50000", "[::1]:7433", end{uid: 1003, inode: "110"}},
		{v6, "127.0.0.1:50016", "127.0.0.1:7433", end{uid: 1004, inode: "111"}},
		{v6, "[2001:db8::1]:50000", "[2001:db8::2]:7433", end{uid: 1005, inode: "112"}},
		{v6, "[2001:db8::1]:50000", "[2001:db8::3]:7433", nowhere},
		{"", "127.0.0.1:1", "127.0.0.1:2", nowhere},
		{tableHead, "127.0.0.1:1", "127.0.0.1:2", nowhere},
	} {
		got, err := findOwner(strings.NewReader(c.table), netip.MustParseAddrPort(c.remote), netip.MustParseAddrPort(c.local))
		if err != nil || got != c.want {
			t.Errorf("%s to %s: got %+v (%v), want %+v", c.remote, c.local, got, err, c.want)
		}
	}
	bad := strings.Replace(v4, " 1001 ", " root ", 1)
	if got, err := findOwner(strings.NewReader(bad), netip.MustParseAddrPort("127.0.0.1:50000"), netip.MustParseAddrPort("127.0.0.1:7433")); err == nil || got != nowhere {
		t.Errorf("a user without a number: got %+v (%v)", got, err)
	}
}

// Another user of the machine gets 403, over TCP and over a Unix socket. As root the client's socket is given to another
// user, as whose the kernel then lists it; else the server takes itself for one.
func TestOtherUser(t *testing.T) {
	t.Parallel()
	root := os.Geteuid() == 0
	foreign, give := New(), func(net.Conn) {}
	if root {
		give = func(c net.Conn) {
			raw, err := c.(*net.TCPConn).SyscallConn()
			if err != nil {
				t.Error(err)
				return
			}
			if failed := raw.Control(func(fd uintptr) { err = syscall.Fchown(int(fd), stranger, stranger) }); failed != nil || err != nil {
				t.Error(failed, err)
			}
		}
	} else {
		foreign.uid = stranger
	}
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		if got := get(t, serve(t, foreign, "tcp", address), give); got != 403 {
			t.Errorf("%s: another user gets %d", address, got)
		}
	}
	if root { // SO_PEERCRED is that of the process, and root is always let in
		return
	}
	if got := get(t, serve(t, foreign, "unix", filepath.Join(leaktest.Public(t), "s")), nil); got != 403 {
		t.Errorf("unix: another user gets %d", got)
	}
}

// The owner of a Unix connection is who connected it.
func TestUnixOwner(t *testing.T) {
	t.Parallel()
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", filepath.Join(leaktest.Public(t), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := new(net.Dialer).DialContext(t.Context(), "unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got, want := unixOwner(c.(syscall.Conn)), (end{uid: os.Geteuid(), pid: os.Getpid()}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func BenchmarkTCPOwner(b *testing.B) {
	l, err := new(net.ListenConfig).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	c, err := new(net.Dialer).DialContext(b.Context(), "tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	remote, _ := addrPort(c.LocalAddr())
	local, _ := addrPort(c.RemoteAddr())
	for b.Loop() {
		if found, err := tcpOwner(remote, local); err != nil || found.uid != os.Geteuid() {
			b.Fatal(found, err)
		}
	}
}
