package metrics

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"codehand/server/pipeline"
	"codehand/tools/tool"
)

const (
	// maxToolLabels is how many tools have a label of their own. A mounted server may bring thousands.
	maxToolLabels = 200
	// otherLabel stands for what is known and has no label of its own, unknownLabel for what a client made up.
	otherLabel   = "other"
	unknownLabel = "unknown"
)

func known(list []string, value, otherwise string) string {
	if slices.Contains(list, value) {
		return value
	}
	return otherwise
}

// knownFailure lets through tool_error and the codes that JSON-RPC and MCP reserve.
func knownFailure(f string) string {
	if f == "" || f == "tool_error" {
		return f
	}
	if code, err := strconv.Atoi(f); err == nil && code >= -32768 && code <= -32000 && f[0] == '-' {
		return f
	}
	return otherLabel
}

// network is a transport in the words of OpenTelemetry.
func network(transport string) string {
	switch transport {
	case "stdio":
		return "pipe"
	case "unix":
		return "unix"
	}
	return "tcp"
}

// Codes of a pipeline.Record that are none of a refusal.
const (
	fine    = "ok"
	pending = "PENDING"
)

// callOutcome is what became of a finished call. Its last word is its code: a client that left after the work was done
// does not undo it.
func callOutcome(r pipeline.Record) string {
	switch tool.Code(r.Code) {
	case fine:
		return "ok"
	case tool.Interrupted:
		return "cancelled"
	case tool.PermissionDenied, tool.AskUnavailable, tool.UserDeclined, tool.PlanMode, tool.HookBlocked,
		tool.OutsideRoots, tool.Paused,
		tool.PathRefused, tool.ToolDisabled, tool.ScopeMissing:
		return "denied"
	case tool.RateLimited:
		return "limited"
	case tool.StateUnavailable, tool.SandboxUnavailable, tool.AuditUnavailable:
		return "unavailable"
	}
	if r.Cancelled {
		return "cancelled"
	}
	return "tool_error"
}

// children finds the child of a vector without a lock and without an allocation (BenchmarkMetrics), where the
// vector writes every label and takes a lock. Its keys come from closed lists, so it stays small. It is safe for
// concurrent use.
type children[K comparable, V any] struct {
	born func(K) V
	mu   sync.Mutex // of who adds
	all  atomic.Pointer[map[K]V]
}

func newChildren[K comparable, V any](born func(K) V) *children[K, V] {
	c := &children[K, V]{born: born}
	c.all.Store(&map[K]V{})
	return c
}

func (c *children[K, V]) at(k K) V {
	if v, ok := (*c.all.Load())[k]; ok {
		return v
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	all := maps.Clone(*c.all.Load())
	v, ok := all[k]
	if !ok {
		v = c.born(k)
		all[k] = v
		c.all.Store(&all)
	}
	return v
}

// toolLabels gives each name and alias its label: the first tools by name have their own, the rest share one.
func toolLabels(tools []tool.Tool) map[string]string {
	tools = slices.SortedFunc(slices.Values(tools),
		func(a, b tool.Tool) int { return strings.Compare(a.Spec.Name, b.Spec.Name) })
	labels := map[string]string{}
	for i, t := range tools {
		label := t.Spec.Name
		if i >= maxToolLabels {
			label = otherLabel
		}
		for _, name := range append([]string{t.Spec.Name}, t.Spec.Aliases...) {
			labels[name] = label
		}
	}
	return labels
}

func (m *Counts) tool(name string) string {
	if label, ok := m.tools[name]; ok {
		return label
	}
	return unknownLabel
}
