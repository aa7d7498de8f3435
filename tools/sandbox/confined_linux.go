package sandbox

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"codehand/tools/sandbox/kernel"
)

// Confined reports whether a process is part of a command that a codehand confines (LevelKernel or LevelFull), unless
// this process is part of the same command. It sees the server and the helper of other codehands, too. A command cannot
// leave the descendants of its helper, which adopts what loses its parent. known is false if the process has ended, or
// the system hides what started it.
func Confined(pid int) (confined, known bool) {
	return confinedBelow(pid, helpersAbove(os.Getpid()))
}

// ConfinedHere reports whether a command runs that is Confined and may use the network of this process.
func ConfinedHere() bool {
	own := helpersAbove(os.Getpid())
	parents := map[int]bool{}
	for _, pid := range pids() {
		if s, ok := statOf(pid); ok && !s.dead {
			parents[s.parent] = true
		}
	}
	network, _ := os.Readlink("/proc/self/ns/net") // where that is hidden, all helpers count
	for parent := range parents {
		if slices.Contains(own, parent) || !confines(parent) {
			continue
		}
		theirs, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(parent), "ns/net"))
		if err != nil || theirs == network {
			return true
		}
	}
	return false
}

// confinedBelow is Confined, where own are the helpers above this process.
func confinedBelow(pid int, own []int) (confined, known bool) {
	for range 3 { // a parent may end between two looks
		above, whole := lineage(pid)
		if whole {
			i := slices.IndexFunc(above, confines)
			return i >= 0 && !slices.Contains(own, above[i]), true
		}
	}
	return false, false
}

// helpersAbove returns the helpers that confine a process, the nearest first.
func helpersAbove(pid int) []int {
	above, _ := lineage(pid) // what can be seen counts
	return slices.DeleteFunc(above, func(pid int) bool { return !confines(pid) })
}

// lineage returns a process and those above it, the nearest first. whole: the last one is the first of all, or was
// started from outside of our namespace of processes.
func lineage(pid int) (above []int, whole bool) {
	for pid > 0 && !slices.Contains(above, pid) {
		s, ok := statOf(pid)
		if !ok {
			return above, pid == 1 && len(above) > 0 // hidden, as root's are with hidepid
		}
		above = append(above, pid)
		pid = s.parent
	}
	return above, pid == 0
}

// confines reports whether a process is a helper that confines its command.
func confines(pid int) bool {
	words := bytes.Split(procFile(pid, "cmdline"), []byte{0})
	if string(words[0]) != kernel.Arg0 {
		return false
	}
	// One without a level is of an older codehand, and counts.
	return len(words) < 2 || string(words[1]) != strconv.Itoa(kernel.LevelLimits)
}

// pids are the processes that this one sees.
func pids() []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }() // only read
	names, _ := dir.Readdirnames(-1)   // what could be read counts
	var all []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			all = append(all, pid)
		}
	}
	return all
}
