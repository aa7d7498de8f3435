//go:build !linux

package sandbox

// Programs returns nothing: these systems are not asked.
func (p *Process) Programs() (lines [][]string, known bool) { return nil, false }
