// Package install writes codehand into the files of MCP clients, and takes it out again. It knows where each client
// keeps its file on each system, reads what a file says of codehand, and changes nothing in it but our entry: all other
// bytes stay, comments and line ends with them.
//
// What it writes is a clients.Snippet, merged into what is there. A Change is planned first, from the bytes on the
// disk, and says what it would do; Apply makes it only while those bytes are still there, and replaces the file in one
// step. Before and after are decoded and compared, so a file whose form is not understood is refused and left alone.
//
// It starts no program and opens no connection. Clients have commands of their own that add a server (claude mcp add,
// codex mcp add); they are not used, because they show no difference, replace nothing, and need the client's program.
package install
