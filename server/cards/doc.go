// Package cards has what chats with MCP Apps (extension io.modelcontextprotocol/ui, revision 2026-01-26) draw in the
// place of a result: one page for all tools, which the chat shows in a frame of its own, without network. It shows the
// difference of a change with a button to take it back, a plan, or a job with a button to stop it. All it can do is to
// ask the chat to call a tool, with the rights of its session.
//
// The page reads results as they are, mostly their _meta, so there is nothing in a result for its sake, and a client
// without the extension is sent nothing of all this.
package cards
