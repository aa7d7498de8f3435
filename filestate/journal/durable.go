package journal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"codehand/filestate/disk"
)

// journalDepth is how many directories above a journal may be as new as it: those of the principals and of the state,
// and where a user's programs keep such things.
const journalDepth = 5

// syncNew writes the name of an empty directory, and those of the directories above it, to the disk. Without it a power
// loss takes the first notes with the directory, although they were synced. A journal that holds something was new
// before.
//
// What cannot be opened or synced is passed over: it is not ours, and older than this start.
func syncNew(root *os.Root, dir string) {
	if d, err := root.Open("."); err == nil {
		names, _ := d.Readdirnames(1)
		_ = d.Close() // only read
		if len(names) > 0 {
			return
		}
	}
	for range journalDepth {
		dir = filepath.Dir(dir)
		above, err := os.OpenRoot(dir)
		if err != nil {
			return
		}
		_ = disk.SyncDir(above) // see above
		_ = above.Close()       // a directory handle holds no data
	}
}

// makeDay makes the directory of a day and syncs its name to the disk, even if the directory exists: the process that
// made it may have died before its sync, or may not have reached it yet.
func (j *Journal) makeDay(day string) error {
	err := j.root.Mkdir(day, 0o700)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	j.mu.Lock()
	known := err != nil && j.day == day
	j.mu.Unlock()
	if known || j.o.Fast {
		return nil
	}
	if err := disk.SyncDir(j.root); err != nil && !disk.Unsynced(err) {
		return err
	}
	j.mu.Lock()
	j.day = day
	j.mu.Unlock()
	return nil
}
