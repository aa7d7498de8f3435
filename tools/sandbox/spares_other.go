//go:build !linux

package sandbox

// Spares keeps helpers that wait for a command. Here are none.
type Spares struct{}

// NewSpares returns a Spares.
func NewSpares() *Spares { return &Spares{} }

func (s *Spares) fill(Cmd) {}

// Close ends all helpers that wait.
func (s *Spares) Close() {}
