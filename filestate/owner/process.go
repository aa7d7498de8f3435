package owner

// A Process is named by its id and when it started, since ids are given again. Started is in the
// system's own unit and only compared; 0: not known.
type Process struct {
	ID      int
	Started uint64
}

// ProcessOf is the process that has that id now.
func ProcessOf(pid int) Process {
	started, _ := startOf(pid)
	return Process{pid, started}
}

// Dead says that the process has certainly ended. In doubt it lives.
func (p Process) Dead() bool {
	if p.ID <= 0 || !gone(p.ID) {
		started, ok := startOf(p.ID)
		return ok && p.Started != 0 && started != p.Started
	}
	return true
}
