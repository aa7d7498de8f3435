package auth

import (
	"os"
	"testing"
	"time"

	"codehand/filestate/leaktest"
)

// hang is the time after which what does not come true is a failure.
const hang = 60 * time.Second

// TestMain also is the entrance of the processes that TestWritersTakeTurns starts.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == writerMark {
		os.Exit(writeSome(os.Args[2]))
	}
	leaktest.Main(m)
}
