package state

import "context"

// A narrow Store is one more kind of Store, which TestAddStore adds: it keeps what it holds in memory, and changes
// nothing.
type narrow struct{ Store }

func openPlain(_ context.Context, o Options) (Store, error) {
	return narrow{NewMemory(MemoryOptions{SessionLife: o.SessionLife, MaxBytes: o.MaxBytes})}, nil
}

// Stats tells how it is.
func (n narrow) Stats() Stats { return n.Store.(Stater).Stats() }
