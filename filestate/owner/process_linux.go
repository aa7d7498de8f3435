package owner

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"syscall"
)

// startOf returns when a process started, in clock ticks since boot (proc(5), field 22 of stat).
func startOf(pid int) (uint64, bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	// Field 2 is the program's name in parentheses, which may hold blanks and parentheses itself.
	_, rest, ok := bytes.Cut(stat[max(bytes.LastIndexByte(stat, ')'), 0):], []byte(" "))
	fields := bytes.Fields(rest)
	if !ok || len(fields) < 20 {
		return 0, false
	}
	started, err := strconv.ParseUint(string(fields[19]), 10, 64)
	return started, err == nil
}

// gone says that there is no process of that id.
func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
