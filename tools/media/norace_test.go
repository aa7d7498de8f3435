//go:build !race

package media

const underRace = false
