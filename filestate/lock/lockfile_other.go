//go:build !unix

package lock

import "os"

// lockFlags open or make a lock file.
const lockFlags = os.O_CREATE | os.O_RDONLY
