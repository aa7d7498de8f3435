//go:build race

package media

// underRace: the race detector takes several times the memory and the time.
const underRace = true
