package journal

import (
	"cmp"
	"iter"
	"os"
	"slices"
	"strings"
	"time"
)

// names goes over the notes, newest first, each with the directory of its day, which is open for that step only. What
// is no note, or cannot be read, is passed over.
func (j *Journal) names() iter.Seq2[noteName, *os.Root] { return j.walk(new(unread)) }

// walk is names that tells which days cannot be read.
func (j *Journal) walk(left *unread) iter.Seq2[noteName, *os.Root] {
	return func(yield func(noteName, *os.Root) bool) {
		for day, dir := range j.days(left) {
			names, err := notesOf(day, dir)
			left.add(err)
			for _, n := range names {
				if !yield(n, dir) {
					return
				}
			}
		}
	}
}

// days goes over the directories of the days, newest first, each of which is open for that step only.
func (j *Journal) days(left *unread) iter.Seq2[string, *os.Root] {
	return func(yield func(string, *os.Root) bool) {
		days, err := sortedNames(j.root)
		left.add(err)
		for _, day := range slices.Backward(days) {
			if !j.openDay(day, left, yield) {
				return
			}
		}
	}
}

// openDay opens the directory of a day for yield. false: that wants no more.
func (j *Journal) openDay(day string, left *unread, yield func(string, *os.Root) bool) bool {
	if _, err := time.Parse(dayForm, day); err != nil {
		return true // not ours, and if it were a FIFO, to open it would wait
	}
	dir, err := j.root.OpenRoot(day + "/.")
	if err != nil {
		left.add(err)
		return true
	}
	defer func() { _ = dir.Close() }() // a directory handle holds no data
	return yield(day, dir)
}

// notesOf are the notes of a day, newest first, as many as could be read.
func notesOf(day string, dir *os.Root) ([]noteName, error) {
	d, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }() // nothing is written to it
	return listNotes(day, d)
}

// listNotes is notesOf for an open directory, which nothing was read from before.
func listNotes(day string, d *os.File) ([]noteName, error) {
	begin, err := time.Parse(dayForm, day)
	if err != nil {
		return nil, err
	}
	names, err := d.Readdirnames(-1)
	notes := make([]noteName, 0, len(names))
	for _, name := range names {
		n, ok := parseNoteName(name)
		if into := time.Unix(0, n.at).Sub(begin); ok && into >= 0 && into < 24*time.Hour { // or it is of another day
			notes = append(notes, n)
		}
	}
	slices.SortFunc(notes, func(a, b noteName) int {
		if a.at != b.at { // which cmp.Or would not wait for
			return cmp.Compare(b.at, a.at)
		}
		return cmp.Or(strings.Compare(b.id, a.id), strings.Compare(b.state, a.state))
	})
	// One that ended meanwhile may have been read under both names, and is found by either.
	return slices.CompactFunc(notes, func(a, b noteName) bool { return a.at == b.at && a.id == b.id }), err
}

// sortedNames are the names in a directory, as many as could be read.
func sortedNames(dir *os.Root) ([]string, error) {
	d, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }() // nothing is written to it
	names, err := d.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}
