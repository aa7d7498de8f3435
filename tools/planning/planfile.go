package planning

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"codehand/filestate"
	"codehand/filestate/disk"
	"codehand/tools/editing"
	"codehand/tools/results"
	"codehand/tools/session"
	"codehand/tools/tool"
	"codehand/tools/wording"
	"codehand/tools/workspace"
)

const (
	// planTries is how many names a new plan file tries.
	planTries = 10
	// maxPlan is how many bytes a plan may have: what one parameter may hold.
	maxPlan = 4 << 20
)

// A File is a session's plan as it is on the disk.
type File struct {
	Path string
	Text string
	Sum  string // of the text; "": there is no file
}

// Blank says that there is nothing to approve.
func (p File) Blank() bool { return strings.TrimSpace(p.Text) == "" }

// Read reads the plan file at path; a missing one is blank.
func Read(ctx context.Context, s *session.State, path string) (File, error) {
	p := File{Path: path}
	f, err := open(s, path)
	if err != nil {
		return p, err
	}
	defer f.Close()
	if f.Path != path { // a link, by which another file would be the plan
		return p, errNoPlan
	}
	r, err := s.Files.Open(ctx, f)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return p, err
	}
	defer r.Close()
	text, err := io.ReadAll(io.NewSectionReader(r, 0, maxPlan+1))
	if err != nil {
		return p, err
	}
	if len(text) > maxPlan {
		return p, tool.Numbered(tool.TooLarge, 10, "%s is too large for a plan (%s). Limit: 4 MiB. Shorten it.", path,
			results.Size(r.Size()))
	}
	p.Text, p.Sum = string(text), sum(text)
	return p, nil
}

// open opens the place of a plan file, which lies outside the roots mostly.
func open(s *session.State, path string) (filestate.File, error) {
	p, err := s.Space.Writable(path).Open(path, workspace.Write)
	return filestate.File(p), err
}

func sum(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// errNoPlan says that something else stands in the place of a plan file.
var errNoPlan = errors.New("it is no longer a plan file")

// LostRefusal is the refusal for a plan file that cannot be read.
func LostRefusal(s *session.State, path string, err error) error {
	if errors.Is(err, errNoPlan) || errors.Is(err, disk.ErrDirectory) || errors.Is(err, disk.ErrNotRegular) {
		return tool.Refuse(tool.NotRegular, "%s is no longer a plan file. Call enter_plan_mode for a new one.", path)
	}
	return wording.PathRefusal(tool.Env{State: s}, path, err)
}

// ErrChanged says that a plan file is not what it was when it was read.
var ErrChanged = errors.New("the plan file has been changed")

// Write puts text into a plan file, if it still is as was says, and returns what was done. ErrChanged: it is not.
func Write(ctx context.Context, env tool.Env, name string, was File, text string) ([]filestate.Change, error) {
	f, err := open(env.State, was.Path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return env.Files.Update(ctx, editing.By(env, name), filestate.Edit{
		File: f, Whole: true, Unseen: true, // it is compared here
		Change: func(old []byte) ([]byte, error) {
			if sum := sum(old); old == nil && was.Sum != "" || old != nil && sum != was.Sum {
				return nil, ErrChanged
			}
			return []byte(text), nil
		},
	})
}

// OwnEdit says whether the session itself made the plan file what it is, so that no person has edited it. In doubt it
// did.
func OwnEdit(ctx context.Context, env tool.Env, path string) bool {
	changed, err := env.Files.Changed(ctx, path)
	return err != nil || len(changed) == 0
}

// Create makes an empty plan file under a new name, and returns its path.
func Create(ctx context.Context, env tool.Env, name string) (string, error) {
	if !env.Space.Inside(env.Plans) {
		if err := os.MkdirAll(env.Plans, 0o700); err != nil {
			return "", &filestate.WriteError{Path: env.Plans, Step: "make directory", Err: disk.Cause(err)}
		}
	}
	for range planTries {
		changes, err := Write(ctx, env, name, File{Path: filepath.Join(env.Plans, session.NewPlanName()+".md")}, "")
		if errors.Is(err, ErrChanged) {
			continue // it is there
		}
		if err != nil {
			return "", err
		}
		return changes[0].Path, nil
	}
	return "", fmt.Errorf("no free name for a plan in %s after %d tries", env.Plans, planTries)
}
