package bash

import "testing"

// `find . -exec grep -l x {} +` was dangerous, as if it removed what it finds.
func TestFindExecutes(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]Class{
		"find . -exec grep -l foo {} +": Writes, "find . -name '*.go' -exec wc -l {} \\;": Writes, "find a -type f -execdir cat -- {} ';'": Writes,
		"find . -exec head -1 {} \\; -exec tail -1 {} \\;": Writes, "find . -exec sed -n 1p {} \\;": Writes,
		"find . -exec grep x {} \\; -delete": Dangerous, "find . -exec grep x {} \\; -exec rm {} \\;": Dangerous, "find . -exec sh -c 'cat $1' _ {} \\;": Dangerous,
		"find . -exec {} \\;": Dangerous, "find w -exec sed {} f \\;": Dangerous, "find . -exec sed -i s/a/b/ {} +": Dangerous, "find . -exec ./grep x {} \\;": Dangerous,
		"find . -exec sort -o {} {} \\;": Dangerous, "find . -exec $X {} \\;": Dangerous, "find . -exec grep $X {} \\;": Dangerous, "find . -ok grep x {} \\;": Dangerous,
		"find . -exec cat ~/.ssh/id_rsa \\;": Dangerous, "find . -exec grep x": Dangerous, "find . -exec python3 {} \\;": Dangerous, "find . -exec awk '{system($0)}' {} \\;": Dangerous,
		// What git and go do depends on where they run: on the repository's configuration, on go.mod.
		"find . -name .git -execdir git log \\;": Dangerous, "find . -exec git show {} \\;": Dangerous, "find . -name go.mod -execdir go list \\;": Dangerous, "find . -exec go version \\;": Dangerous, "find . -execdir git status +": Dangerous,
		// With `+` there are as many names as find finds, and a second one may be written to.
		"find . -exec uniq {} +": Dangerous, "find . -exec uniq {} \\;": Writes, "find . -exec base64 {} +": Dangerous, "find . -exec xxd {} +": Dangerous, "find . -exec sort {} +": Writes, "find . -exec uniq -c {} + -name x": Dangerous,
		// The author of the files chooses their names: one may end a script and begin a command.
		"find . -exec sed 's#x#{}#' f \\;": Dangerous, "find . -exec sed -e {}p f \\;": Dangerous, "find . -exec grep x ./{} \\;": Writes, "find . -exec wc --files0-from={} \\;": Dangerous, "find . -exec jq {} f \\;": Dangerous,
	} {
		a := Analyze(command, inRoot)
		if a.Class != want || (a.Hidden == "") != (want == Writes) && want == Writes {
			t.Errorf("%s: %v (%s), hidden %q; want %v", command, a.Class, a.Why, a.Hidden, want)
		}
	}
}
