//go:build !unix

package filestate

import "os"

// writeFlags open a file for writing into it.
const writeFlags = os.O_RDWR
