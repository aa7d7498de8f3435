//go:build unix && !linux

package sandbox

import (
	"context"
	"fmt"
	"net"
	"os"
)

// A helper is nothing of its own here: the command is started directly, and a server that is killed leaves it running.
type helper struct {
	process   *os.Process
	listening net.Listener // nil: there is never one
	terminal  *os.File     // likewise
}

// launch starts the command. attr has its streams and its environment, dir is where it begins.
func launch(_ context.Context, c Cmd, attr *os.ProcAttr, dir *os.File, _ mark) (*helper, error) {
	if c.Terminal != nil {
		return nil, fmt.Errorf("%w: only codehand on Linux has them", ErrTerminal)
	}
	if c.level() > LevelLimits {
		var err error
		if c, err = confined(c); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrConfine, err)
		}
	}
	if dir != nil {
		attr.Dir = enter(dir)
	}
	child, err := os.StartProcess(c.Path, c.argv(), attr)
	if err != nil {
		return nil, err
	}
	return &helper{process: child}, nil
}

// exited leaves it to wait to tell how the command ended.
func (h *helper) exited() (exit Exit, alone, told bool) { return Exit{}, false, false }

func (h *helper) wait() (exit Exit, clean bool) {
	state, err := h.process.Wait()
	return exitOf(state, err), false
}

func (h *helper) cut() {} // End looks for what is left

func (h *helper) kill() { _ = h.process.Kill() }
