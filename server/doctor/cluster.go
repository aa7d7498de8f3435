package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"codehand/server/config"
	"codehand/server/nodes"
	"codehand/server/relay"
	"codehand/server/state"
	"codehand/tools/results"
)

// A Cluster is several machines that share a store.
type Cluster struct {
	Config config.Config // of serve on one of them
}

const (
	// clusterLimit bounds all that is asked of a cluster.
	clusterLimit = 20 * time.Second

	// storeTime is how long the servers of NATS may take: each stream is looked at.
	storeTime = 6 * time.Second

	// lookTime is how long a node may take to answer.
	lookTime = 3 * time.Second

	// skewWarn is how much clocks may differ before log and audit of several machines can no longer be read together,
	// and skewFail before what expires (tokens, sign-ins) is good on one machine and not on the other.
	skewWarn = 2 * time.Second
	skewFail = 30 * time.Second

	// maxNamed is how many principals a finding names.
	maxNamed = 5
)

// Checks are those of the machines together. They change nothing, but for streams that are missing in NATS.
func (c Cluster) Checks() []Check {
	return []Check{{ID: "cluster", Limit: clusterLimit, Run: c.run}}
}

// A clusterView is what the store and the nodes say.
type clusterView struct {
	url     string
	self    string      // name of the node of this configuration
	volume  string      // cluster.shared_dir; "": none
	mounted error       // why it is not the shared directory here
	mark    string      // of the shared directory, as the store knows it
	stats   state.Stats // of the store
	live    []nodes.Node
	places  []nodes.Owner
	sights  map[string]sight // by node
	paused  []Finding
}

// A sight is how a node answered.
type sight struct {
	relay.Sight
	took time.Duration
	skew time.Duration // of its clock beyond ours, at least; the time on the way is in its favour
	err  error
}

func (c Cluster) run(ctx context.Context) []Finding {
	cfg := c.Config
	if cfg.Cluster.Node == "" {
		return []Finding{{"config", Fail, "cluster.node is not set: no machines share a store here",
			"give the configuration of serve with --config"}}
	}
	v, err := look(ctx, cfg)
	if held, ok := errors.AsType[*state.HeldError](err); ok {
		return []Finding{{"store", Fail, held.Error(), "stop that server, or give it a cluster.node"}}
	}
	if err != nil {
		return []Finding{{"store", Fail, err.Error(), "start the servers of NATS, or fix what the line says; see " +
			"docs/team-nats.md"}}
	}
	return v.findings()
}

// look asks the store and the nodes.
func look(ctx context.Context, cfg config.Config) (v clusterView, err error) {
	v = clusterView{url: cfg.Store.URL, self: cfg.Cluster.Node, volume: cfg.Cluster.Volume(),
		sights: map[string]sight{}}
	o := cfg.StoreOptions()
	o.Impatient, o.Timeout = true, storeTime
	s, err := state.Open(ctx, cfg.Store.URL, o)
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if stats, ok := s.(state.Stater); ok {
		v.stats = stats.Stats()
	}
	if v.live, err = nodes.Live(ctx, s); err != nil {
		return v, err
	}
	if v.places, err = nodes.Owners(ctx, s); err != nil {
		return v, err
	}
	if v.mark, err = nodes.KnownMark(ctx, s); err != nil {
		return v, err
	}
	if v.paused, err = pausedIn(ctx, "pause", s); err != nil {
		return v, err
	}
	if v.volume != "" {
		v.mounted = nodes.SameMark(v.volume, v.mark)
	}
	conn, err := state.Connect(ctx, cfg.Store.URL, cfg.Store.NATS)
	if err != nil {
		return v, err
	}
	defer conn.Close()
	wire := relay.NATS(conn)
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	var mu sync.Mutex
	var asking sync.WaitGroup
	for _, n := range v.live {
		asking.Go(func() {
			began := time.Now()
			x, took, err := relay.Look(ctx, wire, cfg.Store.NATS.Prefix, n.Name)
			mu.Lock()
			defer mu.Unlock()
			v.sights[n.Name] = sight{Sight: x, took: took, skew: skew(began, began.Add(took), x.Time), err: err}
		})
	}
	asking.Wait()
	return v, nil
}

// skew is how much a clock differs at least that said at between two times of ours.
func skew(from, to, at time.Time) time.Duration {
	switch {
	case at.Before(from):
		return at.Sub(from)
	case at.After(to):
		return at.Sub(to)
	}
	return 0
}

func (v clusterView) findings() []Finding {
	return slices.Concat([]Finding{v.store()}, v.nodes(), v.versions(), v.clocks(), v.shared(), v.served(),
		v.paused)
}

func (v clusterView) store() Finding {
	f := Finding{"store", OK, fmt.Sprintf("%s: nats-server %s, %s of what is stored, streams are as they must be. "+
		"Whether the servers sync what they write (sync_interval: always) no client can see", v.url, v.stats.Server,
		counted(v.stats.Copies, "copy", "copies")), ""}
	if v.stats.Copies < 3 {
		f.Level, f.Fix = Note, "three servers of NATS lose nothing when one of them dies: docs/team-nats.md"
	}
	return f
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// nodes says of each node that lives how it is.
func (v clusterView) nodes() (out []Finding) {
	if len(v.live) == 0 {
		return []Finding{{"nodes", Fail, "no node lives",
			"start codehand serve with this configuration on each machine, and look into its log"}}
	}
	room, here := false, false
	serves := map[string]int{} // the records are up to two seconds old
	for _, p := range v.places {
		serves[p.Node]++
	}
	for _, n := range v.live {
		here = here || n.Name == v.self
		room = room || !n.Draining && serves[n.Name] < n.Capacity
		f := Finding{"nodes", OK, fmt.Sprintf("%s on %s (process %d): version %s, %d of %d principals", n.Name,
			results.Line(n.Host, 40), n.PID, n.Version, serves[n.Name], n.Capacity), ""}
		s := v.sights[n.Name]
		switch {
		case s.err != nil:
			f.Level = Fail
			f.Text += ". Its record lives, but it does not answer: " + s.err.Error()
			f.Fix = "look into its log; it must reach NATS with the same store.nats.prefix, and its account must be " +
				"allowed to use all subjects of that prefix"
		case n.Shared != (v.volume != ""):
			f.Level = Fail
			f.Text += ". Its cluster.workspaces is another one than that of this configuration"
			f.Fix = "give all machines local, or all shared"
		default:
			f.Text += fmt.Sprintf(", renewed %s ago, answers in %s",
				max(0, s.Time.Sub(n.Renewed)).Round(100*time.Millisecond), s.took.Round(10*time.Microsecond))
			if n.Draining {
				f.Level = Note
				f.Text += "; it drains"
				f.Fix = "to let it take people again: codehand cluster drain " + n.Name + " --end"
			}
		}
		out = append(out, f)
	}
	if !room {
		out = append(out, Finding{"nodes", Warn, "no node takes one more principal: each is full or drains",
			"start one more node, or raise cluster.capacity"})
	}
	if !here {
		out = append(out, Finding{"nodes", Note, fmt.Sprintf("%s, the node of this configuration, does not live",
			v.self), "start codehand serve with it, if it should"})
	}
	return out
}

// versions says whether all nodes have the same program.
func (v clusterView) versions() []Finding {
	of := map[string][]string{}
	for _, n := range v.live {
		of[n.Version] = append(of[n.Version], n.Name)
	}
	if len(of) < 2 {
		return nil
	}
	var all []string
	for _, version := range slices.Sorted(maps.Keys(of)) {
		all = append(all, version+" ("+strings.Join(of[version], ", ")+")")
	}
	return []Finding{{"versions", Warn, "the nodes have different versions: " + strings.Join(all, ", "),
		"go on with the upgrade, node by node, until all have the same one"}}
}

// clocks compares those of the nodes with that of this machine.
func (v clusterView) clocks() (out []Finding) {
	asked := 0
	for _, n := range v.live {
		s := v.sights[n.Name]
		if s.err != nil {
			continue
		}
		asked++
		if off := s.skew.Abs(); off >= skewWarn {
			how := "behind"
			if s.skew > 0 {
				how = "ahead of"
			}
			f := Finding{"clocks", Warn, fmt.Sprintf("the clock of %s is %s %s that of this machine", n.Name,
				off.Round(time.Second), how), "let NTP set the clocks of all machines, this one too"}
			if off >= skewFail {
				f.Level = Fail
			}
			out = append(out, f)
		}
	}
	if len(out) == 0 && asked > 0 {
		out = append(out, Finding{"clocks", OK, fmt.Sprintf("that of each node is within %s of that of this machine",
			skewWarn), ""})
	}
	return out
}

// shared says whether all nodes see the same directory on the volume.
func (v clusterView) shared() (out []Finding) {
	if v.volume == "" {
		return nil
	}
	const fix = "mount the volume there, at the same place as on the others, and start codehand serve again"
	if v.mounted != nil {
		out = append(out, Finding{"volume", Fail, "on this machine " + v.mounted.Error(), fix})
	}
	for _, n := range v.live {
		if s := v.sights[n.Name]; s.err == nil && (s.Volume == "" || s.Volume != v.mark) {
			out = append(out, Finding{"volume", Fail, fmt.Sprintf("%s does not see the directory that the others share",
				n.Name), fix})
		}
	}
	if len(out) == 0 {
		out = append(out, Finding{"volume", OK, v.volume + " is the same directory on this machine and all nodes", ""})
	}
	return out
}

// served says who is served by a node that does not live.
func (v clusterView) served() (out []Finding) {
	lost := map[string][]string{}
	for _, p := range v.places {
		if !slices.ContainsFunc(v.live, func(n nodes.Node) bool { return n.Name == p.Node }) {
			lost[p.Node] = append(lost[p.Node], results.Line(p.Who, 40))
		}
	}
	for _, node := range slices.Sorted(maps.Keys(lost)) {
		who := lost[node]
		text := strings.Join(who[:min(len(who), maxNamed)], ", ")
		if more := len(who) - maxNamed; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		f := Finding{"places", Warn, fmt.Sprintf("%s does not live, and has the workspaces of %s: their calls are "+
			"refused", node, text), "start it again; if it is lost for good: codehand cluster forget PRINCIPAL"}
		if v.volume != "" {
			f = Finding{"places", Note, fmt.Sprintf("%s does not live; another node serves %s from the next call on",
				node, text), "nothing needs to be done"}
		}
		out = append(out, f)
	}
	if len(out) == 0 {
		out = append(out, Finding{"places", OK, counted(len(v.places), "principal", "principals") +
			" served, each by a node that lives", ""})
	}
	return out
}
