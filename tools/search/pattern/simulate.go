package pattern

import "bytes"

// simulate is scan without a table, for patterns that need a new state at almost every byte.
func (d *automaton) simulate(buf []byte, hits []hit) []hit {
	d.resting -= len(buf)
	for at := 0; at < len(buf) && !d.stopped; {
		to := at + bytes.IndexByte(buf[at:], '\n')
		if d.simulateLine(buf[at:to]) {
			hits = append(hits, hit{at, to})
		}
		at = to + 1
	}
	return hits
}

// simulateLine says whether a line, without its LF, has a match.
func (d *automaton) simulateLine(text []byte) bool {
	if d.always {
		return true
	}
	start := d.states[0]
	list := append([]uint32(nil), d.arena[start.at:start.at+start.n]...)
	b := start.before
	for at := 0; !d.stopped; {
		class := d.alphabet.ascii['\n']
		n := 1
		if at < len(text) {
			var r rune
			r, n = runeAt(text, at)
			class = d.alphabet.of(r)
		}
		switch d.advance(list, b, class) {
		case found:
			return true
		case ended:
			return false
		}
		list = list[:0]
		for _, pc := range d.next.list {
			switch {
			case d.code.insts[pc].op == opMatch:
				return true
			case d.waits(pc):
				list = append(list, pc)
			}
		}
		b = d.behind(class)
		at += n
	}
	return false
}
