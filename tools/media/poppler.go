package media

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"codehand/tools/sandbox"
)

// What a program for PDF files may use, each time it runs. Poppler of Debian 12 needs 110 MB of addresses for a page.
const (
	programMemory = 1 << 30          // bytes of address space
	programCPU    = 20 * time.Second // the wall clock ends it before, unless it has threads
)

// popplerDirs are where systems put the programs. The PATH is not asked: who sets it may be a workspace.
func popplerDirs() []string {
	switch runtime.GOOS {
	case "darwin": // Homebrew, MacPorts
		return []string{"/opt/homebrew/bin", "/usr/local/bin", "/opt/local/bin"}
	case "windows": // there is no such place
		return []string{}
	}
	return []string{"/usr/bin", "/bin", "/usr/local/bin"}
}

// program finds a program of poppler each time anew, so that one that was installed meanwhile is found. It counts only
// if root or this user alone could have put it there: the file and its directory, links resolved.
func (r *Reader) program(name string) (string, error) {
	for _, dir := range r.options.Dirs {
		path, err := filepath.EvalSymlinks(filepath.Join(dir, name))
		if err == nil && filepath.IsAbs(path) && trusted(path) && trusted(filepath.Dir(path)) {
			return path, nil
		}
	}
	missing := &ProgramError{Program: name, Package: "poppler-utils"}
	if runtime.GOOS == "darwin" {
		missing.Package = "poppler"
	}
	return "", missing
}

// input is how a program finds the copy: by a name of its own, since some of them read no PDF from a pipe. It is the
// first argument that is no option, and never a name from a user.
const input = "/dev/stdin"

// run runs a program of poppler on the copy and returns what it printed, at most most bytes. The program gets no
// variable of the server's, no other open file and a session of its own, and run ends it with all that it started. From
// LevelKernel on it reads the system's directories and its workdir, writes nothing and has no network; below that it
// may do what the server's user may. Errors: *ProgramError, ErrEncrypted, ErrDamaged with what the program said, a
// *LimitError, the cause for which ctx ended, or an error that says that some of the output could not be read.
func (r *Reader) run(ctx context.Context, d *workdir, most int64, name string, args ...string) ([]byte, error) {
	path, err := r.program(name)
	if err != nil {
		return nil, err
	}
	if _, err := d.file.Seek(0, io.SeekStart); err != nil { // shared with the program where /dev/stdin is a duplicate
		return nil, err
	}
	out, said := newPipe(most), newPipe(4<<10)
	defer out.close()
	defer said.close()
	if err := errors.Join(out.open(), said.open()); err != nil {
		return nil, err
	}
	profile, level := r.confined(d)
	p, err := sandbox.Start(ctx, sandbox.Cmd{
		Profile: profile, Level: level,
		Path: path, Args: args, Dir: d.root, Stdin: d.file, Stdout: out.write, Stderr: said.write,
		Env:    []string{"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", "HOME=" + d.path, "TMPDIR=" + d.path},
		Limits: sandbox.Limits{Memory: programMemory, CPU: programCPU, File: most},
	})
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	out.begin()
	said.begin()
	select {
	case <-p.Done():
	case <-out.full:
	case <-ctx.Done():
	}
	p.End(0)
	text, long, lost := out.all()
	words, _, unheard := said.all()
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case long:
		return nil, &LimitError{What: "bytes of output", Most: most}
	case lost != nil || unheard != nil:
		return nil, fmt.Errorf("read what %s printed: %w", path, cmp.Or(lost, unheard))
	case p.Exit().Code != 0:
		return nil, refused(name, p.Exit(), words)
	}
	return text, nil
}

// confined is how the kernel confines a program that works on d, whose bytes a stranger wrote; nil: not at all.
func (r *Reader) confined(d *workdir) (*sandbox.Profile, sandbox.Level) {
	if r.options.Level == nil {
		return nil, sandbox.LevelLimits
	}
	level := r.options.Level()
	if level < sandbox.LevelKernel {
		return nil, level
	}
	return &sandbox.Profile{Readable: []string{d.path}}, level
}

// refused tells by what a program said why it did not do its work.
func refused(name string, exit sandbox.Exit, words []byte) error {
	const forbidden = 3 // poppler, pdftotext.1, exit codes: the document's permissions
	if exit.Code == forbidden || bytes.Contains(words, []byte("Incorrect password")) {
		return ErrEncrypted
	}
	if exit.Signal != "" {
		return fmt.Errorf("%w: %s ended by %s", ErrDamaged, name, exit.Signal)
	}
	line, _, _ := strings.Cut(strings.ToValidUTF8(string(words), "?"), "\n")
	return fmt.Errorf("%w: %s: %s", ErrDamaged, name, strings.TrimSpace(line))
}
