package confine

import (
	"os"
	"path/filepath"
	"slices"

	"codehand/tools/credentials"
	"codehand/tools/git"
	"codehand/tools/sandbox"
)

// CredentialsGap names that git in commands gets passwords of the person.
const CredentialsGap = "git-credentials"

// passwords are what git in a command gets of them.
type passwords struct {
	door *credentials.Door // where it asks; nil: nowhere
	none string            // why it got none, if it asked for none there
}

// Begin looks, before the first command of a session, which passwords its git may get: those for the remotes that its
// repositories have now, and for what the operator named. About another host the person is asked separately, since a
// command may have added it. roots are those of the session, canonical.
func (s *Session) Begin(roots []string) {
	if s.o.Credentials == "" || !s.o.Personal || s.o.Off || s.o.Network.Network != sandbox.NetworkOn {
		return
	}
	written := slices.Concat(s.o.Roots, roots, s.o.Writable)
	if s.o.State != "" {
		written = append(written, s.o.State) // with the private caches and temporary directories
	}
	s.desk = credentials.New(credentials.Options{Mode: s.o.Credentials, Remotes: s.remotes(roots),
		Sites: s.o.CredentialSites, Written: written, Home: s.o.Home,
		Dir: filepath.Join(filepath.Dir(s.Temp), "credentials")})
}

// maxBeside is how many entries of a root are looked at for repositories.
const maxBeside = 500

// remotes returns the URLs of the remotes of the repositories at the tops of roots and directly below, with those of
// their submodules.
func (s *Session) remotes(roots []string) (urls []string) {
	for _, root := range roots {
		repositories := []string{filepath.Join(root, ".git")}
		if common := s.common(root); common != "" {
			repositories = append(repositories, common)
		}
		for i, e := range entriesOf(root) {
			if i < maxBeside && e.IsDir() {
				repositories = append(repositories, filepath.Join(root, e.Name(), ".git"))
			}
		}
		for _, r := range repositories {
			for _, file := range namedIn(r, []string{"config", "modules/*/config"}) {
				urls = append(urls, git.Remotes(file)...)
			}
		}
	}
	return urls
}

func entriesOf(dir string) []os.DirEntry {
	all, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	return all
}

// openDoor lets git in a command ask for passwords, or notes why it cannot.
func (s *Session) openDoor(c *Command, ask credentials.Asking) {
	const none = "git gets no stored password here: "
	const instead = "; use an ssh remote, with which the user's agent works, or let the user push"
	switch {
	case s.o.Credentials == "" && s.o.Personal:
		c.pass.none = none + `sandbox.git_credentials is "off", or this is a server` + instead
	case s.desk == nil:
		c.pass.none = none + "the network is not open" + instead
	default:
		door, err := s.desk.Open(ask)
		if err != nil {
			c.pass.none = none + err.Error()
			return
		}
		c.pass.none = "git asked for no stored password: the command sets another helper, or the helper failed as " +
			"shown" + instead
		c.pass.door = door
		c.Profile.Readable = append(c.Profile.Readable, door.Readable()...)
		c.Env = append(c.Env, door.Env()...)
		if s.desk.Allowed() {
			c.Gaps = append(c.Gaps, CredentialsGap)
		}
	}
}
