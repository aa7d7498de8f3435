package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Find finds a program in the PATH of an environment, as the one that gets the environment would. An absolute name is
// its own path.
func Find(env []string, name string) (string, error) {
	if filepath.IsAbs(name) {
		return name, nil
	}
	for _, v := range env {
		list, ok := strings.CutPrefix(v, "PATH=")
		if !ok {
			continue
		}
		for _, dir := range filepath.SplitList(list) {
			for _, suffix := range suffixes {
				path := filepath.Join(dir, name+suffix)
				info, err := os.Stat(path)
				if err == nil && filepath.IsAbs(path) && info.Mode().IsRegular() && runnable(info) {
					return path, nil
				}
			}
		}
	}
	return "", fmt.Errorf("there is no program %s in PATH", name)
}
