//go:build !linux

package sandbox

// Programs returns nothing: these systems are not asked.
func (p *Process) Programs() (all []Program, known bool) { return nil, false }

// AsksSecretly is false: there are no terminals here.
func (p *Process) AsksSecretly() bool { return false }

// ResizeTerminal fails: there are no terminals here.
func (p *Process) ResizeTerminal(Window) error { return ErrTerminal }
