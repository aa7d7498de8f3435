package console

import (
	"strings"

	"codehand/server/asking"
	"codehand/server/audit"
	"codehand/tools/session"
	"codehand/tools/tool"
)

// pageClient begins how the page calls itself as a client.
const pageClient = "codehand-page"

// Recorded are the calls in the log in dir, without those that only asked a person and those of a page that looks;
// principal "": of all. shared begins the keys of sessions that clients share.
func Recorded(dir, principal, shared string, q CallQuery) (c Calls, err error) {
	short := func(key string) string { return asking.ShortName(session.Key{Session: key}) }
	seen := func(x audit.PastCall) PastCall {
		one := PastCall{
			ID: x.ID, Time: x.Time, Session: short(x.Session), Shared: strings.HasPrefix(x.Session, shared),
			Principal: x.Principal, Client: x.Client, Tool: x.Tool, Summary: x.Summary,
			Code: x.Code, Exit: x.Exit, Took: x.Took, Files: x.Files, Open: x.Open,
		}
		switch {
		case x.Decision == "ask.allow" && x.By == "user":
			one.Decision = "you allowed it"
		case x.Code == string(tool.UserDeclined) && x.By == "user":
			one.Decision = "you denied it"
		case x.Decision != "allow" && x.Rule != "":
			one.Decision = "by rule " + x.Rule
		}
		return one
	}
	var wanted func(key string) bool
	if q.Session != "" {
		wanted = func(key string) bool { return short(key) == q.Session }
	}
	list, more, err := audit.Recent(dir, audit.Query{Principal: principal, Before: q.Before, Limit: q.Limit,
		Session: wanted, Failed: q.Failed,
		Fits: func(x audit.PastCall) bool {
			looks := strings.HasPrefix(x.Client, pageClient) && x.Files == 0 && x.Code == ""
			return !looks && x.Code != "PENDING" && (!q.Failed || seen(x).Failed())
		}})
	for _, x := range list {
		c.List = append(c.List, seen(x))
	}
	c.More = more
	return c, err
}
