package main

import (
	"os"
	"runtime/debug"
)

// version is set at release by the linker; see buildVersion for other builds.
var version = ""

// gcPercent lets the heap grow to 16 MiB before it is collected. The live heap is below 4 MiB, and at the runtime's
// default a collection every 4 MiB is a tenth of the time of a call, and one of the start.
const gcPercent = 400

func main() {
	debug.SetGCPercent(gcPercent)
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
