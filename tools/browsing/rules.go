package browsing

import "codehand/tools/permission"

// Ruled is what the rules about fetching pages say of a host in a mode.
func Ruled(rules *permission.Policy, host string, mode permission.Mode) permission.Decision {
	return rules.Decide(permission.Request{
		Tool: "web_fetch", Aliases: []string{"WebFetch"}, Family: permission.FamilyNone, ReadOnly: true,
		Own: permission.Allow, Mode: mode,
		Targets: []permission.Target{{Kind: permission.Domain, Value: host}},
	})
}

// MayFollow says whether a redirect from a host that is allowed may go on to the same host with or without www.: no
// rule denies it, and none wants to be asked. That the mode would ask about a new host does not count.
func MayFollow(rules *permission.Policy, host string) bool {
	return Ruled(rules, host, permission.Bypass).Verdict == permission.Allow
}
