package stdio

// A crew runs requests, each on a goroutine of its own. A goroutine that is done takes the next request if one comes
// while it is free: its stack has grown by then, which shows in BenchmarkStdioInFlight.
type crew struct {
	work chan func()
	quit chan struct{}
}

func newCrew() *crew { return &crew{work: make(chan func()), quit: make(chan struct{})} }

// do runs f at once. It never waits for a goroutine to become free.
func (c *crew) do(f func()) {
	select {
	case c.work <- f:
	default:
		go c.member(f)
	}
}

func (c *crew) member(f func()) {
	for {
		f()
		select {
		case f = <-c.work:
		case <-c.quit:
			return
		}
	}
}

// dismiss lets the goroutines end when they are done.
func (c *crew) dismiss() { close(c.quit) }
