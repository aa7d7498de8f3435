package pattern

import "bytes"

const (
	// lanes is how many places of a buffer are scanned in turns: the loads of one wait for each other, those of
	// several do not.
	lanes = 4
	// minLanes is the shortest buffer that is worth more than one lane, in bytes.
	minLanes = 2 << 10
)

// A hit is a line with a match: its start, and its end without the LF.
type hit struct{ at, to int }

// A run is a part of a buffer that is scanned from its front to its end: whole lines.
type run struct {
	at, end int // what is left of it
	line    int // no line begins between it and at
	hits    []hit
}

// scan appends the matching lines of a buffer to hits. The buffer has whole lines, the last with its LF.
func (d *automaton) scan(buf []byte, hits []hit) []hit {
	if d.resting > 0 || d.always {
		return d.simulate(buf, hits)
	}
	var r [lanes]run
	n := cutLanes(buf, &r)
	clear(d.lane[:])
	if n == lanes {
		d.turns(buf, &r)
	}
	for i := range n {
		for r[i].at < r[i].end {
			d.alone(buf, &r, i)
		}
		hits = append(hits, r[i].hits...)
	}
	return hits
}

// cutLanes gives each lane its part. A short buffer has one.
func cutLanes(buf []byte, r *[lanes]run) int {
	r[0] = run{end: len(buf)}
	if len(buf) < minLanes {
		return 1
	}
	at := 0
	for i := range lanes {
		end := len(buf)
		if i < lanes-1 {
			want := max(at, len(buf)*(i+1)/lanes)
			end = want + bytes.IndexByte(buf[want:], '\n') + 1
			if end == want { // at the end already
				end = len(buf)
			}
		}
		r[i] = run{at: at, end: end, line: at}
		at = end
	}
	return lanes
}

// turns moves all lanes side by side until one is at its end.
func (d *automaton) turns(buf []byte, r *[lanes]run) {
	for {
		n := r[0].end - r[0].at
		for i := 1; i < lanes; i++ {
			n = min(n, r[i].end-r[i].at)
		}
		if n == 0 {
			return
		}
		b0 := buf[r[0].at:][:n]
		b1 := buf[r[1].at:][:n]
		b2 := buf[r[2].at:][:n]
		b3 := buf[r[3].at:][:n]
		s0, s1, s2, s3 := d.lane[0], d.lane[1], d.lane[2], d.lane[3]
		t := d.table
		i := 0
		for ; i < n; i++ {
			t0, t1 := t[s0+uint32(b0[i])], t[s1+uint32(b1[i])]
			t2, t3 := t[s2+uint32(b2[i])], t[s3+uint32(b3[i])]
			if (t0|t1|t2|t3)&special != 0 {
				break
			}
			s0, s1, s2, s3 = t0, t1, t2, t3
		}
		d.lane = [lanes]uint32{s0, s1, s2, s3}
		d.fed += lanes * i
		for l := range lanes {
			r[l].at += i
			if i < n {
				d.serve(buf, r, l)
			}
		}
	}
}

// alone moves one lane until it meets something special or its end.
func (d *automaton) alone(buf []byte, r *[lanes]run, l int) {
	s, t := d.lane[l], d.table
	b := buf[r[l].at:r[l].end]
	i := 0
	for ; i < len(b); i++ {
		to := t[s+uint32(b[i])]
		if to&special != 0 {
			break
		}
		s = to
	}
	d.lane[l] = s
	d.fed += i
	if r[l].at += i; i < len(b) {
		d.serve(buf, r, l)
	}
}

// serve moves one lane by one byte, whatever that takes. A line that matches is noted, and the lane goes on behind it.
func (d *automaton) serve(buf []byte, r *[lanes]run, l int) {
	run := &r[l]
	switch to := d.move(l, buf[run.at]); to {
	case matched:
		at := run.line
		if i := bytes.LastIndexByte(buf[run.line:run.at], '\n'); i >= 0 {
			at += i + 1
		}
		end := run.at + bytes.IndexByte(buf[run.at:run.end], '\n')
		run.hits = append(run.hits, hit{at, end})
		run.at, run.line = end+1, end+1
		d.lane[l] = 0
	default:
		d.lane[l] = to
		run.at++
	}
}

// move gives the entry of the state in a lane for a byte, and computes it if it is not known.
func (d *automaton) move(l int, b byte) uint32 {
	to := d.table[d.lane[l]+uint32(b)]
	if to == unknown {
		if d.size() > d.limit {
			d.renew()
		}
		to = d.fill(d.lane[l], b)
	}
	return to
}

// line says whether one line, without its LF, has a match.
func (d *automaton) line(text []byte) bool {
	if d.resting > 0 || d.always {
		d.resting -= len(text) + 1
		return d.simulateLine(text)
	}
	d.lane = [lanes]uint32{}
	for {
		s, t := d.lane[0], d.table
		i := 0
		for ; i < len(text); i++ {
			to := t[s+uint32(text[i])]
			if to&special != 0 {
				break
			}
			s = to
		}
		d.lane[0] = s
		d.fed += i
		b := byte('\n')
		if i < len(text) {
			b = text[i]
		}
		to := d.move(0, b)
		switch {
		case to == matched:
			return true
		case i >= len(text):
			return false
		}
		d.lane[0] = to
		text = text[i+1:]
	}
}
