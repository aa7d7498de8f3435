package probe

import (
	"os"
	"os/exec"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"codehand/filestate/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// TestMetItself: level 3 was not proved in one process of hundreds, as a probe in a network of its own got the very
// port that it was to reach, and took its own words for an answer from outside. Here one port of four is that.
func TestMetItself(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root makes a network here")
	}
	runtime.LockOSThread() // never unlocked: the thread ends with the test, and its network with it
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skipf("no network of its own: %v", err)
	}
	if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		t.Skipf("no loopback: %v %s", err, out)
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_local_port_range", []byte("40000 40003"), 0); err != nil {
		t.Skipf("no range of ports: %v", err)
	}
	s := &Scene{TCP: 40000, UDP: 40000, Token: "x"}
	for range 100 {
		if echoUDP(s) == nil {
			t.Fatal("UDP: it answered itself")
		}
		if connectTCP(s, unix.IPPROTO_TCP) == nil {
			t.Fatal("TCP: it reached itself")
		}
	}
}
