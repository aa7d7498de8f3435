package stdio

// workers run requests, each on a goroutine of its own. A goroutine that is done takes the next request if one comes
// while it is free: its stack has grown by then, which shows in BenchmarkStdioInFlight.
type workers struct {
	work chan func()
	quit chan struct{}
}

func newWorkers() *workers { return &workers{work: make(chan func()), quit: make(chan struct{})} }

// do runs f at once. It never waits for a goroutine to become free.
func (w *workers) do(f func()) {
	select {
	case w.work <- f:
	default:
		go w.loop(f)
	}
}

func (w *workers) loop(f func()) {
	for {
		f()
		select {
		case f = <-w.work:
		case <-w.quit:
			return
		}
	}
}

// stop lets the goroutines end when they are done.
func (w *workers) stop() { close(w.quit) }
