//go:build !linux

package sandbox

import (
	"context"
	"runtime"
)

// Probe proves how far this machine confines commands: not at all by its kernel.
func Probe(context.Context, string) Report {
	return Report{Level: LevelLimits, Gaps: limitGaps(LevelLimits), Failed: &Failure{
		Level: LevelKernel, Probe: "codehand knows no way to confine commands on " + runtime.GOOS,
		Remedy: "Run codehand on Linux, also in a virtual machine.",
	}}
}
