package workspace

import (
	"testing"

	"codehand/filestate/leaktest"
)

// Every Place that is not handed out has to be closed: the guard finds those that are open.
func TestMain(m *testing.M) { leaktest.Main(m) }
