# Cline
# snippet: cline
# model: chat
# needs: @cline/cli-linux-x64/bin/cline
mkdir -p "$HOME/.cline/data/settings"
ours="$HOME/.cline/data/settings/cline_mcp_settings.json"
test -e "$ours" || cat >"$ours" <<END
{"mcpServers":{"codehand":{"command":"$CODEHAND","args":["stdio"],"disabled":false,"timeout":600}}}
END
cline="$MODULES/@cline/cli-linux-x64/bin/cline"
"$cline" auth -p openai-compatible -k none -m fake -b "$MODEL/v1" </dev/null
exec "$cline" -P openai-compatible -m fake "$PROMPT" </dev/null
