package main

import "os"

// version is set at release by the linker; see buildVersion for other builds.
var version = ""

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
