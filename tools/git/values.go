package git

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// maxIncluded is how many configuration files Values reads. A person's includes have a handful.
const maxIncluded = 50

// Values returns the values of a key, in lower case and without a subsection, in configuration files and in what these
// include, in git's order. It follows an include whatever its condition is, so there may be values that do not hold. A
// leading `~/` in an included name is home. not whole: there may be more, since a file cannot be read or understood.
func Values(home, key string, files ...string) (values []string, whole bool) {
	_, whole = EachSetting(home, files, func(k, value string) {
		if strings.EqualFold(k, key) {
			values = append(values, value)
		}
	})
	return values, whole
}

// EachSetting tells each key of configuration files, as it is written, with its value, as Values finds them. included
// are the files that they include, whether there are any or not.
func EachSetting(home string, files []string, each func(key, value string)) (included []string, whole bool) {
	v := valueReader{home: home, each: each, seen: make(map[string]bool), whole: true}
	for _, file := range files {
		v.read(file)
	}
	for file := range v.seen {
		if !slices.Contains(files, file) {
			included = append(included, file)
		}
	}
	slices.Sort(included)
	return included, v.whole
}

type valueReader struct {
	home  string
	each  func(key, value string)
	seen  map[string]bool // files that were read
	whole bool
}

func (v *valueReader) read(file string) {
	if v.seen[file] {
		return
	}
	v.seen[file] = true
	if len(v.seen) > maxIncluded {
		v.whole = false
		return
	}
	text, err := ReadSmall(file, maxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		v.whole = false
		return
	}
	understood := configKeys(text, func(key, value string) bool {
		v.each(key, value)
		switch key = strings.ToLower(key); {
		case key == "include.path", strings.HasPrefix(key, "includeif.") && strings.HasSuffix(key, ".path"):
			if value = InHome(v.home, value); strings.HasPrefix(value, "~") || strings.HasPrefix(value, "%(") {
				v.whole = false // the home of another user, or git's own place
				return true
			}
			v.read(below(filepath.Dir(file), value))
		}
		return true
	})
	v.whole = v.whole && understood
}

// InHome puts home, if there is one, in the place of a leading `~`, as git does with names of files.
func InHome(home, name string) string {
	if rest, ok := strings.CutPrefix(name, "~/"); ok && home != "" {
		return filepath.Join(home, rest)
	}
	return name
}

// Remotes returns the URLs of the remotes in a configuration file, as they stand there. What it includes does not
// count, nor does a file that cannot be read.
func Remotes(file string) (urls []string) {
	text, err := ReadSmall(file, maxConfig)
	if err != nil {
		return nil
	}
	configKeys(text, func(key, value string) bool {
		section, _, _ := strings.Cut(key, ".")
		name := strings.ToLower(key[strings.LastIndexByte(key, '.')+1:])
		if strings.EqualFold(section, "remote") && (name == "url" || name == "pushurl") {
			urls = append(urls, value)
		}
		return true
	})
	return urls
}
