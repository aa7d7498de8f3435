package server

import (
	"testing"

	"codehand/filestate/leaktest"
	"codehand/tools/sandbox"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// limitsOnly is what most tests take this machine for, so that they are the same on each: what the kernel does is
// tested in tools/sandbox, and with the built program in server/blackbox.
func limitsOnly() sandbox.Report { return sandbox.Report{Level: sandbox.LevelLimits} }
