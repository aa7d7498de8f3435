package blackbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"codehand/filestate/leaktest"
	"codehand/server/replaytest"
)

// Commands that showed a file which a rule denies, or what git keeps of one: the rule is about secret.txt and secrets/.
var showing = []string{
	"cd missing; cp secrets/a.txt x; cat x", "cd missing; cat secrets/a.txt", "false && cd sub; cat secret.txt", "cd sub; cd ..; cd missing; cat secret.txt",
	// variables
	"f=secret.txt; cat $f", "f=secret.txt; cat ${f}", `f=secret.txt; cat "$f"`, "f=secret.txt && cat $f", "f=secret; cat $f.txt",
	"f=secret; f+=.txt; cat $f", "f=secret; f=$f.txt; cat $f", "cat ${X:-secret.txt}", "cat ${X-secret.txt}", "cat ${X:=secret.txt}",
	"cat ${X=secret.txt}", ": ${X:=secret.txt}; cat $X", "X=1; cat ${X:+secret.txt}", "X=1; cat ${X+secret.txt}", "f=secret.txt.bak; cat ${f%.bak}",
	"f=xxsecret.txt; cat ${f#xx}", "f=a/secret.txt; cat ${f##*/}", "f=secret.md; cat ${f/md/txt}", "f=xsecret.txty; cat ${f:1:10}",
	"f=SECRET.TXT; cat ${f,,}", "f=Secret.txt; cat ${f,}", `f=secret.txt; cat ${f@Q}`, "export f=secret.txt; cat $f", "declare f=secret.txt; cat $f",
	`declare "f=secret.txt"; cat $f`, "readonly f=secret.txt; cat $f", "read f <<< secret.txt; cat $f", "read -r a f <<< 'x secret.txt'; cat $f",
	"printf -v f %s.txt secret; cat $f", "a=(x secret.txt); cat ${a[1]}", `a=(secret.txt b); cat "${a[@]}"`, "a[0]=secret.txt; cat ${a[0]}", "a=(); a+=(secret.txt); cat ${a[*]}",
	"declare -A m=([k]=secret.txt); cat ${m[k]}", "f=secret.txt; g=f; cat ${!g}", "for f in secr*; do cat $f; done", `for f in secr*; do cat "$f"; done`,
	"for f in a{b,c} secret.txt; do cat $f; done", "for f in a b; do f=secret.txt; cat $f; done", "while read f; do cat $f; done <<< secret.txt",
	"printf 'a\\nsecret.txt\\n' | while read -r f; do cat $f; done", "ls | while read f; do cat $f; done", "while read f; do cat $f; done < list", "true && f=secret.txt; cat $f",
	"if true; then f=secret.txt; else f=b; fi; cat $f", "f=b; f=secret.txt; cat $f", `g() { cat "$1"; }; g secret.txt`, `g() { cat "$@"; }; g b secret.txt`, "g() { cat $f; }; f=secret.txt; g",
	`set -- secret.txt; cat "$1"`, "set secret.txt; cat $@", "set -- b secret.txt; shift; cat $1", "sh -c 'cat $1' x secret.txt", `bash -c 'cat "$@"' x b secret.txt`,
	"env f=secret.txt sh -c 'cat $f'", "f=secret.txt sh -c 'cat $f'", `f=secret.txt; sh -c "cat $f"`, `f=secret.txt; sh -c "cat '$f'"`, `c='cat secret.txt'; sh -c "$c"`, `c='cat secret.txt'; $c`,
	"d=secrets; cat $d/a.txt", "d=secrets; cd $d && cat a.txt", "d=secrets; ls $d; cat $d/*", "for d in */; do cat $d*; done", "for d in secrets; do (cd $d; cat a.txt); done", "cat < ${X:-secret.txt}",
	"f=secret.txt; cat < $f", "f=$(echo secret.txt); cat $f", "f=$PWD/secret.txt; cat $f", "cat $(pwd)/secret.txt", "case x in x) f=secret.txt;; esac; cat $f", "f='b secret.txt'; cat $f",
	"f='secr*'; cat $f", "p=secr; cat $p*", `IFS=:; f=b:secret.txt; cat $f`, "case secret.txt in $X) ;; *) cat $(echo secr*) ;; esac", "cat <<< $(cat ${X:-secret.txt})",
	// other names, pipes
	"ln secret.txt h && cat h", "ln -s secret.txt h2; cat h2", "cp -l secret.txt h3; cat h3", "cp -s $PWD/secret.txt h4; cat h4", "cd secrets; ln -s ../secret.txt ../h5; cat ../h5",
	"ln -s secrets d2; cat d2/a.txt", "link secret.txt h6; cat h6", "mv secret.txt m; cat m", "xargs cat <<< secret.txt", "echo secret.txt | xargs cat",
	`printf '%s\n' b secret.txt | xargs -n1 cat`, `printf 'secret.txt\0' | xargs -0 cat`, "xargs cat <<EOF\nb\nsecret.txt\nEOF", "ls | xargs cat", "ls secrets | (cd secrets; xargs cat)", "find . -name 's*.txt' | xargs cat",
	"echo secret.txt | xargs -I{} cat {}", "echo secr | xargs -I% cat %et.txt", "echo secret.txt | xargs -i cat {}", "echo secret.txt | xargs sh -c 'cat $0'", "echo secret.txt | xargs -I{} sh -c 'cat {}'",
	"cat list | xargs cat", "xargs -a list cat", "xargs cat < list", "ls | grep secr | xargs cat", "cat $(echo secret.txt)", "cat `echo secret.txt`", "cat $(ls)", "cat $(cat list)", "cat $(< list)",
	"cat $(find . -name 'secret*')", "cat < <(cat secr*)", "tee x < secr*.txt", "dd if=secret.txt", "exec 3<secret.txt; cat <&3", "mapfile -t l < secret.txt; echo ${l[@]}", ". ./secret.txt", "source secret.txt",
	"{ cat; } < ${X:-secret.txt}", "find . -type f -exec cat {} \\;", "find secr* -exec cat {} +", "find . -exec sh -c 'cat $1' _ {} \\;", "{ echo b; echo secret.txt; } | xargs cat", "for x in b secret.txt; do echo $x; done | xargs cat",
	"cat $(basename x/secret.txt)", "cat $(realpath secret.txt)", "wc --files0-from=list0 -c; tar cT list", "tar cf - -T list", "sort --files0-from=list0",
	// globs
	"cat fil? secre?.txt", "cat s*/*", "cat [s]ecret.txt", "cat [[:lower:]]ecret.txt", "cat [[=s=]]ecret.txt", "cat ?ecret.txt", "grep -r '' s*", "grep -rh '' sec*", "cp -r s* c; cat c/*", "shopt -s dotglob; cat .h*/* *",
	"shopt -s globstar; cat **/a.txt", "shopt -s extglob\ncat @(secret|x).txt", "shopt -s extglob\ncat !(b)", "shopt -s nocaseglob; cat SECR*", "bash -O nocaseglob -c 'cat SECR*'", "set -f; cat secret.txt", "GLOBIGNORE=x; cat *",
	// readers that the table does not have
	"fmt secret.txt", "expand secret.txt", "unexpand secret.txt", "shasum secret.txt; fold secret.txt", "pr secret.txt", "ptx secret.txt", "f=secret.txt; fmt $f", "fmt $(cat list)", "awk 'BEGIN { while ((getline l < \"secret.txt\") > 0) print l }'",
	"python3 -c 'print(open(\"secret.txt\").read())'", "perl -ne print secret.txt", "sed -n p ${X:-secret.txt}", "bash secret.txt", "x=cat; $x secret.txt", "diff secret.txt b", "split secret.txt p; cat p*", "base64 secret.txt; od -c secret.txt",
	// found later
	"mapfile -t l <<< secret.txt; cat \"${l[0]}\"", "mapfile -t l < <(ls); cat \"${l[@]}\"", "read -r f < <(echo secret.txt); cat $f", "IFS=, read -r a f <<< b,secret.txt; cat $f", "IFS= read -r f <<< secret.txt; cat $f", "set -- $(echo secret.txt); cat $1", "g() { local f=secret.txt; cat $f; }; g",
	"select f in secret.txt; do cat $f; done <<< 1", "trap 'cat $f' EXIT; f=secret.txt", ": secret.txt; cat $_", "cd secrets; cat $PWD/a.txt", "cd secrets; cat ~+/a.txt", "pushd secrets; cat a.txt; popd", "cd secr*; cat a.txt", "cat secre{t..t}.txt", "cat s{a..z}cret.txt secre{s..t}.txt", "cat ${X:-${Y:-secret.txt}}",
	"cat ${X:-secr*}", "cat ${!X*}", "f=txt.terces; cat $(echo $f | rev)", "cat secret.t${X}xt", "echo 'b;secret.txt' | xargs -d ';' cat", "printf 'b\\0secret.txt' | xargs -0 cat", "echo cat secret.txt | xargs env", "echo cat secret.txt | xargs timeout 5", "echo \"-c 'cat secret.txt'\" | xargs sh", "xargs <<< 'cat secret.txt' sh -c '$0 $1'",
	"echo 'secret\\.txt' | xargs cat", "f=secret.txt; bash <<< \"cat '$f'\"", "f=secret.txt; echo \"cat '$f'\" | sh", "f=secret.txt; bash <<EOF\ncat '$f'\nEOF", "env -C secrets cat a.txt", "tar -C secrets -cf - a.txt", "set -- secret.txt; for f; do cat $f; done", "set -- b secret.txt; while [ $# -gt 0 ]; do cat $1; shift; done",
	"args='-n1 secret.txt'; head $args", "g() { h \"$1\"; }; h() { cat \"$1\"; }; g secret.txt", "g() { cat; } < ${X:-secret.txt}; g", "for w in $(cat ${X:-secret.txt}); do echo $w; done", "cat <<EOF\n$(cat ${X:-secret.txt})\nEOF", "echo ${X:-$(cat ${Y:-secret.txt})}", "a=($(cat ${X:-secret.txt})); echo ${a[@]}",
	"python3 <<'EOF'\nprint(open('secret.txt').read())\nEOF", "column -t secret.txt", "fmt -s secret.txt", "od -c -w secret.txt", "ls | cpio -o", "ln -s . d3; cat d3/secrets/a.txt", "ln -s \"$PWD\" d4; cat d4/secret.txt", "f=secret.txt; { cat $f; }", "f=secret.txt; time cat $f", "f=secret.txt; ! cat $f", "f=secret.txt; cat $f &", "(f=secret.txt; cat $f)",
	"f=secret.txt\ncat $f", "f=secret.txt; [[ -n $(cat $f) ]] && cat <<< \"$(<$f)\"", "f=sec\\\nret.txt; cat $f", "f=$'secret.txt'; cat $f", "f='secret'.\"txt\"; cat $f", "f=~+/secret.txt; cat $f", "declare -n r=f; f=secret.txt; cat $r", "f=secret.txt; export -n f; bash -c \"cat $f\"", "cat $(printf '%s' secret.txt)", "cat $(printf '\\163ecret.txt')",
	"cat \"$(echo -n secret.txt)\"", "cat $(echo -e 'sec\\x72et.txt')", "cat $(tr a-z a-z <<< secret.txt)", "cat $(cat <<< secret.txt)", "cat $(dirname secret.txt/x)", "cat $(readlink -f secret.txt)", "cat $(ls -d secr*)", "cat $(find . -name '*.txt' | head -n 20)", "cd $(dirname secrets/a.txt) && cat a.txt",
	"busybox cat secret.txt || cat ${X:-secret.txt}", "cat s*t.txt", "echo *.txt | xargs cat", "printf '%s\\n' * | xargs cat", "for f in $(ls); do cat $f; done", "find . -maxdepth 1 -type f | while read -r f; do cat \"$f\"; done", "f=secret.txt; case $f in *) cat $f;; esac", "until cat ${X:-secret.txt}; do :; done",
	"coproc cat secret.txt; cat <&${COPROC[0]}", "exec {fd}<secret.txt; cat <&$fd", "cat 0<${X:-secret.txt}", "alias c='cat secret.txt'; shopt -s expand_aliases\nc",
	"declare -l f=SECRET.TXT; cat $f", "declare -l f; f=SECRET.TXT; cat $f", "declare -n r=f; r=secret.txt; cat $f", "n=f; printf -v $n secret.txt; cat $f", "n=f; read $n <<< secret.txt; cat $f", "export $(echo f=secret.txt); cat $f", "sh -c 'cat $2' x $(cat list) b", "ls | xargs sh -c 'cat $4' _",
	"f=b; for i in 1 2; do cat $f; f=secret.txt; done", "f=b; for i in 1 2; do cat $f; f=$g; g=secret.txt; done", "g() { f=secret.txt; }; f=b; g; cat $f", "f=b; declare -g f=secret.txt; cat $f",
	// places that the kernel follows, and what stands before a ..
	"cat ../*/secret.txt", "cat */../secret.txt", "cat ../?/secr*", "cat $PWD/../*/secrets/*", "for f in ../*/secret.txt; do cat $f; done", "cat su*/../secr*", "grep -r word ..", "find .. -name secret.txt -exec cat {} +", "cat lnk/../a.txt", "cat < lnk/../a.txt", "cat l?k/../a.txt", "cd lnk && cat ../*", "cp lnk/../a.txt zz; cat zz",
	"cat /proc/self/cwd/secret.txt", "cd sub; cat /proc/self/cwd/../secret.txt", "cat < /proc/thread-self/cwd/secr*", "cat /proc/self/root$PWD/secret.txt", "cat /proc/*/cwd/secret.txt", "cat /proc/$$/cwd/secret.txt", "cd /proc/self/cwd; cat secret.txt", "grep -r word /proc/self/cwd/", "cat /dev/fd/3/secret.txt 3<.", "cat /proc/self/fd/3/secret.txt 3<.",
	// scripts of sed
	"sed rsecret.txt b", "sed -n '1rsecret.txt' b", "sed Rsecret.txt b", "sed --expression=rsecret.txt b", "sed -n '/open/{rsecret.txt\np}' b", "f=rsecret.txt; sed $f b", "sed \"r${X:-secret.txt}\" b", "sed -f x.sed b",
	// values
	"a=(b secret.txt); cat ${a[@]:1}", "set -- b secret.txt; cat ${@:2}", "declare -A m=([a]=secret.txt); cat ${m[a]}", "CDPATH=..; cd sub; cat ../secret.txt", "CDPATH=$PWD; cd /; cd secrets; cat a.txt", "printf -v f '%b' 'secre\\x74.txt'; cat $f", "d=${PWD##*/}; cat ../$d/secret.txt", "d=$(basename $PWD); cat ../$d/secret.txt",
	"ls secrets | xargs -I{} cat secrets/{}", "cat $(ls -d secr*)", "cat {secret,b}.txt", "cat $'\\x73ecret.txt'",
	// what bash reads by itself
	"history -r secret.txt; history", "HISTFILE=secret.txt; history -r", "BASH_ENV=secret.txt bash -c true", "export BASH_ENV=secret.txt; bash -c true", "ENV=secret.txt sh -i -c true", "bash --rcfile secret.txt -i -c true", "bash --init-file secret.txt -i", "mapfile -C echo -c1 < secret.txt", "enable -f secret.txt x",
}

// Commands that changed a file which a rule keeps from being changed: locked.txt.
var changing = []string{
	"cd missing; cp b locked.txt", "false && cd sub; echo x > locked.txt", "cd missing & rm locked.txt",
	"f=locked.txt; echo x > $f", "echo x > ${X:-locked.txt}", "for f in lock*; do echo x > $f; done", `for f in l*; do echo x > "$f"; done`, "ln locked.txt h; echo x > h", "ln -s locked.txt h2; echo x > h2", "cp -l locked.txt h3; echo x > h3", "link locked.txt h4; echo x > h4",
	"echo x | tee ${X:-locked.txt}", "echo locked.txt | xargs rm", "echo locked.txt | xargs truncate -s0", "printf '%s\\n' locked.txt | xargs -I{} sh -c 'echo x > {}'", "find . -name 'locked*' -delete", "find . -name 'lock*' -exec rm {} \\;", "find . -name 'lock*' | xargs rm", "ls | xargs rm",
	"rm $(ls)", "rm lock*", "sed -i s/k/x/ ${X:-locked.txt}", "f=locked.txt; sed -i s/k/x/ $f", "a=(b locked.txt); cp ${a[@]}", "set -- b locked.txt; cp $1 $2", "g() { echo x > $1; }; g locked.txt", "sh -c 'echo x > $1' _ locked.txt", "f=locked.txt; cp b $f", "f=locked.txt; mv b $f", "d=.; cp b $d/locked.txt",
	"exec 3>locked.txt; echo x >&3", "f=locked.txt; dd if=b of=$f", "python3 -c 'open(\"locked.txt\", \"w\")'", "perl -pi -e s/k/x/ locked.txt", "ed locked.txt <<< $'1d\\nw'", "awk 'BEGIN { print 1 > \"locked.txt\" }'", "sort -o ${X:-locked.txt} b", "git checkout -- locked.txt; git rm -f ${X:-locked.txt}", "x=rm; $x locked.txt",
	"while read f; do echo x > $f; done <<< locked.txt", "while read f; do echo x > $f; done < wlist", "xargs rm < wlist", "rm $(cat wlist)", "echo x > $(cat wlist)", "patch locked.txt b", "split -n1 b; cat x > lock*",
	"tar xf b", "unzip b", "git rm -f $(cat wlist)", "sed -n 'w locked.txt' b", "f=locked.txt; : > \"$f\"", "f=locked.txt; echo x >> $f", "f=locked.txt; echo x &> $f", "f=locked.txt; truncate -s0 $f", "exec {fd}>locked.txt; echo x >&$fd", "find . -fprint locked.txt", "a=(x locked.txt); echo x > \"${a[1]}\"", "vi -es -c 'w! locked.txt' b",
	"ln b locked2; ln -f b ${X:-locked.txt}", "mv ${X:-locked.txt} y", "rm -r ${X:-.}/l*", "cp b lock{e..e}d.txt", "gzip locked.txt", "rm ./lock*", "cd . && echo x > ${PWD}/locked.txt", "xargs -I{} cp b {} <<< locked.txt", "echo 'b locked.txt' | xargs cp", "for f in locked; do echo x > $f.txt; done", "f=locked; echo x > ${f}.txt", "echo x | tee $(echo locked.txt)",
	"sed wlocked.txt b", "sed Wlocked.txt b", "sed 's/o/x/wlocked.txt' b", "sed -n 's,o,x,gw locked.txt' b", "cp b ../*/locked.txt", "sed -i s/k/x/ ../*/locked.txt", "rm */../lock*", "rm /proc/self/cwd/lock*", "tee /proc/self/cwd/locked.txt < b", "history -w locked.txt",
	// git
	"git checkout-index -f locked.txt", "git checkout-index -af", "git checkout HEAD locked.txt", "git restore locked.txt", "git restore .", "git checkout .", "git mv locked.txt m", "git rm -r -q .", "git apply b", "git am b", "git stash", "git stash pop", "git reset --hard", "git switch -", "git pull", "git merge x",
	"git cherry-pick HEAD", "git revert HEAD", "git rebase x", "git read-tree -um HEAD", "git clean -fd", "git sparse-checkout set secrets", "git bisect start HEAD HEAD", "cd secrets && git restore ..", "git -C secrets checkout ..", "git merge-file locked.txt b b",
}

// Commands that changed protected names without a question: .envrc, .mcp.json, .vscode and the hooks of git.
var unasked = []string{
	"cp b .env[r]c", "cp b .e?vrc", "echo x > .env[r]c", "echo x >> .envr?", ": > .env?c", "truncate -s0 .env?c", "dd if=b of=.envrc", "mv .env[r]c y", "rm .en*", "rm -r .vsc*", "ln -sf b .env?c", "install b .env?c", "cd .gi?; echo x > hooks/pre-commit", "cd .g* && cp b hooks/pre-commit", "cd .gi?; cd hooks; echo x > pre-commit", "(cd .git/hoo*; cp ../../b pre-commit)",
	"cp b .gi?/hooks", "cp b .gi?/hook?/pre-commit", "touch .git/hooks/pre-commi[t]", "tee .gi*/hooks/pre-commit < b", "sed -i s/k/x/ .mc*", "sed 'w .envrc' b", "sed w.envrc b", "sed -n 's/o/x/w.envrc' b", "sed W.envrc b", "tee .v?code/settings.json < b", "cd .vsc*; cp ../b settings.json", "pushd .vsc*; cp ../b settings.json", "mv -t .vscod? b",
	"for f in .en*; do echo > $f; done", "for f in .e*c; do cp b \"$f\"; done", "for d in .vsc*/; do cp b ${d}settings.json; done", "for d in .v*; do (cd $d; cp ../b settings.json); done", "f=.en*; echo x > $f", "set -- .en*; cp b $1", "a=(.en*); cp b \"${a[@]}\"", "g() { cp b $1; }; g .en*", "printf '%s\\n' .en* | xargs rm", "ls -A .en* | xargs -I{} cp b {}", "cp b $(ls -d .en*)",
	"find . -name '.env*' -delete", "find . -name '.env*' -exec cp b {} \\;", "find . -maxdepth 1 -name '.env*' | xargs rm", "cp b ../*/.envrc", "cp b */../.env?c", "cp b /proc/self/cwd/.envrc", "echo x > /proc/self/cwd/.git/hooks/pre-commit", "ln -s .vscode q; echo x > q/settings.json", "shopt -s dotglob; sed -i s/k/x/ *", "shopt -s nocaseglob; cp b .ENVR*", "history -w .envrc",
}

// A person is asked before a protected name is changed, in every mode; there was no question behind a glob, a directory
// that a glob leads to or the script of sed.
func TestProtectedBehindGlobs(t *testing.T) {
	t.Parallel()
	path := replaytest.Program(t)
	work := filepath.Join(leaktest.Dir(t), "w")
	kept := []string{".envrc", ".mcp.json", ".vscode/settings.json", ".git/hooks/kept"}
	lay := func() {
		for _, name := range append(kept, "b", "sub/c") {
			must(t, os.MkdirAll(filepath.Join(work, filepath.Dir(name)), 0o700))
			must(t, os.WriteFile(filepath.Join(work, name), []byte("kept\n"), 0o600))
		}
	}
	lay()
	p := replaytest.Spawn(t, path, work, "claude-code", false, map[string]string{"permissions.mode": "bypassPermissions"})
	for _, command := range unasked {
		text := p.Must(t, "run_shell", replaytest.AsJSON(t, "command", command))
		for _, name := range kept {
			if is, err := os.ReadFile(filepath.Join(work, name)); err != nil || string(is) != "kept\n" {
				t.Errorf("%q changed %s to %q, %v: %s", command, name, is, err, text)
				lay()
			}
		}
	}
	for _, name := range kept {
		if text, err := os.ReadFile(filepath.Join(work, name)); err != nil || string(text) != "kept\n" {
			t.Errorf("%s is %q, %v", name, text, err)
		}
	}
	must(t, os.MkdirAll(filepath.Join(work, "sub"), 0o700))
	p.Must(t, "run_shell", replaytest.AsJSON(t, "command", "cd "+work)) // a command may have left another directory
	for _, command := range []string{"cp b sub/*", "rm sub/*", "for f in b*; do cp $f sub/; done", "(cd su?; echo x > n)", "sed -n 's/k/x/w out' b", "cat .envr?", "ls -d .vsc*", "find . -name '*.o' -delete", "rm -rf sub"} {
		if text := p.Must(t, "run_shell", replaytest.AsJSON(t, "command", command)); strings.HasPrefix(text, "! ") {
			t.Errorf("%q is refused: %s", command, text)
		}
	}
}

// A rule about a path was passed by whatever the words of a command did not spell: values of variables, loops, pipes
// into xargs, other names made in the same command, git's own copies. Each of these showed the file or changed it,
// though everything else was allowed.
func TestRulesSeeThroughCommands(t *testing.T) {
	t.Parallel()
	path := replaytest.Program(t)
	work := filepath.Join(leaktest.Dir(t), "w")
	must(t, os.MkdirAll(filepath.Join(work, "secrets"), 0o700))
	for name, text := range map[string]string{
		"secret.txt": "the hidden word\n", "secrets/a.txt": "a hidden word\n", "locked.txt": "kept\n", "b": "open\n", "list": "secret.txt\n", "list0": "secret.txt\x00", "x.sed": "rsecret.txt\n", "wlist": "locked.txt\n",
	} {
		must(t, os.WriteFile(filepath.Join(work, name), []byte(text), 0o600))
	}
	must(t, os.Mkdir(filepath.Join(work, "secrets/in"), 0o700))
	must(t, os.Mkdir(filepath.Join(work, "sub"), 0o700))
	must(t, os.Symlink("secrets/in", filepath.Join(work, "lnk")))
	for _, args := range [][]string{{"init", "-q"}, {"add", "secrets/a.txt", "b", "locked.txt"},
		{"-c", "user.name=u", "-c", "user.email=u@x", "commit", "-qm", "first"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = work
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v: %s", args, err, out)
		}
	}
	p := replaytest.Spawn(t, path, work, "claude-code", false, map[string]string{
		"permissions.deny": "Read(secret.txt),Read(secrets/**),Edit(locked.txt)", "permissions.mode": "bypassPermissions",
	})
	for _, commands := range [][]string{showing, changing} {
		for _, command := range commands {
			for _, tool := range [...]string{"run_shell", "run_readonly"} {
				text := p.Must(t, tool, replaytest.AsJSON(t, "command", command))
				locked, err := os.ReadFile(filepath.Join(work, "locked.txt"))
				if strings.Contains(text, "hidden word") || err != nil || string(locked) != "kept\n" {
					t.Errorf("%s %q showed or changed the file: %s", tool, command, text)
					must(t, os.WriteFile(filepath.Join(work, "locked.txt"), []byte("kept\n"), 0o600))
				}
			}
		}
	}
	// What has nothing to do with these files runs as before.
	for _, command := range []string{
		"f=b; cat $f", "for f in b b; do cat $f; done", "echo b | xargs cat", "xargs cat <<< b", "cat $(echo b)", "printf '%s\\n' b b | xargs -n1 cat", `g() { cat "$1"; }; g b`, "sh -c 'cat $1' x b",
		"find . -name b | xargs cat", "find . -name b -exec cat {} +", "ln b h9; cat h9; rm h9", "a=(b); cat \"${a[@]}\"", "x=1; echo $x $((x+1)) $(date) > /dev/null", "git status --short | head -3", "git log --oneline -1", "git show HEAD:b", "git show :b", "git diff --stat",
		"echo \"$HOME\" \"$X\" secret.txt", "echo see secret.txt", "test -f \"$X\" || true", "d=sub; mkdir -p $d && echo x > $d/n && rm -r $d", "n=$(wc -l < b); echo $n", "for i in 1 2 3; do echo $i; done", "git commit --allow-empty -q -m \"$(cat <<'EOF'\nsecret.txt is mentioned\nEOF\n)\" || true",
		"cd secrets/.. && cat b", "make -n \"$X\" || true", "grep -n secret.txt b || true", "ls $X", "while read l; do echo $l; done < b", "cp b c9 && rm c9", "sed -n '/secret.txt/p' b", "awk '{print $1}' b", "git branch -a", "git log --oneline | cat", "head -n 1 b", "tr a b < b", "make -n X=$(date +%s) || true", "echo {1..3}", "x=$(git rev-parse HEAD); echo $x", "git diff -- b", "git diff HEAD b", "git log -p -- b", "git show --stat", "git stash list", "git worktree list", "git restore b", "git checkout -- b", "git apply --stat /dev/null || true", "python3 -c 'print(1)'", "cat b | while read -r l; do echo \"$l\"; done",
		"f=b; if [ -f \"$f\" ]; then cat \"$f\"; fi", "mkdir -p t9 && cp b t9/ && rm -r t9", "export X=1; env | grep -c X", "go version || true", "true && cat b || cat b", "f=b && [ -f $f ] && cat $f",
		"grep -rn open --exclude-dir=secrets --exclude-dir=.git --exclude=secret.txt .", "(cd su* && ls)", "cp b s?b/c8 && rm sub/c8", "sed -n 's/o/x/gp' b", "sed 's/open/rsecret.txt/' b", "a=(b b); cat ${a[@]:1}", "cat sub/../b", "cat ../w/b", "rm -f *.o", "(cd $PWD/sub && cat ../b)", "cat /proc/self/cwd/b", "d=$(basename sub); ls $d",
	} {
		if text := p.Must(t, "run_shell", replaytest.AsJSON(t, "command", command)); strings.HasPrefix(text, "! PERMISSION_DENIED") || strings.HasPrefix(text, "! ASK_UNAVAILABLE") {
			t.Errorf("%q is refused: %s", command, text)
		}
	}
}
