//go:build !score

package main

import (
	"fmt"
	"os"
)

// main says how this command is built: `go build ./...` meets it, too.
func main() {
	fmt.Fprintln(os.Stderr, "score: build it with -tags score")
	os.Exit(2)
}
