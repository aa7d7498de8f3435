package metrics

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"time"
)

// goNumbers are what the Go runtime tells of itself, under the names that dashboards for Go programs know. Each is the
// sum of numbers of runtime/metrics, whose names its help repeats.
var goNumbers = []struct{ name, kind, help, of string }{
	{"go_gc_gogc_percent", gaugeKind, "Heap growth at which garbage is collected, GOGC", "/gc/gogc:percent"},
	{"go_gc_gomemlimit_bytes", gaugeKind, "Memory limit of the Go runtime, GOMEMLIMIT", "/gc/gomemlimit:bytes"},
	{"go_goroutines", gaugeKind, "Goroutines", "/sched/goroutines:goroutines"},
	{"go_memstats_alloc_bytes", gaugeKind, "Heap in use by objects", "/memory/classes/heap/objects:bytes"},
	{"go_memstats_alloc_bytes_total", counterKind, "All that was ever allocated", "/gc/heap/allocs:bytes"},
	{"go_memstats_buck_hash_sys_bytes", gaugeKind, "Memory for profiles", "/memory/classes/profiling/buckets:bytes"},
	{"go_memstats_frees_total", counterKind, "Objects freed", "/gc/heap/frees:objects + /gc/heap/tiny/allocs:objects"},
	{"go_memstats_gc_sys_bytes", gaugeKind, "Metadata for collecting garbage", "/memory/classes/metadata/other:bytes"},
	{"go_memstats_heap_alloc_bytes", gaugeKind, "Heap in use by objects", "/memory/classes/heap/objects:bytes"},
	{
		"go_memstats_heap_idle_bytes", gaugeKind, "Heap that waits to be used",
		"/memory/classes/heap/released:bytes + /memory/classes/heap/free:bytes",
	},
	{
		"go_memstats_heap_inuse_bytes", gaugeKind, "Heap in use, with what is lost between objects",
		"/memory/classes/heap/objects:bytes + /memory/classes/heap/unused:bytes",
	},
	{"go_memstats_heap_objects", gaugeKind, "Objects on the heap", "/gc/heap/objects:objects"},
	{"go_memstats_heap_released_bytes", gaugeKind, "Heap given back", "/memory/classes/heap/released:bytes"},
	{
		"go_memstats_heap_sys_bytes", gaugeKind, "Heap taken from the system",
		"/memory/classes/heap/objects:bytes + /memory/classes/heap/unused:bytes + " +
			"/memory/classes/heap/released:bytes + /memory/classes/heap/free:bytes",
	},
	{
		"go_memstats_mallocs_total", counterKind, "Objects allocated",
		"/gc/heap/allocs:objects + /gc/heap/tiny/allocs:objects",
	},
	{"go_memstats_mcache_inuse_bytes", gaugeKind, "mcache in use", "/memory/classes/metadata/mcache/inuse:bytes"},
	{
		"go_memstats_mcache_sys_bytes", gaugeKind, "mcache taken from the system",
		"/memory/classes/metadata/mcache/inuse:bytes + /memory/classes/metadata/mcache/free:bytes",
	},
	{"go_memstats_mspan_inuse_bytes", gaugeKind, "mspan in use", "/memory/classes/metadata/mspan/inuse:bytes"},
	{
		"go_memstats_mspan_sys_bytes", gaugeKind, "mspan taken from the system",
		"/memory/classes/metadata/mspan/inuse:bytes + /memory/classes/metadata/mspan/free:bytes",
	},
	{"go_memstats_next_gc_bytes", gaugeKind, "Heap at which garbage is collected next", "/gc/heap/goal:bytes"},
	{"go_memstats_other_sys_bytes", gaugeKind, "Other memory", "/memory/classes/other:bytes"},
	{"go_memstats_stack_inuse_bytes", gaugeKind, "Stacks in use", "/memory/classes/heap/stacks:bytes"},
	{
		"go_memstats_stack_sys_bytes", gaugeKind, "Stacks taken from the system",
		"/memory/classes/heap/stacks:bytes + /memory/classes/os-stacks:bytes",
	},
	{"go_memstats_sys_bytes", gaugeKind, "All memory taken from the system", "/memory/classes/total:bytes"},
	{"go_sched_gomaxprocs_threads", gaugeKind, "Threads that run Go at once, GOMAXPROCS", "/sched/gomaxprocs:threads"},
}

// goOnto adds what the Go runtime tells.
func goOnto(p *page) {
	var samples []metrics.Sample
	for _, n := range goNumbers {
		for of := range strings.SplitSeq(n.of, " + ") {
			samples = append(samples, metrics.Sample{Name: of})
		}
	}
	metrics.Read(samples)
	for _, n := range goNumbers {
		sum := 0.0
		for range strings.Count(n.of, " + ") + 1 {
			if v := samples[0].Value; v.Kind() == metrics.KindUint64 {
				sum += float64(v.Uint64())
			}
			samples = samples[1:]
		}
		p.single(n.name, n.help+": "+n.of+".", n.kind, sum)
	}
	p.family("go_info", "Version of Go.", gaugeKind, func() {
		p.sample("go_info", pairsOf([]string{"version"}, []string{runtime.Version()}), 1)
	})
	threads, _ := runtime.ThreadCreateProfile(nil)
	p.single("go_threads", "Threads that were made.", gaugeKind, float64(threads))
	pausesOnto(p)
}

// pausesOnto adds what collecting garbage cost.
func pausesOnto(p *page) {
	stats := debug.GCStats{PauseQuantiles: make([]time.Duration, 5)}
	debug.ReadGCStats(&stats)
	const name = "go_gc_duration_seconds"
	p.family(name, "Pauses for collecting garbage.", summaryKind, func() {
		for i, q := range []string{"0", "0.25", "0.5", "0.75", "1"} {
			p.sample(name, `quantile="`+q+`"`, stats.PauseQuantiles[i].Seconds())
		}
		p.sample(name+"_sum", "", stats.PauseTotal.Seconds())
		p.sample(name+"_count", "", float64(stats.NumGC))
	})
	last := 0.0
	if stats.NumGC > 0 {
		last = float64(stats.LastGC.UnixNano()) / 1e9
	}
	p.single("go_memstats_last_gc_time_seconds", "When garbage was last collected, since 1970.", gaugeKind, last)
}

// A process is what the system tells of this process, as far as it does: a number that is not known is not there.
type process map[string]float64

// processNumbers are the names that Prometheus asks of every program.
var processNumbers = []struct{ name, kind, help string }{
	{"process_cpu_seconds_total", counterKind, "Processor time of the program and of the system for it."},
	{"process_max_fds", gaugeKind, "Most open files."},
	{"process_network_receive_bytes_total", counterKind, "Bytes received in the network of the process."},
	{"process_network_transmit_bytes_total", counterKind, "Bytes sent in the network of the process."},
	{"process_open_fds", gaugeKind, "Open files."},
	{"process_resident_memory_bytes", gaugeKind, "Resident memory."},
	{"process_start_time_seconds", gaugeKind, "When the process began, since 1970."},
	{"process_virtual_memory_bytes", gaugeKind, "Virtual memory."},
	{"process_virtual_memory_max_bytes", gaugeKind, "Most virtual memory."},
}

// processOnto adds what the system tells.
func processOnto(p *page) {
	values := thisProcess()
	for _, n := range processNumbers {
		if v, ok := values[n.name]; ok {
			p.single(n.name, n.help, n.kind, v)
		}
	}
}
