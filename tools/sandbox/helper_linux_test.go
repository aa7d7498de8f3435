package sandbox

import (
	"errors"
	"strings"
	"syscall"
	"testing"
)

// On a machine that cannot start codehand from itself, as below an emulator, a command was refused as a fault of ours,
// without a word of what is missing. What a busy machine lacks is still told as that.
func TestHelperThatDoesNotStart(t *testing.T) {
	t.Parallel()
	for level, step := range map[Level]string{
		LevelNone: "start the program", LevelLimits: "start the program", LevelKernel: "namespaces", LevelFull: "namespaces",
	} {
		err := notStarted(level, syscall.ENOEXEC)
		if !errors.Is(err, ErrConfine) || !errors.Is(err, syscall.ENOEXEC) || !strings.Contains(err.Error(), step) {
			t.Errorf("level %d: %v", level, err)
		}
	}
}
