package team

import (
	"context"
	"errors"

	"codehand/server/endpoint"
	"codehand/server/relay"
	"codehand/server/state"
)

// endpoint makes the endpoint and, where several nodes share the Store, what takes requests from one to the other.
// leave ends that.
func (t *Team) endpoint(ctx context.Context, o endpoint.Options) (_ *endpoint.Endpoint, leave func(), err error) {
	nodes := t.o.Nodes
	if nodes == nil {
		return endpoint.New(o), func() {}, nil
	}
	store := t.o.Config.Store
	conn, err := state.Connect(ctx, store.URL, store.NATS)
	if err != nil {
		return nil, nil, err
	}
	wire := relay.NATS(conn)
	caller, err := relay.NewCaller(wire, store.NATS.Prefix)
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	o.Cluster = &endpoint.Cluster{Nodes: nodes, Caller: caller}
	e := endpoint.New(o)
	host, err := relay.NewHost(relay.HostOptions{
		Wire: wire, Prefix: store.NATS.Prefix, Node: nodes.Name(), Here: nodes.Here, Serve: e.ServeFrom,
		Sight: func() relay.Sight { return relay.Sight{Version: t.o.Version, Volume: nodes.Mark()} }, Log: t.o.Log,
	})
	if err != nil {
		caller.Close()
		conn.Close()
		return nil, nil, err
	}
	nodes.OnTaken(o.ForgetAll)
	nodes.OnDrain(e.Busy)
	nodes.OnMoved(func(principal string) {
		t.o.Log.Warn("a principal is served here no more: its sessions and commands are ended", "principal", principal)
		e.Dismiss(principal)
	})
	stop := context.AfterFunc(ctx, nodes.Leave)
	return e, func() {
		stop()
		nodes.OnMoved(func(string) {})
		host.Close()
		caller.Close()
		conn.Close()
	}, nil
}

// checkNode lets /readyz tell balancers of a drain.
func (t *Team) checkNode() {
	if t.o.Nodes == nil {
		return
	}
	t.health.AddCheck("node", true, func(context.Context) (string, error) {
		if t.o.Nodes.Draining() {
			return "", errors.New("an operator drains it")
		}
		return t.o.Nodes.Name(), nil
	})
}
