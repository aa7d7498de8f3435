package filestate

import "os"

// A process is named by its id and when it started, since ids are given again. Started is in the
// system's own unit and only compared; 0: not known.
type process struct {
	pid     int
	started uint64
}

func thisProcess() process {
	pid := os.Getpid()
	started, _ := startOf(pid)
	return process{pid, started}
}

// dead says that the process has certainly ended. In doubt it lives.
func (p process) dead() bool {
	if p.pid <= 0 || !gone(p.pid) {
		started, ok := startOf(p.pid)
		return ok && p.started != 0 && started != p.started
	}
	return true
}
