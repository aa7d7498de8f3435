//go:build !linux

package metrics

import "time"

// began is near enough to when the process began: packages start within milliseconds of it.
var began = time.Now()

// thisProcess tells what the system tells without C.
func thisProcess() process {
	p := process{"process_start_time_seconds": float64(began.UnixNano()) / 1e9}
	p.ask()
	return p
}
