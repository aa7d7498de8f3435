# Claude Code
# model: anthropic
# needs: @anthropic-ai/claude-code-linux-x64/claude
# terminal: Authenticated with
claude="$MODULES/@anthropic-ai/claude-code-linux-x64/claude"
export ANTHROPIC_BASE_URL="$MODEL" ANTHROPIC_API_KEY=none
# Its model waits for its servers; else it begins without those that are slow to connect.
export MCP_CONNECTION_NONBLOCKING=false MCP_CONNECT_TIMEOUT_MS=60000
export DISABLE_AUTOUPDATER=1 DISABLE_TELEMETRY=1 DISABLE_ERROR_REPORTING=1 CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1
export ENABLE_TOOL_SEARCH=true # as with its usual address
case $STEP in
login)
	"$claude" mcp add --scope user --transport http codehand "$URL" </dev/null
	exec "$claude" mcp login codehand
	;;
use) exec "$claude" -p "$PROMPT" --allowedTools mcp__codehand </dev/null ;;
esac
