package running

import (
	"context"
	"path"
	"slices"
	"strings"

	"codehand/tools/bash"
	"codehand/tools/shell"
	"codehand/tools/tool"
)

// unreachedExits are the exit codes by which programs that were told to be quiet say that they reached no host.
var unreachedExits = map[string][]int{
	"curl": {6, 7}, // curl(1), EXIT CODES: the host is not resolved, or not connected to
	"wget": {4},    // wget(1), EXIT STATUS: network failure
}

// silentlyUnreached reports whether a command that printed nothing failed as one of its programs does that reached no
// host.
func silentlyUnreached(a *bash.Analysis, exit int) bool {
	if a == nil {
		return false
	}
	return slices.ContainsFunc(a.Parts, func(part bash.Part) bool {
		return slices.ContainsFunc(part.Forms, func(form string) bool {
			words := strings.Fields(form)
			return len(words) > 0 && slices.Contains(unreachedExits[path.Base(words[0])], exit)
		})
	})
}

// fetching are the programs that say on standard output, or behind `2>&1 | tail`, that they reached no host. What any
// other program shows, as grep, may be about another network.
var fetching = []string{
	"pip", "pip3", "npm", "npx", "pnpm", "yarn", "corepack", "uv", "poetry", "pipx", "curl", "wget", "git", "go",
	"cargo", "rustup", "gem", "bundle", "composer", "mvn", "gradle", "apt-get", "apt",
}

// unfetched names the setting that kept a command from the network although its exit code is 0; "": none did.
func (o *Outcome) unfetched(said string) string {
	if o.Env.Analysis == nil || !runs(o.Env.Analysis, fetching...) {
		return ""
	}
	return o.Confined.Unreached(said)
}

// refused adds the line that names the setting to the answer about a command that did not fail, or that was ended at
// its limit: a pipe hides how curl failed, git goes on where it cannot write its configuration, and npm tries again
// until it is too late.
func (o *Outcome) refused(ctx context.Context, i shell.Info) error {
	if o.Confined.Profile == nil || i.Err == 0 {
		return nil
	}
	_, stderr, err := o.Env.Shell.Streams(ctx, i.ID, 4*maxFailure)
	if err != nil {
		return err
	}
	if line := o.Confined.Refusal(stderr.Head+"\n"+stderr.Tail, o.Env.Space.Cwd()); line != "" {
		o.Notes = append(o.Notes, line)
	}
	return nil
}

// UnreachedNote names the setting that kept a failed job from the network, as far as the output that is shown tells;
// "": none.
func UnreachedNote(env tool.Env, c shell.Chunk) string {
	if c.Info.State != shell.Failed {
		return ""
	}
	return env.Confine.Unreached(c.Head + "\n" + c.Tail)
}
