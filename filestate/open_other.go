//go:build !unix

package filestate

import "os"

// readFlags open a file for reading.
const readFlags = os.O_RDONLY

// writeFlags open a file for writing into it.
const writeFlags = os.O_RDWR

// lockFlags open or make a lock file.
const lockFlags = os.O_CREATE | os.O_RDONLY

func settle(*os.File) {}
