package metrics

import (
	"os"
	"testing"
	"time"
)

// TestProcess reads lines as proc(5) says they are, and then those of this process.
func TestProcess(t *testing.T) {
	t.Parallel()
	p := process{}
	p.stat("17 (a) b) (c) S 4 5 6 7 8 9 10 11 12 13 250 50 16 17 18 19 20 21 0 4096 2 25")
	want := process{
		"process_cpu_seconds_total": 3, "process_virtual_memory_bytes": 4096,
		"process_resident_memory_bytes": float64(2 * os.Getpagesize()),
	}
	for name, want := range want {
		if p[name] != want {
			t.Errorf("%s is %v, want %v", name, p[name], want)
		}
	}
	p.network([]byte("TcpExt: InOctets\nTcpExt: 1\nIpExt: InNoRoutes InOctets OutOctets\nIpExt: 0 7 9\n"))
	if p["process_network_receive_bytes_total"] != 7 || p["process_network_transmit_bytes_total"] != 9 {
		t.Errorf("network %v", p)
	}
	p.stat("17 (cut") // what is no line of the kernel is no reason to fall
	p.network([]byte("IpExt: InOctets\nIpExt: 1 2 3\n"))

	now := thisProcess()
	for _, n := range processNumbers {
		if v, ok := now[n.name]; !ok || v < 0 {
			t.Errorf("%s is %v", n.name, v)
		}
	}
	for _, name := range []string{
		"process_open_fds", "process_max_fds", "process_resident_memory_bytes",
		"process_virtual_memory_bytes", "process_virtual_memory_max_bytes",
	} {
		if now[name] < 1 {
			t.Errorf("%s is %v", name, now[name])
		}
	}
	began := time.Unix(0, int64(now["process_start_time_seconds"]*1e9))
	if age := time.Since(began); age < -2*time.Second || age > 24*time.Hour { // in whole seconds
		t.Errorf("this process began %v ago", age)
	}
}
