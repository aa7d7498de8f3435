//go:build !unix

package filestate

import "os"

// readFlags open a file for reading.
const readFlags = os.O_RDONLY

// writeFlags open a file for writing into it.
const writeFlags = os.O_RDWR

func settle(*os.File) {}
