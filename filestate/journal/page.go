package journal

import "maps"

// A page is where a History ended, so that the next one need not read again what is newer.
type page struct {
	newest noteName         // when it began
	open   bool             // a change was being made, which may be done by now
	undone map[string]taken // what changes that are newer than its end took back
	ends   map[string]int64 // the changes of the page, and the times in the names of their notes
}

// resume returns what is known to be undone by changes that are newer than one, and the time in the name of its note;
// 0: that is not known, and all must be read.
func (j *Journal) resume(before string) (undone map[string]taken, from int64) {
	if before == "" {
		return make(map[string]taken), 0
	}
	var newest noteName
	for newest = range j.names() {
		break
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	from, known := j.page.ends[before]
	if !known || j.page.newest != newest {
		return make(map[string]taken), 0
	}
	return maps.Clone(j.page.undone), from
}
