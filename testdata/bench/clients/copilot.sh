# Copilot CLI
# snippet: copilot
# model: chat
# needs: @github/copilot-linux-x64/copilot
mkdir -p "$HOME/.copilot"
test -e "$HOME/.copilot/mcp-config.json" || cat >"$HOME/.copilot/mcp-config.json" <<END
{"mcpServers":{"codehand":{"type":"local","command":"$CODEHAND","args":["stdio"],"tools":["*"]}}}
END
export COPILOT_OFFLINE=true COPILOT_PROVIDER_BASE_URL="$MODEL/v1" COPILOT_PROVIDER_API_KEY=none COPILOT_MODEL=fake
exec "$MODULES/@github/copilot-linux-x64/copilot" --no-auto-update --allow-all-tools -p "$PROMPT" </dev/null
