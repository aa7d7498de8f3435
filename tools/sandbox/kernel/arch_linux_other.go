//go:build !amd64 && !arm64

package kernel

// A filter for other processors was never tried: commands there are at LevelLimits.
const (
	machine = 0
	foreign = 0
)

var forbiddenHere []uint32

var modeCallsHere []modeCall
