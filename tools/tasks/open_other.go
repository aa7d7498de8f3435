//go:build !unix

package tasks

import "os"

// readFlags open a file for reading.
const readFlags = os.O_RDONLY
