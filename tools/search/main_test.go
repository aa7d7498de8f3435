package search

import (
	"testing"
	"time"

	"codehand/filestate/leaktest"
)

// hang is the time after which a condition that does not come true is a failure.
const hang = 60 * time.Second

func TestMain(m *testing.M) { leaktest.Main(m) }
