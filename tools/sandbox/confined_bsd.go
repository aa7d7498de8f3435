//go:build unix && !linux && !darwin

package sandbox

import "errors"

// confined refuses: this system has no means to confine a command.
func confined(Cmd) (Cmd, error) { return Cmd{}, errors.New("this system has no means for it") }
