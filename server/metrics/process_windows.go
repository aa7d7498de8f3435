package metrics

import "syscall"

// ask adds processor time.
func (p process) ask() {
	self, err := syscall.GetCurrentProcess()
	if err != nil {
		return
	}
	var created, ended, kernel, user syscall.Filetime
	if syscall.GetProcessTimes(self, &created, &ended, &kernel, &user) != nil {
		return
	}
	// Spans of time in steps of 100 ns, although the type is that of dates.
	span := func(f syscall.Filetime) float64 {
		return float64(int64(f.HighDateTime)<<32|int64(f.LowDateTime)) / 1e7
	}
	p["process_cpu_seconds_total"] = span(kernel) + span(user)
}
