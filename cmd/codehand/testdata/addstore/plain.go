package state

import "context"

// A plain Store is one more kind of Store, which TestAddStore adds: it keeps what it holds in memory, and narrows
// nothing.
type plain struct{ Store }

func openPlain(_ context.Context, o Options) (Store, error) {
	return plain{NewMemory(MemoryOptions{SessionLife: o.SessionLife, MaxBytes: o.MaxBytes})}, nil
}

// Stats tells how it is.
func (p plain) Stats() Stats { return p.Store.(Stater).Stats() }
