package bash

import (
	"math/rand/v2"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
)

// around puts a command (X) behind programs that run their words, and (Q) into texts that others read.
var around = []string{
	"npx X", "npx -y X", "npx -p a -- X", "npx --package=a -c 'Q'", "npm exec X", "npm exec --package a -- X", "npm --prefix d x X", "npm exec -c 'Q'", "pnpm dlx X",
	"pnpm -r exec X", "pnpm exec -- X", "pnpx X", "yarn dlx X", "yarn dlx -p a X", "yarn exec X", "bunx X", "bun x X", "bun run X", "bun --bun run X", "uv run X", "uv run --with a X",
	"uv --directory d run -p 3.12 -- X", "uv tool run X", "uvx X", "uvx --from a X", "pipx run X", "pipx run --spec a X", "poetry run X", "poetry -C d run X", "pipenv run X", "pdm run X",
	"pdm run -p d X", "hatch run X", "hatch -e a run X", "rye run X", "bundle exec X", "rbenv exec X", "pyenv exec X", "asdf exec X", "conda run X", "conda run -n a --cwd d X", "mamba run -p d X",
	"direnv exec . X", "mise exec -- X", "mise x a@1 -- X", "nix develop -c X", "nix shell a#b --command X", "nix-shell --run 'Q'", "volta run --node 20 X", "fnm exec --using 20 X",
	"setpriv --nnp X", "setarch -R X", "linux32 X", "ld.so X", "/lib64/ld-linux-x86-64.so.2 X", "perf stat X", "perf record -g -- X", "valgrind --tool=none X", "ltrace -f X", "gdb --args X",
	"gdb -q -batch --args X", "rr record X", "hyperfine 'Q'", "hyperfine -p 'Q' ls", "entr -r X", "entr -s 'Q'", "chpst -u a X", "softlimit -m 1 X", "envdir d X", "runcon a:b:c X", "sg a -c 'Q'", "unshare -r X",
	"screen -dm X", "screen -dmS a X", "tmux new -d 'Q'", "tmux new-session -d X", "tmux run-shell 'Q'", "script -c 'Q' a", "systemd-run --user X", "systemd-inhibit X", "watch 'Q'", "watch -n 1 X", "env X",
	"env -i A=b X", "env -C d X", "env -S 'Q'", "env --chdir=d --unset=A X", "env -a b X", "timeout 5 X", "timeout -s KILL 5 X", "nice -n 5 X", "nohup X", "jobs -x X", "stdbuf -oL X", "ionice -c 3 X", "chrt -b 0 X",
	"taskset -c 0 X", "setsid -w X", "flock f X", "flock f -c 'Q'", "xargs X", "xargs -n 1 -I {} X", "parallel 'Q' ::: a", "sudo -u a X", "doas X", "su a -c 'Q'", "busybox X", "busybox sh -c 'Q'", "command X",
	"exec X", "time -p X", "/usr/bin/time -v X", "strace -f X", "fakeroot -- X", "proot X", "faketime a X", "firejail X", "choom -n 1 -- X", "aa-exec -p a X", "docker run --rm a X", "docker exec a X",
	"docker compose -f a run b X", "docker compose exec b X", "podman run a X", "kubectl exec a -- X", "ip netns exec a X", "cmake -E env X", `find . -exec X \;`, "fd -x 'Q'", "git bisect run X", "git submodule foreach 'Q'",
	"git rebase -x 'Q' a", "git -c alias.a='!Q' a", "tar cf a b --to-command='Q'", "split --filter='Q' a", "rsync -e 'Q' a b", "man -P 'Q' a", "bash -c 'Q'", "bash -ec 'Q'", "ssh a 'Q'", "ssh -p 22 a 'Q'", "trap 'Q' 0",
	"eval X", "eval 'Q'", "GIT_PAGER='Q' git log", "bash <<< 'Q'", "echo 'Q' | sh", "A=b X", "{ X; }", "( X )", "! X", "if true; then X; fi", "echo $( X )", "unset 'a[$( Q )]'", "v='a[$( Q )]'; ((v))", "[[ 'a[$( Q )]' -eq 0 ]]",
	"test -v 'a[$( Q )]'", "printf -v 'a[$( Q )]' b", "declare -i v='a[$( Q )]'", "cat <<E\n$( X )\nE", "case a in $( X )) ;; esac", "op run -- X", "rustup run a X", "cross-env A=b X", "nodemon --exec 'Q'", "watchexec -e a -- X",
}

// A hundred thousand ways of putting a command behind two programs: a rule that denies it sees it, or knows that it does
// not see everything; none is ReadOnly, and no rule with a star for the programs before it covers it.
func TestWrappedTwice(t *testing.T) {
	t.Parallel()
	commands := []string{"rm x", "rm -v -- x", "/bin/rm x", "r\"\"m x", "rm"}
	total := len(around) * len(around) * len(commands)
	if total < 100_000 {
		t.Errorf("%d mutations, want 100,000", total)
	}
	n := total
	if !leaktest.Long() {
		n = 10_000
	}
	failed := 0
	random := rand.New(rand.NewPCG(16, 5))
	for i := range n {
		if n < total {
			i = random.IntN(total)
		}
		command := commands[i%len(commands)]
		outer, inner := around[i/len(commands)%len(around)], around[i/len(commands)/len(around)]
		text := wrapped(outer, wrapped(inner, command))
		a := Analyze(text, inRoot)
		if a.Class == ReadOnly || !sees(&a) && a.Hidden == "" && a.Person == "" || strings.HasPrefix(command, "rm") && underStar(&a) {
			t.Errorf("%q: class %v, seen %v, under a star %v: %+v", text, a.Class, sees(&a), underStar(&a), a.Parts)
			if failed++; failed > 20 {
				return
			}
		}
	}
}

// wrapped puts a command into a wrapper, quoted where that wants a text. What only a shell reads gets one where a program
// runs the words.
func wrapped(wrapper, command string) string {
	quote := func(s string) string { return strings.ReplaceAll(s, "'", `'\''`) }
	if first, _, _ := strings.Cut(command, " "); strings.Contains(wrapper, "X") && !shellReads(wrapper) &&
		(strings.Contains(" { ( ! if [[ case cat echo bash trap ", " "+first+" ") || strings.Contains(first, "=")) {
		command = "sh -c '" + quote(command) + "'"
	}
	return strings.ReplaceAll(strings.ReplaceAll(wrapper, "Q", quote(command)), "X", command)
}

// shellReads says whether the shell itself reads the command in a wrapper.
func shellReads(wrapper string) bool {
	first, _, _ := strings.Cut(wrapper, " ")
	return strings.Contains(" { ( ! if case echo cat ", " "+first+" ")
}
