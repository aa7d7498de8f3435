package filestate_test

import (
	"maps"
	"slices"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// This file is what the kernel asks the disk for.

func (d *lossyDisk) tell(id uint64, out *fuse.EntryOut) {
	out.NodeId, out.Generation, out.Attr = id, 1, d.nodes[id].attr
	out.Attr.Size = uint64(len(d.nodes[id].data))
}

func (d *lossyDisk) Lookup(_ <-chan struct{}, h *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	dir, status := d.look(h.NodeId)
	if status != fuse.OK {
		return status
	}
	id, ok := dir.entries[name]
	if !ok {
		return fuse.ENOENT
	}
	d.tell(id, out)
	return fuse.OK
}

func (d *lossyDisk) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, status := d.look(in.NodeId)
	if status == fuse.OK {
		out.Attr = n.attr
		out.Size = uint64(len(n.data))
	}
	return status
}

func (d *lossyDisk) SetAttr(_ <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, status := d.change(in.NodeId)
	if status != fuse.OK {
		return status
	}
	now := time.Now()
	if mode, ok := in.GetMode(); ok {
		n.attr.Mode = n.attr.Mode&syscall.S_IFMT | mode
	}
	if uid, ok := in.GetUID(); ok {
		n.attr.Uid = uid
	}
	if gid, ok := in.GetGID(); ok {
		n.attr.Gid = gid
	}
	if size, ok := in.GetSize(); ok {
		n.data = append(n.data, make([]byte, max(0, int(size)-len(n.data)))...)[:size]
		n.attr.SetTimes(nil, &now, nil)
	}
	if at, ok := in.GetMTime(); ok {
		n.attr.SetTimes(nil, &at, nil)
	}
	n.attr.SetTimes(nil, nil, &now)
	out.Attr = n.attr
	out.Size = uint64(len(n.data))
	return fuse.OK
}

// make adds a new file or directory to a directory.
func (d *lossyDisk) make(dirID uint64, name string, mode uint32, owner fuse.Owner, out *fuse.EntryOut) fuse.Status {
	dir, status := d.change(dirID)
	if status != fuse.OK {
		return status
	}
	if _, ok := dir.entries[name]; ok {
		return fuse.Status(syscall.EEXIST)
	}
	id, _ := d.add(mode, owner)
	dir.entry(func(names map[string]uint64) { names[name] = id })
	d.tell(id, out)
	return fuse.OK
}

func (d *lossyDisk) Mkdir(_ <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.make(in.NodeId, name, syscall.S_IFDIR|in.Mode&0o7777, in.Owner, out)
}

func (d *lossyDisk) Create(_ <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	out.OpenFlags = fuse.FOPEN_DIRECT_IO
	return d.make(in.NodeId, name, syscall.S_IFREG|in.Mode&0o7777, in.Owner, &out.EntryOut)
}

func (d *lossyDisk) Open(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	out.OpenFlags = fuse.FOPEN_DIRECT_IO
	_, status := d.look(in.NodeId)
	return status
}

func (d *lossyDisk) OpenDir(_ <-chan struct{}, in *fuse.OpenIn, _ *fuse.OpenOut) fuse.Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, status := d.look(in.NodeId)
	return status
}

func (d *lossyDisk) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	dir, status := d.look(in.NodeId)
	if status != fuse.OK {
		return status
	}
	names := slices.Sorted(maps.Keys(dir.entries))
	for i, name := range names {
		id := dir.entries[name]
		if uint64(i) >= in.Offset && !out.AddDirEntry(fuse.DirEntry{Name: name, Ino: id, Mode: d.nodes[id].attr.Mode, Off: uint64(i) + 1}) {
			break
		}
	}
	return fuse.OK
}

func (d *lossyDisk) Read(_ <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, status := d.look(in.NodeId)
	if status != fuse.OK || in.Offset >= uint64(len(n.data)) {
		return fuse.ReadResultData(nil), status
	}
	return fuse.ReadResultData(buf[:copy(buf, n.data[in.Offset:])]), fuse.OK
}

func (d *lossyDisk) Write(_ <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, status := d.change(in.NodeId)
	if status != fuse.OK {
		return 0, status
	}
	end := int(in.Offset) + len(data)
	n.data = append(n.data, make([]byte, max(0, end-len(n.data)))...)
	copy(n.data[in.Offset:], data)
	now := time.Now()
	n.attr.SetTimes(nil, &now, &now)
	return uint32(len(data)), fuse.OK
}

func (d *lossyDisk) Fsync(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, status := d.change(in.NodeId)
	if status == fuse.OK {
		n.kept, n.safe = slices.Clone(n.data), n.attr
	}
	return status
}

func (d *lossyDisk) FsyncDir(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, status := d.change(in.NodeId)
	if status == fuse.OK {
		n.names, n.waiting, n.safe = maps.Clone(n.entries), nil, n.attr
	}
	return status
}

func (d *lossyDisk) Unlink(_ <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	dir, status := d.change(h.NodeId)
	if status != fuse.OK {
		return status
	}
	id, ok := dir.entries[name]
	if !ok {
		return fuse.ENOENT
	}
	d.nodes[id].attr.Nlink = 0
	dir.entry(func(names map[string]uint64) { delete(names, name) })
	return fuse.OK
}

func (d *lossyDisk) Rmdir(cancel <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	d.mu.Lock()
	dir := d.nodes[h.NodeId]
	full := dir != nil && d.nodes[dir.entries[name]] != nil && len(d.nodes[dir.entries[name]].entries) > 0
	d.mu.Unlock()
	if full {
		return fuse.Status(syscall.ENOTEMPTY)
	}
	return d.Unlink(cancel, h, name)
}

// The flags of renameat2.
const (
	renameNoReplace = 1
	renameExchange  = 2
)

func (d *lossyDisk) Rename(_ <-chan struct{}, in *fuse.RenameIn, from, to string) fuse.Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	dir, status := d.change(in.NodeId)
	if status != fuse.OK {
		return status
	}
	next := d.nodes[in.Newdir]
	moved, ok := dir.entries[from]
	other, there := next.entries[to]
	switch {
	case !ok, in.Flags&renameExchange != 0 && !there:
		return fuse.ENOENT
	case in.Flags&renameNoReplace != 0 && there:
		return fuse.Status(syscall.EEXIST)
	case in.Flags&renameExchange != 0 && dir != next:
		return fuse.EINVAL // no test asks for it
	case in.Flags&renameExchange != 0:
		dir.entry(func(names map[string]uint64) { names[from], names[to] = other, moved })
	case dir != next: // two entries, of which one may be synced before the other
		next.entry(func(names map[string]uint64) { names[to] = moved })
		dir.entry(func(names map[string]uint64) { delete(names, from) })
	default:
		dir.entry(func(names map[string]uint64) { delete(names, from); names[to] = moved })
	}
	return fuse.OK
}

func (d *lossyDisk) StatFs(_ <-chan struct{}, _ *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	out.Bsize, out.Frsize, out.NameLen = 4096, 4096, 255
	out.Blocks, out.Bfree, out.Bavail, out.Files, out.Ffree = 1<<20, 1<<20, 1<<20, 1<<20, 1<<20
	return fuse.OK
}

func (d *lossyDisk) GetXAttr(<-chan struct{}, *fuse.InHeader, string, []byte) (uint32, fuse.Status) {
	return 0, fuse.Status(syscall.ENODATA)
}

func (d *lossyDisk) ListXAttr(<-chan struct{}, *fuse.InHeader, []byte) (uint32, fuse.Status) {
	return 0, fuse.OK
}
