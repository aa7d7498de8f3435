package tools

import (
	subagent "codehand/tools/agent"
	"codehand/tools/git/changes"
	"codehand/tools/mounts"
	"codehand/tools/past"
	"codehand/tools/web"
	"codehand/tools/web/search"
)

// Engines are what tools work with that all sessions of a process share. Where one is nil, its tools say why they are
// not available, so the zero value is enough for their Specs.
type Engines struct {
	Web       *web.Client      // fetches pages; nil: the operator switched the web off
	WebSearch *search.Engine   // asks the operator's search endpoint; nil: there is none
	Agents    *subagent.Runner // executes sub-agents; nil: there is no back-end
	Mounts    *mounts.Mounts   // are the servers that the operator mounts; nil: there are none
	Trees     *changes.Trees   // sees what commands change in git work trees; nil: it is not looked at
	Past      past.Records     // are what is on record of calls and sessions; nil: nothing is
}
