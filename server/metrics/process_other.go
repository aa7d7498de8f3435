//go:build !linux

package metrics

import "time"

// began is near enough to when the process began: packages start within milliseconds of it.
var began = time.Now()

// thisProcess tells what needs no call that differs between systems, and processor time.
func thisProcess() process {
	p := process{"process_start_time_seconds": float64(began.UnixNano()) / 1e9}
	if spent, ok := processorTime(); ok {
		p["process_cpu_seconds_total"] = spent.Seconds()
	}
	return p
}
