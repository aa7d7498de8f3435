//go:build !unix

package session

import "os"

// listFlags open a directory. There are no FIFOs where this is built.
const listFlags = os.O_RDONLY
