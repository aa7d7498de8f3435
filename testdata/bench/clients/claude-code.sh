# Claude Code
# snippet: claude-code
# model: anthropic
# needs: @anthropic-ai/claude-code-linux-x64/claude
test -e "$HOME/.claude.json" || cat >"$HOME/.claude.json" <<END
{"mcpServers":{"codehand":{"command":"$CODEHAND","args":["stdio"]}}}
END
export ANTHROPIC_BASE_URL="$MODEL" ANTHROPIC_API_KEY=none
export DISABLE_AUTOUPDATER=1 DISABLE_TELEMETRY=1 DISABLE_ERROR_REPORTING=1 CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1
export ENABLE_TOOL_SEARCH=true # as with its usual address
exec "$MODULES/@anthropic-ai/claude-code-linux-x64/claude" -p "$PROMPT" --allowedTools mcp__codehand </dev/null
