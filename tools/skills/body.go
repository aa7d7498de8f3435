package skills

import (
	"context"
	"errors"
	"fmt"
)

// The errors of reading a skill's file. Others are those of Files: fs.ErrNotExist when it has vanished.
var (
	ErrTooLarge = errors.New("the text of the skill is too large") // SKILL.md over 1 MiB, or a rendered text over 4 MiB
	ErrNotText  = errors.New("the skill is not UTF-8 text")
)

// Body returns the text of s after its front matter, as the file is now: it may be newer than s. Lines end with \n
// alone.
func (x *Index) Body(ctx context.Context, f Files, s Skill) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	c, _, err := load(f, s.File, maxFile, nil)
	if err != nil {
		return "", fmt.Errorf("read the skill %s: %w", s.Name, err)
	}
	_, body, err := split(c.data)
	if err != nil {
		return "", fmt.Errorf("read the skill %s: %w", s.Name, err)
	}
	return body, nil
}
