// Package tenants is what one principal works in: its roots and rules, the tools that it sees, its shared task lists,
// and the roots to which its client narrows it.
//
// A Tenant is made once for each set of rights and does not change, so requests share it without a lock. The package
// decides nothing about a call: it holds what the corridor (server/pipeline) decides by.
package tenants
