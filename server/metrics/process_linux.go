package metrics

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// ticks are those of /proc in a second, USER_HZ: 100 on every architecture that Go knows.
const ticks = 100

// thisProcess reads /proc.
func thisProcess() process {
	p := process{}
	if stat, err := os.ReadFile("/proc/self/stat"); err == nil {
		p.stat(string(stat))
	}
	if files, err := os.ReadDir("/proc/self/fd"); err == nil {
		p["process_open_fds"] = float64(len(files) - 1) // the directory itself
	}
	p.limits()
	if counts, err := os.ReadFile("/proc/self/net/netstat"); err == nil {
		p.network(counts)
	}
	return p
}

// stat reads /proc/PID/stat: a name in parentheses, which may hold anything, and then numbers.
func (p process) stat(line string) {
	fields := strings.Fields(line[strings.LastIndexByte(line, ')')+1:])
	const state = 3 // the first after the name is field 3 of proc(5)
	at := func(field int) float64 {
		if field-state >= len(fields) {
			return 0
		}
		v, _ := strconv.ParseFloat(fields[field-state], 64)
		return v
	}
	p["process_cpu_seconds_total"] = (at(14) + at(15)) / ticks
	p["process_virtual_memory_bytes"] = at(23)
	p["process_resident_memory_bytes"] = at(24) * float64(os.Getpagesize())
	if all, err := os.ReadFile("/proc/stat"); err == nil {
		if _, after, ok := bytes.Cut(all, []byte("\nbtime ")); ok {
			line, _, _ := bytes.Cut(after, []byte("\n"))
			if boot, err := strconv.ParseFloat(string(line), 64); err == nil {
				p["process_start_time_seconds"] = boot + at(22)/ticks
			}
		}
	}
}

func (p process) limits() {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) == nil {
		p["process_max_fds"] = float64(l.Cur)
	}
	if syscall.Getrlimit(syscall.RLIMIT_AS, &l) == nil {
		p["process_virtual_memory_max_bytes"] = float64(l.Cur)
	}
}

// network reads /proc/PID/net/netstat, where a line of names comes before each line of values.
func (p process) network(counts []byte) {
	var names []string
	for line := range strings.Lines(string(counts)) {
		rest, ok := strings.CutPrefix(line, "IpExt:")
		if !ok {
			continue
		}
		fields := strings.Fields(rest)
		if names == nil {
			names = fields
			continue
		}
		for i, v := range fields[:min(len(fields), len(names))] {
			n, err := strconv.ParseFloat(v, 64)
			switch {
			case err != nil:
			case names[i] == "InOctets":
				p["process_network_receive_bytes_total"] = n
			case names[i] == "OutOctets":
				p["process_network_transmit_bytes_total"] = n
			}
		}
	}
}
