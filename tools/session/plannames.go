package session

import (
	"math/rand/v2"
	"strings"
)

// NewPlanName makes up the name of a plan: three words that can be said and remembered.
func NewPlanName() string {
	return pick(planAdjectives) + "-" + pick(planNouns) + "-" + pick(planNouns)
}

func pick(words string) string {
	all := strings.Fields(words)
	return all[rand.IntN(len(all))]
}

const (
	planAdjectives = `amber ample apt azure bold brave brief bright brisk calm candid cheery clear clever cobalt cool copper cosy
		crisp daring deep deft eager early easy even fair fine firm fleet fond fresh gentle glad golden good grand green happy hardy
		honest humble ivory jolly keen kind light lively lucid lucky mellow merry mild modest neat nimble noble olive patient plain
		polite proud prudent quick quiet rapid ready rosy round sage sandy serene sharp silver simple sleek smooth snug solid sound
		spry steady still sturdy sunny sure swift tidy true vivid warm wise witty young`
	planNouns = `acorn anchor apple arch atlas badger barn basin beacon birch bison boat branch bridge brook cabin canoe canyon cedar
		chart cliff cloud clover coast comet compass coral cove crane creek crow dale dawn delta dune eagle elm ember falcon fern
		field finch fjord flint forest fox garden gate glade grove gull harbor hawk hazel hedge heron hill island ivy kite lagoon
		lake lantern lark leaf lily lynx maple marsh meadow mill moon moss mountain oak oasis orchard otter owl path pebble pine
		plum pond poplar prairie quail quarry raven reed reef ridge river robin rook rose sail shore sparrow spring spruce star
		stone stream summit swallow thicket thrush tide trail valley walnut wave willow wren`
)
