package confine

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"codehand/tools/git"
	"codehand/tools/sandbox"
)

// personal are the variables that lead to the agents and the display of a person, and to proxies.
var personal = []string{
	"SSH_AUTH_SOCK", "GPG_TTY", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR",
	"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy",
}

// gpgAgent is the gap of commands that reach the gpg-agent of a person.
const gpgAgent = "gpg-agent"

// agentSocket is the name of the socket through which gpg does everything with the keys of its agent.
const agentSocket = "S.gpg-agent"

// rings are the files of GnuPG that hold no secret and without which its agent signs nothing, in its directory.
var rings = []string{"pubring.kbx", "pubring.gpg", "public-keys.d", "trustdb.gpg", "gpg.conf", "common.conf"}

// publicKeys are the files of ssh's that say which key of the agent is meant, and whose signatures are good. What is no
// public key by its content is none by its name.
func publicKeys(home string) (files []string) {
	if home == "" {
		return nil
	}
	dir := filepath.Join(home, ".ssh")
	all, _ := filepath.Glob(filepath.Join(globEscape(dir), "*.pub")) // the pattern is right
	for _, path := range all {
		if text, err := git.ReadSmall(path, 64<<10); err == nil && publicKey().Match(text) {
			files = append(files, path)
		}
	}
	return append(files, filepath.Join(dir, "allowed_signers"))
}

// publicKey matches a file with one public key or certificate.
var publicKey = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:ssh|ecdsa|sk)-[a-z0-9@.-]+ [A-Za-z0-9+/=]+(?: [^\n]*)?\n*$`)
})

// A desktop is what commands reach of the person at the machine, by the variables of their environment.
type desktop struct {
	paths    []string       // sockets, and what belongs to them
	links    []sandbox.Link // where gpg looks for its agent, at sockets of paths
	gaps     []string       // what they are, for people
	unshared bool           // there is a gpg-agent, and none of its sockets is for commands
}

// desktopOf returns what env names that is there. The bus is never among it.
func desktopOf(home string, env []string) (d desktop) {
	add := func(gap string, socket string, more ...string) (there bool) {
		if socket == "" || !plain(socket) || isBus(socket) {
			return false
		}
		d.paths = append(d.paths, socket)
		for _, path := range more {
			if plain(path) {
				d.paths = append(d.paths, path)
			}
		}
		if !slices.Contains(d.gaps, gap) {
			d.gaps = append(d.gaps, gap)
		}
		return true
	}
	add("ssh-agent", value(env, "SSH_AUTH_SOCK"), publicKeys(home)...)
	run := value(env, "XDG_RUNTIME_DIR")
	// GPG_TTY passes to the commands of the person at the machine only.
	if home != "" && (run != "" || value(env, "GPG_TTY") != "") {
		d.addGPG(add, filepath.Join(home, ".gnupg"), run)
	}
	cookie := value(env, "XAUTHORITY")
	if cookie == "" && home != "" {
		cookie = filepath.Join(home, ".Xauthority")
	}
	if shown := value(env, "DISPLAY"); strings.HasPrefix(shown, ":") {
		number, _, _ := strings.Cut(shown[1:], ".")
		add("display", "/tmp/.X11-unix/X"+number, cookie)
	}
	if name := value(env, "WAYLAND_DISPLAY"); name != "" {
		if !filepath.IsAbs(name) {
			name = filepath.Join(run, name)
		}
		add("display", name)
	}
	return d
}

// addGPG adds the agent of gpg: its restricted socket, which signs and neither gives out nor deletes a secret key, in
// place of the one that gpg looks for. gpg looks in the run directory or in its own, by what it thinks of the former.
func (d *desktop) addGPG(add func(string, string, ...string) bool, own, run string) {
	public := make([]string, len(rings))
	for i, name := range rings {
		public[i] = filepath.Join(own, name)
	}
	dirs := []string{own}
	if run != "" {
		dirs = append(dirs, filepath.Join(run, "gnupg"))
	}
	var restricted string
	for _, dir := range dirs {
		d.unshared = d.unshared || plain(filepath.Join(dir, agentSocket))
		if socket := filepath.Join(dir, agentSocket+".extra"); add(gpgAgent, socket, public...) {
			restricted = socket
		}
	}
	if restricted == "" {
		return
	}
	d.unshared = false
	for _, dir := range dirs {
		d.links = append(d.links, sandbox.Link{Path: filepath.Join(dir, agentSocket), Target: restricted})
	}
}

// isBus says whether a socket goes by the name of a bus, which no variable makes readable.
func isBus(path string) bool {
	return filepath.Base(path) == "bus" || strings.Contains(filepath.Base(path), "dbus") ||
		filepath.Base(path) == "system_bus_socket"
}

// DesktopGaps names what commands with this environment reach of the person at the machine while their network is open:
// "ssh-agent", "gpg-agent", "display".
func DesktopGaps(home string, env []string) []string { return desktopOf(home, env).gaps }

// desktop is what the commands of this person reach; it is empty where they have no open network.
func (c *Confiner) desktop() desktop {
	if !c.o.Personal || c.o.Network.Network != sandbox.NetworkOn {
		return desktop{}
	}
	return desktopOf(c.o.Home, c.env())
}
