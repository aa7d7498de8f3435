package bash

import "strings"

// runnerOf knows the programs that run their words in an environment that they set up, in a container or on another
// machine, most of them behind a sub-command. It becomes a column of the table of programs.
func runnerOf(name string) (w wrapper, ok bool) {
	if w, ok = packageRunner(name); ok {
		w.leads = true
		return w, true
	}
	switch name {
	case "perf":
		w = wrapper{subs: " stat record trace mem lock sched kmem c2c kvm kwork timechart ftrace ", unsure: true}
	case "mise", "rtx":
		w = wrapper{subs: " exec x ", unsure: true}
	case "nix":
		w = wrapper{subs: " develop shell run ", unsure: true}
	case "gdb":
		w = wrapper{subs: " --args -args ", unsure: true}
	case "docker", "podman", "nerdctl", "kubectl", "oc", "docker-compose", "podman-compose", "buildah", "ctr", "lxc",
		"incus":
		w = wrapper{subs: " run exec compose- container- pod- ", unsure: true}
	case "op", "doppler", "dotenvx", "infisical", "railway", "heroku", "foreman", "honcho", "toolbox", "rustup":
		w = wrapper{subs: " run ", unsure: true}
	case "opam", "stack", "cabal", "lerna", "nx", "tox", "aws-vault", "vault", "chamber", "nvm":
		w = wrapper{subs: " exec ", unsure: true}
	case "ip":
		w = wrapper{subs: " netns- vrf- exec ", unsure: true}
	case "adb", "machinectl", "guix", "wezterm", "zellij", "distrobox", "sops":
		w = wrapper{subs: " shell start run enter environment exec-env exec-file ", unsure: true}
	case "cmake":
		w = wrapper{subs: " -E-env -E-chdir -E-time ", unsure: true}
	case "setpriv", "i386", "x86_64", "uname26", "arch", "valgrind", "heaptrack", "rr", "hyperfine", "entr", "chpst",
		"softlimit", "envdir", "envuidgid", "setuidgid", "setlock", "pgrphack", "s6-setuidgid", "s6-envdir", "runcon",
		"sg", "screen", "tmux", "byobu", "systemd-inhibit", "systemd-cat", "systemd-nspawn",
		"systemd-socket-activate", "run0", "chronic", "cgexec", "daemonize", "daemon", "start-stop-daemon",
		"dbus-launch", "proot", "fakechroot", "eatmydata", "sem", "dotenv", "envchain", "cross-env",
		"cross-env-shell", "watchexec", "reflex", "onchange", "concurrently", "nodemon", "gosu", "su-exec", "tini",
		"dumb-init", "coresched", "choom", "uclampset", "enosys", "setpgid", "aa-exec", "capsh", "lldb", "gdbserver",
		"dtruss", "tsp", "nq", "dtach", "abduco", "mosh", "pdsh", "xterm", "uxterm", "rxvt", "urxvt", "konsole",
		"gnome-terminal", "alacritty", "kitty", "trickle", "tsocks", "sandbox-exec", "flatpak-spawn", "gksu", "kdesu",
		"kdesudo", "calife", "unshare", "start-server-and-test", "chokidar",
		"qemu-x86_64", "qemu-aarch64", "wine", "wine64", "box64", "mpirun", "mpiexec",
		"srun", "sbatch", "qsub", "retry", "minijail0", "nsjail":
		w = wrapper{unsure: true}
	default:
		return w, isLoader(name)
	}
	return w, true
}

// isLoader knows the programs that load another one.
func isLoader(name string) bool {
	return name == "ld.so" || strings.HasPrefix(name, "ld-linux") || strings.HasPrefix(name, "ld-musl") ||
		strings.HasPrefix(name, "ld-2.") || strings.HasPrefix(name, "ld64.so")
}

// packageRunner knows the programs that run a program of a package or of a project: a rule with a `*` allows them where
// it names that program.
func packageRunner(name string) (w wrapper, ok bool) {
	switch name {
	case "npx", "pnpx":
		w = wrapper{flags: "yq", valued: "pw", long: " yes no quiet package= workspace= workspaces prefer-offline " +
			"ignore-existing no-install prefix= "}
	case "bunx":
		w = wrapper{long: " bun package= ", valued: "p"}
	case "npm":
		w = wrapper{subs: " exec x ", flags: "yqsdg", valued: "wpC", long: " yes no package= workspace= workspaces " +
			"prefix= silent quiet loglevel= include-workspace-root if-present ignore-scripts foreground-scripts "}
	case "pnpm":
		w = wrapper{subs: " dlx exec ", flags: "rswcg", valued: "FC", long: " recursive filter= dir= package= silent " +
			"parallel workspace-root aggregate-output stream reporter= if-present no-bail prefix= "}
	case "yarn":
		w = wrapper{subs: " dlx exec ", flags: "qs", valued: "p", long: " package= quiet silent cwd= "}
	case "bun":
		w = wrapper{subs: " x run ", flags: "bi", long: " bun silent hot watch smol cwd= filter= ", valued: "F"}
	case "corepack":
		w = wrapper{subs: " pnpm-exec pnpm-dlx yarn-exec yarn-dlx npm-exec "}
	case "uv":
		w = wrapper{subs: " run tool-run ", flags: "qvnmsU", valued: "wpiPfC", long: uvOptions}
	case "uvx":
		w = wrapper{flags: "qvnU", valued: "wpif", long: uvOptions}
	case "pipx":
		w = wrapper{subs: " run ", flags: "qv", long: " spec= python= pip-args= index-url= with= no-cache path " +
			"pypackages verbose quiet "}
	case "poetry":
		w = wrapper{subs: " run ", flags: "qvn", valued: "CP", long: " directory= project= no-interaction quiet " +
			"verbose no-plugins no-cache ansi no-ansi "}
	case "pdm":
		w = wrapper{subs: " run ", flags: "sqv", valued: "pc", long: " project= config= site-packages venv= "}
	case "pipenv", "rye", "hatch", "volta", "coverage":
		w = wrapper{subs: " run ", flags: "vq", valued: "e", long: " env= node= npm= bundled-npm no-yarn python= "}
	case "bundle", "bundler", "rbenv", "pyenv", "nodenv", "goenv", "jenv", "plenv", "phpenv", "asdf":
		w = wrapper{subs: " exec ", long: " gemfile= keep-file-descriptors no-keep-file-descriptors verbose "}
	case "fnm":
		w = wrapper{subs: " exec ", long: " using= using-file log-level= arch= fnm-dir= "}
	case "conda", "mamba", "micromamba":
		w = wrapper{subs: " run ", flags: "v", valued: "np", long: " name= prefix= cwd= no-capture-output " +
			"live-stream verbose "}
	case "direnv":
		w = wrapper{subs: " exec ", operands: 1}
	default:
		return w, false
	}
	return w, true
}

// uvOptions are the long options of uv run and uv tool run (uv 0.9).
const uvOptions = " with= with-requirements= with-editable= from= python= extra= group= no-group= only-group= " +
	"env-file= project= directory= package= index= default-index= index-url= extra-index-url= find-links= all-extras " +
	"dev no-dev only-dev all-groups all-packages locked frozen isolated no-sync no-project active exact module " +
	"script quiet verbose offline no-cache refresh reinstall upgrade no-env-file no-config managed-python native-tls " +
	"no-progress color= cache-dir= config-file= resolution= prerelease= exclude-newer= link-mode= python-platform= "

// behindSub returns where the words of a wrapper's sub-command begin; len(words): there is none. A sub-command of two
// words has a dash between them.
func (w *wrapper) behindSub(words []spelt, i int) int {
	value := false // the word may be the value of an option that is not known
	for ; i < len(words); i++ {
		t := words[i].bare
		if n := w.isSub(words, i); n > 0 {
			return i + n
		}
		if t != "" && strings.Contains(w.subs, " "+t+"- ") { // a group of sub-commands
			value = false
			continue
		}
		switch {
		case strings.HasPrefix(t, "--"):
			takes, known := w.longOption(t[2:])
			if known && takes {
				i++
			}
			value = !known && !strings.Contains(t, "=")
		case len(t) > 1 && t[0] == '-':
			takes, known := w.shortOption(t[1:])
			if known && takes {
				i++
			}
			value = !known
		case !value && !(i+1 < len(words) && w.isSub(words, i+1) > 0 && strings.HasPrefix(t, "+")):
			return len(words)
		default:
			value = false
		}
	}
	return len(words)
}

// isSub says how many words from words[i] on are a sub-command of w; 0: none.
func (w *wrapper) isSub(words []spelt, i int) int {
	t := words[i].bare
	if t == "" || strings.ContainsAny(t, " ") {
		return 0
	}
	if strings.Contains(w.subs, " "+t+" ") {
		return 1
	}
	if i+1 < len(words) && words[i+1].bare != "" && strings.Contains(w.subs, " "+t+"-"+words[i+1].bare+" ") {
		return 2
	}
	return 0
}
