# opencode
# model: chat
# needs: opencode-linux-x64/bin/opencode
mkdir -p "$HOME/.config/opencode"
cat >"$HOME/.config/opencode/opencode.json" <<END
{"autoupdate":false,"share":"disabled","permission":{"*":"allow"},
"mcp":{"codehand":{"type":"local","command":["$CODEHAND","stdio"],"enabled":true}},
"provider":{"scripted":{"npm":"@ai-sdk/openai-compatible","options":{"baseURL":"$MODEL/v1","apiKey":"none"},
"models":{"fake":{"name":"fake","tool_call":true,"limit":{"context":200000,"output":8000}}}}}}
END
exec "$MODULES/opencode-linux-x64/bin/opencode" run -m scripted/fake "$PROMPT" </dev/null
