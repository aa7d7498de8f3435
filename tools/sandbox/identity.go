package sandbox

import (
	"os"
	"strconv"
	"strings"
)

// Self names this process among all that ever ran since the machine was started: number and start time. For records
// that must tell later whether their owner is alive.
func Self() string { return identity(os.Getpid()) }

// Alive reports whether the process that Self named is still running on this machine. Where the system does not tell
// when a process was started, only the number counts.
func Alive(self string) bool {
	number, _, _ := strings.Cut(self, ".")
	pid, err := strconv.Atoi(number)
	return err == nil && pid > 0 && running(pid) && identity(pid) == self
}

func identity(pid int) string {
	return strconv.Itoa(pid) + "." + strconv.FormatUint(startOf(pid), 10)
}
