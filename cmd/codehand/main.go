package main

import (
	"os"
	"runtime/debug"
)

// version is set at release by the linker; see buildVersion for other builds.
var version = ""

const (
	// gcPercent lets the heap grow to 16 MiB before it is collected: the live heap is below 4 MiB, and a collection
	// every 4 MiB shows in BenchmarkStdioInFlight and BenchmarkColdStart.
	gcPercent = 400
	// memoryLimit makes the collector work harder from here on, or three writes of 20 MB would take 250 MiB.
	memoryLimit = 96 << 20
)

func main() {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetGCPercent(gcPercent)
		debug.SetMemoryLimit(memoryLimit)
	}
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
